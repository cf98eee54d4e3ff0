package pyspark_kafka_log;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
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

/**
 * The micro-batches of a query. One Python worker keeps in mind what it has seen of the logs, until the query stops. Another one takes
 * its place when it dies: all that decides which rows there are is in the checkpoint, and in the target here.
 */
class LogStream implements MicroBatchStream, SupportsTriggerAvailableNow, ReportsSourceMetrics {
    private static final int TRIES = 3;

    private final LogScan scan;
    private final InitialOffsets initial;
    private PythonWorker worker;
    /** Where a query with the trigger AvailableNow ends; null for others. */
    private String target;

    LogStream(LogScan scan, String checkpoint) {
        this.scan = scan;
        this.initial = new InitialOffsets(checkpoint, org.apache.spark.SparkContext$.MODULE$.getOrCreate().hadoopConfiguration());
    }

    /** What the progress of a query calls its source. */
    public String toString() {
        return scan.description();
    }

    public Offset initialOffset() {
        String json = initial.read();
        if (json == null) {
            initial.write(ask("initial", null, null, false));
            json = initial.read(); // of two queries that start at once, one has written them
        }
        return offset(json);
    }

    public Offset latestOffset() {
        throw new UnsupportedOperationException("kafka-log is asked for the latest offset with a limit");
    }

    public Offset latestOffset(Offset start, ReadLimit limit) {
        return offset(ask("latest", start, null, !(limit instanceof ReadAllAvailable)));
    }

    public Offset reportLatestOffset() {
        try {
            return offset(ask("report", null, null, false));
        } catch (Exception e) { // errors of planning are no RuntimeException
            return null; // what is shown of a query does not end it
        }
    }

    public void prepareForTriggerAvailableNow() {
        target = ask("prepare", null, null, false);
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
        try {
            return (Map) parsed(ask("behind", null, consumed.isPresent() ? (Offset) consumed.get() : null, false));
        } catch (Exception e) {
            return new HashMap(); // what is shown of a query does not end it
        }
    }

    public Offset deserializeOffset(String json) {
        return new LogOffset(json);
    }

    public InputPartition[] planInputPartitions(Offset start, Offset end) {
        return LogScan.tasks(answer("tasks", start, end, false));
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

    private String ask(String method, Offset start, Offset end, boolean limited) {
        return java.nio.charset.StandardCharsets.UTF_8.decode(answer(method, start, end, limited)).toString();
    }

    /** What the worker answers; where it has died, a new one. */
    private synchronized ByteBuffer answer(String method, Offset start, Offset end, boolean limited) {
        for (int left = TRIES - 1;; left--) {
            try {
                if (worker == null) worker = PythonWorker.onDriver();
                return worker.bytes(request(method, start, end, limited), null);
            } catch (UncheckedIOException e) {
                stop();
                // A query that is stopped closes the socket of its thread.
                if (left == 0 || e.getCause() instanceof ClosedChannelException || Thread.currentThread().isInterrupted()) throw e;
            }
        }
    }

    /** Offsets stay the text that they are: not all names of directories are ones that a JSON of ours could say again. */
    private Map request(String method, Offset start, Offset end, boolean limited) {
        Map request = scan.request("stream");
        request.put("do", method);
        request.put("start", start == null ? null : start.json());
        request.put("end", end == null ? null : end.json());
        request.put("limited", Boolean.valueOf(limited));
        request.put("target", target);
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
