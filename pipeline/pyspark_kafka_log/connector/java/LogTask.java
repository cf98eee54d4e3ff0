package pyspark_kafka_log;

import org.apache.spark.sql.connector.read.InputPartition;

/** What one task reads, as Python planned it. */
class LogTask implements InputPartition {
    final byte[] splits;

    LogTask(byte[] splits) {
        this.splits = splits;
    }
}
