package pyspark_kafka_log;

/** See its description. */
public class ReadBytes extends ScanMetric {
    public static final String NAME = "readBytes";

    public ReadBytes() {
        super(NAME, "bytes of segments that were read");
    }
}
