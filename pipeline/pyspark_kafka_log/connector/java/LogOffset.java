package pyspark_kafka_log;

import org.apache.spark.sql.connector.read.streaming.Offset;

/** Offsets of all partitions of a stream, as Python writes them. */
class LogOffset extends Offset {
    private final String json;

    LogOffset(String json) {
        this.json = json;
    }

    public String json() {
        return json;
    }
}
