package pyspark_kafka_log;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadAllAvailable;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;

/** The micro-batches of a query. One Python worker keeps in mind what it has seen of the logs, until the query stops. */
class LogStream implements MicroBatchStream, SupportsTriggerAvailableNow, ReportsSourceMetrics {
    private final LogScan scan;
    private PythonWorker worker;

    LogStream(LogScan scan) {
        this.scan = scan;
    }

    /** What the progress of a query calls its source. */
    public String toString() {
        return scan.description();
    }

    public Offset initialOffset() {
        return offset(ask("initial", null, null, false));
    }

    public Offset latestOffset() {
        throw new UnsupportedOperationException("kafka-log is asked for the latest offset with a limit");
    }

    public Offset latestOffset(Offset start, ReadLimit limit) {
        return offset(ask("latest", start, null, !(limit instanceof ReadAllAvailable)));
    }

    public Offset reportLatestOffset() {
        return offset(ask("report", null, null, false));
    }

    public void prepareForTriggerAvailableNow() {
        ask("prepare", null, null, false);
    }

    public ReadLimit getDefaultReadLimit() {
        Map told = (Map) parsed(ask("limits", null, null, false));
        List limits = new ArrayList();
        if (told.get("least") != null) {
            limits.add(ReadLimit.minRows(number(told, "least"), number(told, "delay_ms")));
        }
        if (told.get("most") != null) limits.add(ReadLimit.maxRows(number(told, "most")));
        if (limits.isEmpty()) return ReadLimit.allAvailable();
        if (limits.size() == 1) return (ReadLimit) limits.get(0);
        return ReadLimit.compositeLimit((ReadLimit[]) limits.toArray(new ReadLimit[limits.size()]));
    }

    public Map metrics(Optional consumed) {
        return (Map) parsed(ask("behind", null, consumed.isPresent() ? (Offset) consumed.get() : null, false));
    }

    public Offset deserializeOffset(String json) {
        return new LogOffset(json);
    }

    public synchronized InputPartition[] planInputPartitions(Offset start, Offset end) {
        return LogScan.tasks(worker().bytes(request("tasks", start, end, false), null));
    }

    public PartitionReaderFactory createReaderFactory() {
        Map request = scan.request("read");
        request.put("stream", Boolean.TRUE);
        return scan.readers(request);
    }

    public void commit(Offset end) {
        // All that a restart needs is in the checkpoint.
    }

    public synchronized void stop() {
        if (worker != null) {
            worker.broken(); // what it keeps in mind is of this query
            worker.release();
            worker = null;
        }
    }

    private synchronized String ask(String method, Offset start, Offset end, boolean limited) {
        return worker().text(request(method, start, end, limited), null);
    }

    private PythonWorker worker() {
        if (worker == null) worker = PythonWorker.onDriver();
        return worker;
    }

    /** Offsets stay the text that they are: not all names of directories are ones that a JSON of ours could say again. */
    private Map request(String method, Offset start, Offset end, boolean limited) {
        Map request = scan.request("stream");
        request.put("do", method);
        request.put("start", start == null ? null : start.json());
        request.put("end", end == null ? null : end.json());
        request.put("limited", Boolean.valueOf(limited));
        return request;
    }

    private static Offset offset(String json) {
        return "null".equals(json) ? null : new LogOffset(json);
    }

    private static long number(Map told, String name) {
        return ((Number) told.get(name)).longValue();
    }

    private static Object parsed(String json) {
        try {
            return new ObjectMapper().readValue(json, HashMap.class);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
