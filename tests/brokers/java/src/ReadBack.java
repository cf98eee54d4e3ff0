import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.CloseableIterator;

import java.io.File;
import java.util.Iterator;

/**
 * Prints each batch and record of the segment files named on standard input, one path a line, as JSON lines.
 *
 * <p>It reads them as a broker does: through FileRecords, each batch checked first, then its records. An exception of
 * Kafka's ends the file and stands in its "end" line.
 */
public final class ReadBack {
    private ReadBack() { }

    public static void main(String[] args) throws Exception {
        Lines.files(ReadBack::file);
    }

    private static void file(File path, Lines.Rows out) throws Exception {
        long position = 0;
        long batches = 0;
        long records = 0;
        String error = null;
        try (FileRecords file = FileRecords.open(path, false)) {
            for (Iterator<? extends RecordBatch> it = file.batchIterator(); it.hasNext(); ) {
                RecordBatch batch = it.next();
                batch.ensureValid();
                out.print(batch(batch, position));
                records += records(batch, out);
                position += batch.sizeInBytes();
                batches++;
            }
        } catch (Exception e) {
            error = e.toString();
        }
        out.print(Lines.row("end").put("batches", batches).put("records", records)
            .put("iteratedBytes", position).put("trailingBytes", path.length() - position).put("error", error));
    }

    private static ObjectNode batch(RecordBatch batch, long position) {
        ObjectNode row = Lines.row("batch").put("position", position)
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

    private static long records(RecordBatch batch, Lines.Rows out) throws Exception {
        long count = 0;
        try (CloseableIterator<Record> it = batch.streamingIterator(BufferSupplier.create())) {
            while (it.hasNext()) {
                Record record = it.next();
                record.ensureValid();
                out.print(record(record, batch.isControlBatch()));
                count++;
            }
        }
        return count;
    }

    private static ObjectNode record(Record record, boolean control) {
        ObjectNode row = Lines.record(
            record.offset(), record.timestamp(), record.sequence(), record.key(), record.value());
        ArrayNode headers = row.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(header.value());
        }
        if (control) {
            row.put("control", ControlRecordType.parse(record.key()).name());
        }
        return row;
    }
}
