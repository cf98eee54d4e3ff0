package pyspark_kafka_log;

/** See its description. */
public class UncountedRanges extends ScanMetric {
    public static final String NAME = "uncountedRanges";

    public UncountedRanges() {
        super(NAME, "places of these of which no offsets tell how many records they had");
    }
}
