package pyspark_kafka_log;

import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.types.StructType;

/** Opens the writers of tasks. It is sent to executors. */
class LogWriters implements DataWriterFactory, StreamingDataWriterFactory {
    final String job;
    final StructType schema;
    final java.util.HashMap settings;

    LogWriters(String job, StructType schema, java.util.HashMap settings) {
        this.job = job;
        this.schema = schema;
        this.settings = settings;
    }

    public DataWriter createWriter(int task, long attempt) {
        return new LogWriter(job, task, null, schema, PythonWorker.toWrite(settings));
    }

    public DataWriter createWriter(int task, long attempt, long epoch) {
        return new LogWriter(job, task, Long.valueOf(epoch), schema, PythonWorker.toWrite(settings));
    }
}
