package pyspark_kafka_log;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;

/** A query that writes, or a stream: Python makes a job of it, commits what tasks wrote, or removes it. */
class LogWrite implements SupportsTruncate, Write, BatchWrite, StreamingWrite {
    private final Map options;
    private final LogicalWriteInfo info;
    private boolean overwrite;
    private String job;

    LogWrite(Map options, LogicalWriteInfo info) {
        this.options = options;
        this.info = info;
    }

    public WriteBuilder truncate() {
        overwrite = true;
        return this;
    }

    public Write build() {
        Map request = request("job");
        request.put("options", options);
        request.put("schema", info.schema().json());
        request.put("overwrite", Boolean.valueOf(overwrite));
        job = Undisturbed.ask(request);
        return this;
    }

    public String description() {
        return "kafka-log " + options.get("path");
    }

    public BatchWrite toBatch() {
        return this;
    }

    public StreamingWrite toStreaming() {
        return this;
    }

    public boolean useCommitCoordinator() {
        return true;
    }

    public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo physical) {
        return writers();
    }

    public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo physical) {
        return writers();
    }

    private LogWriters writers() {
        return new LogWriters(job, info.schema(), WorkerSettings.ofTasks());
    }

    public void commit(WriterCommitMessage[] messages) {
        commit(null, messages);
    }

    public void commit(long epoch, WriterCommitMessage[] messages) {
        commit(Long.valueOf(epoch), messages);
    }

    public void abort(WriterCommitMessage[] messages) {
        Undisturbed.ask(request("abort"));
    }

    public void abort(long epoch, WriterCommitMessage[] messages) {
        Map request = request("abort");
        request.put("batch", Long.valueOf(epoch));
        Undisturbed.ask(request);
    }

    private void commit(Long epoch, WriterCommitMessage[] messages) {
        String[] told = new String[messages.length];
        for (int i = 0; i < told.length; i++) told[i] = messages[i].toString();
        Map request = request("commit");
        request.put("messages", told);
        request.put("batch", epoch);
        Undisturbed.ask(request);
    }

    private Map request(String ask) {
        Map request = new HashMap();
        request.put("ask", ask);
        request.put("job", job);
        request.put("query", info.queryId());
        return request;
    }
}
