package pyspark_kafka_log;

import org.apache.spark.sql.connector.metric.CustomSumMetric;

/** A metric of a scan. Spark makes one by its name. */
public class LostRanges extends CustomSumMetric {
    public static final String NAME = "lostRanges";

    public LostRanges() {
    }

    public String name() {
        return NAME;
    }

    public String description() {
        return "places that could not be read whole, or were left out";
    }
}
