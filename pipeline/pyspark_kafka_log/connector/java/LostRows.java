package pyspark_kafka_log;

/** See its description. */
public class LostRows extends ScanMetric {
    public static final String NAME = "lostRows";

    public LostRows() {
        super(NAME, "records in these places, at most, where offsets tell how many");
    }
}
