package pyspark_kafka_log;

import java.nio.ByteBuffer;
import org.apache.spark.sql.connector.read.InputPartition;

/** The tasks of a scan as a worker has planned them, and what they will read, as far as it is known without reading. */
class LogPlan {
    final InputPartition[] tasks;

    /** Bytes of segments; -1 where nobody knows what comes of them. */
    final long bytes;

    /** Rows at most; -1 where it is not known. */
    final long rows;

    LogPlan(ByteBuffer answer) {
        bytes = answer.getLong();
        rows = answer.getLong();
        tasks = LogScan.tasks(answer);
    }
}
