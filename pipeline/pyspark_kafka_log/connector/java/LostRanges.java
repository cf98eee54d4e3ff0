package pyspark_kafka_log;

/** See its description. */
public class LostRanges extends ScanMetric {
    public static final String NAME = "lostRanges";

    public LostRanges() {
        super(NAME, "places that could not be read whole, or were left out");
    }
}
