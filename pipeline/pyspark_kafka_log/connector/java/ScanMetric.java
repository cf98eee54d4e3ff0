package pyspark_kafka_log;

import org.apache.spark.sql.connector.metric.CustomSumMetric;

/** A metric of a scan: what its tasks have said, added up. Spark makes one by the name of its class, which is why each has one of its own. */
abstract class ScanMetric extends CustomSumMetric {
    private final String name;
    private final String description;

    ScanMetric(String name, String description) {
        this.name = name;
        this.description = description;
    }

    public final String name() {
        return name;
    }

    public final String description() {
        return description;
    }
}
