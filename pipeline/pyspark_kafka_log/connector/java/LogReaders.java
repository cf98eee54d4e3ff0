package pyspark_kafka_log;

import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;

/** Opens the readers of tasks. It is sent to executors. */
class LogReaders implements PartitionReaderFactory {
    final String request;
    final boolean counts;
    final int limit;
    final java.util.HashMap settings;

    LogReaders(String request, boolean counts, int limit, java.util.HashMap settings) {
        this.request = request;
        this.counts = counts;
        this.limit = limit;
        this.settings = settings;
    }

    public boolean supportColumnarReads(InputPartition task) {
        return true;
    }

    public PartitionReader createReader(InputPartition task) {
        throw new UnsupportedOperationException("kafka-log gives columns");
    }

    public PartitionReader createColumnarReader(InputPartition task) {
        return new LogReader(((LogTask) task).splits, request, counts, limit, PythonWorker.toRead(settings));
    }
}
