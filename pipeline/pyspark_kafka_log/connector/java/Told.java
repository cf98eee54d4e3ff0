package pyspark_kafka_log;

import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** A number that a task has said. */
class Told implements CustomTaskMetric {
    private final String name;
    private final long value;

    Told(String name, long value) {
        this.name = name;
        this.value = value;
    }

    public String name() {
        return name;
    }

    public long value() {
        return value;
    }
}
