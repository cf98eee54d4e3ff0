package pyspark_kafka_log;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import org.apache.arrow.vector.dictionary.DictionaryProvider;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.execution.arrow.ArrowWriter;
import org.apache.spark.sql.types.StructType;

/** The rows of one task, in batches of Arrow, to a worker that writes them. */
class LogWriter implements DataWriter {
    private static final int ROWS = 10000;
    private static final long BYTES = 16 << 20;
    private static final long UNKNOWN = 1 << 16;

    private final PythonWorker worker;
    private ArrowWriter rows;
    private ArrowStreamWriter stream;
    private int held;
    private long bytes;
    private boolean whole;
    private boolean closed;

    LogWriter(String job, int task, Long epoch, StructType schema, PythonWorker worker) {
        this.worker = worker;
        Map request = new HashMap();
        request.put("ask", "write");
        request.put("job", job);
        request.put("task", Integer.valueOf(task));
        request.put("batch", epoch);
        boolean opened = false;
        try {
            rows = ArrowWriter.create(schema, "UTC", true, false);
            stream = new ArrowStreamWriter(rows.root(), (DictionaryProvider) null, worker.ask(PythonWorker.json(request)));
            stream.start();
            opened = true;
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        } finally {
            if (!opened) close();
        }
    }

    public void write(Object row) throws IOException {
        rows.write((InternalRow) row);
        held++;
        bytes += row instanceof UnsafeRow ? ((UnsafeRow) row).getSizeInBytes() : UNKNOWN;
        if (held == ROWS || bytes > BYTES) send();
    }

    private void send() throws IOException {
        rows.finish();
        try {
            stream.writeBatch();
        } catch (IOException e) {
            throw worker.ended(e);
        }
        rows.reset();
        held = 0;
        bytes = 0;
    }

    public WriterCommitMessage commit() throws IOException {
        if (held > 0) send();
        try {
            stream.end();
            Written written = new Written(new String(worker.answer().readAllBytes(), "UTF-8"));
            whole = true;
            return written;
        } catch (PythonError e) {
            whole = true;
            throw e.ofWriting();
        } catch (IOException e) {
            throw worker.ended(e);
        }
    }

    /** A worker that is hung up on removes what it wrote. */
    public void abort() {
    }

    public void close() {
        if (closed) return;
        closed = true;
        if (!whole) worker.broken();
        try {
            if (rows != null) rows.root().close();
        } finally {
            worker.release();
        }
    }
}
