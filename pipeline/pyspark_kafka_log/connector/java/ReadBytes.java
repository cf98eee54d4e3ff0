package pyspark_kafka_log;

import org.apache.spark.sql.connector.metric.CustomSumMetric;

/** A metric of a scan. Spark makes one by its name. */
public class ReadBytes extends CustomSumMetric {
    public static final String NAME = "readBytes";

    public ReadBytes() {
    }

    public String name() {
        return NAME;
    }

    public String description() {
        return "bytes of segments that were read";
    }
}
