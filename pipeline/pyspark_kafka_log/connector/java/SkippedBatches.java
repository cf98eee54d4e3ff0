package pyspark_kafka_log;

/** See its description. */
public class SkippedBatches extends ScanMetric {
    public static final String NAME = "skippedBatches";

    public SkippedBatches() {
        super(NAME, "batches that were not decompressed, as no row can come from them");
    }
}
