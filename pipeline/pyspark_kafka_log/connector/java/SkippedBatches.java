package pyspark_kafka_log;

import org.apache.spark.sql.connector.metric.CustomSumMetric;

/** A metric of a scan. Spark makes one by its name. */
public class SkippedBatches extends CustomSumMetric {
    public static final String NAME = "skippedBatches";

    public SkippedBatches() {
    }

    public String name() {
        return NAME;
    }

    public String description() {
        return "batches that were not decompressed, as no row can come from them";
    }
}
