package pyspark_kafka_log;

import java.io.DataInputStream;
import java.io.IOException;
import java.util.List;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** The rows of one task: the Arrow stream of a worker as batches of columns, or, without columns, numbers of rows. */
class LogReader implements PartitionReader {
    private final PythonWorker worker;
    private final BufferAllocator allocator;
    private final Chunks chunks;
    private final int limit;
    private long given;
    private ArrowStreamReader stream;
    private DataInputStream counts;
    private VectorSchemaRoot root;
    private ColumnVector[] columns;
    private ColumnarBatch batch;
    private boolean closed;

    LogReader(byte[] splits, String request, boolean counted, int limit, PythonWorker worker) {
        this.worker = worker;
        this.limit = limit;
        this.allocator = ArrowUtils.rootAllocator().newChildAllocator("kafka-log", 0, Long.MAX_VALUE);
        boolean opened = false;
        try {
            chunks = worker.stream(request, splits);
            if (counted) {
                counts = new DataInputStream(chunks);
                batch = new ColumnarBatch(new ColumnVector[0]);
            } else {
                stream = new ArrowStreamReader(chunks, allocator);
            }
            opened = true;
        } finally {
            if (!opened) close();
        }
    }

    public boolean next() throws IOException {
        try {
            boolean more = advance();
            if (more) given += batch.numRows();
            return more;
        } catch (PythonError e) {
            throw e.ofReading();
        } catch (IOException e) {
            throw worker.ended(e);
        }
    }

    private boolean advance() throws IOException {
        if (counts != null) {
            if (chunks.atEnd()) return false;
            batch.setNumRows(counts.readInt());
            return true;
        }
        if (root == null) {
            root = stream.getVectorSchemaRoot();
            List vectors = root.getFieldVectors();
            columns = new ColumnVector[vectors.size()];
            for (int i = 0; i < columns.length; i++) columns[i] = MemoryColumn.of((FieldVector) vectors.get(i));
            batch = new ColumnarBatch(columns);
        }
        if (!stream.loadNextBatch()) {
            chunks.drain(); // to its end, or to an error
            return false;
        }
        MemoryColumn.load(columns);
        batch.setNumRows(root.getRowCount());
        return true;
    }

    public CustomTaskMetric[] currentMetricsValues() {
        return new CustomTaskMetric[] {
            told(LostBytes.NAME),
            told(LostRanges.NAME),
            told(LostRows.NAME),
            told(UncountedRanges.NAME),
            told(ReadBytes.NAME),
            told(SkippedBatches.NAME)
        };
    }

    private Told told(String name) {
        return new Told(name, chunks.told(name));
    }

    public Object get() {
        return batch;
    }

    public void close() {
        if (closed) return; // a worker that is given back twice would have two tasks
        closed = true;
        try {
            if (chunks != null && limit >= 0 && given >= limit) chunks.drain(); // nothing is left but the end
        } catch (Exception e) {
            worker.broken();
        }
        if (chunks == null || !chunks.ended()) worker.broken(); // a query that has enough stops in the middle
        try {
            if (stream != null) stream.close(false);
        } catch (IOException e) {
            worker.broken();
        } finally {
            try {
                allocator.close();
            } finally {
                worker.release();
            }
        }
    }
}
