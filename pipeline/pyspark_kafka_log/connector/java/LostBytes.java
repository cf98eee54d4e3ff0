package pyspark_kafka_log;

/** See its description. */
public class LostBytes extends ScanMetric {
    public static final String NAME = "lostBytes";

    public LostBytes() {
        super(NAME, "bytes of places that could not be read whole, or were left out");
    }
}
