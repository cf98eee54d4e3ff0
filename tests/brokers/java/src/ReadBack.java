import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.CloseableIterator;

import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;

/**
 * Prints each batch and record of the segment files named on standard input, one path a line, as JSON lines.
 *
 * <p>It reads them as a broker does: through FileRecords, each batch checked first, then its records. An exception of
 * Kafka's ends the file and stands in its "end" line.
 */
public final class ReadBack {
    private final PrintStream out;

    private ReadBack(PrintStream out) {
        this.out = out;
    }

    public static void main(String[] args) throws Exception {
        FileOutputStream raw = new FileOutputStream(FileDescriptor.out);
        PrintStream out = new PrintStream(new BufferedOutputStream(raw, 1 << 16), false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String path = in.readLine(); path != null; path = in.readLine()) {
            new ReadBack(out).file(new File(path));
        }
        out.flush();
    }

    private void print(ObjectNode row) throws Exception {
        out.println(Lines.JSON.writeValueAsString(row));
    }

    private void file(File path) throws Exception {
        long position = 0;
        long batches = 0;
        long records = 0;
        String error = null;
        try (FileRecords file = FileRecords.open(path, false)) {
            for (Iterator<? extends RecordBatch> it = file.batchIterator(); it.hasNext(); ) {
                RecordBatch batch = it.next();
                batch.ensureValid();
                print(batch(batch, position));
                records += records(batch);
                position += batch.sizeInBytes();
                batches++;
            }
        } catch (Exception e) {
            error = e.toString();
        }
        print(Lines.JSON.createObjectNode().put("type", "end").put("batches", batches).put("records", records)
            .put("iteratedBytes", position).put("trailingBytes", path.length() - position).put("error", error));
    }

    private static ObjectNode batch(RecordBatch batch, long position) {
        ObjectNode row = Lines.JSON.createObjectNode().put("type", "batch").put("position", position)
            .put("sizeInBytes", batch.sizeInBytes())
            .put("baseOffset", batch.baseOffset())
            .put("lastOffset", batch.lastOffset())
            .put("nextOffset", batch.nextOffset())
            .put("magic", batch.magic())
            .put("crc", batch.checksum())
            .put("compression", batch.compressionType().name)
            .put("timestampType", batch.timestampType().name)
            .put("maxTimestamp", batch.maxTimestamp())
            .put("producerId", batch.producerId())
            .put("producerEpoch", batch.producerEpoch())
            .put("baseSequence", batch.baseSequence())
            .put("lastSequence", batch.lastSequence())
            .put("isTransactional", batch.isTransactional())
            .put("isControl", batch.isControlBatch())
            .put("partitionLeaderEpoch", batch.partitionLeaderEpoch())
            .put("count", batch.countOrNull());
        boolean horizon = batch.deleteHorizonMs().isPresent();
        return row.put("deleteHorizonMs", horizon ? (Long) batch.deleteHorizonMs().getAsLong() : null);
    }

    private long records(RecordBatch batch) throws Exception {
        long count = 0;
        try (CloseableIterator<Record> it = batch.streamingIterator(BufferSupplier.create())) {
            while (it.hasNext()) {
                Record record = it.next();
                record.ensureValid();
                print(record(record, batch.isControlBatch()));
                count++;
            }
        }
        return count;
    }

    private static ObjectNode record(Record record, boolean control) {
        ObjectNode row = Lines.JSON.createObjectNode().put("type", "record").put("offset", record.offset())
            .put("timestamp", record.timestamp())
            .put("sequence", record.sequence())
            .put("key", array(record.key()))
            .put("value", array(record.value()));
        ArrayNode headers = row.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(header.value());
        }
        if (control) {
            row.put("control", ControlRecordType.parse(record.key()).name());
        }
        return row;
    }

    private static byte[] array(ByteBuffer buffer) {
        if (buffer == null) {
            return null;
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }
}
