import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.message.KRaftVersionRecordJsonConverter;
import org.apache.kafka.common.message.LeaderChangeMessageJsonConverter;
import org.apache.kafka.common.message.SnapshotFooterRecordJsonConverter;
import org.apache.kafka.common.message.SnapshotHeaderRecordJsonConverter;
import org.apache.kafka.common.message.VotersRecordJsonConverter;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.ControlRecordUtils;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.CloseableIterator;

import java.io.File;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;

/**
 * Prints what Kafka's own reader makes of the segment files named on standard input, one path a line: JSON lines with the
 * names of the reference vectors, and an "end" line for each file.
 *
 * <p>Unlike ReadBack it goes on where it can: a checksum that is wrong is told, a value that cannot be had is null, and the
 * records before an error are given. Errors are told by where they were met; their classes and texts are not compared.
 */
public final class Judge {
    private interface Value {
        Object get() throws Exception;
    }

    private Judge() { }

    public static void main(String[] args) throws Exception {
        Lines.files(Judge::file);
    }

    /** Records of damaged batches may ask for any memory: an Error is an answer too. */
    private static void file(File path, Lines.Rows out) throws Exception {
        long size = path.length();
        long position = 0;
        long valid = 0;
        boolean stillValid = true;
        long batches = 0;
        long records = 0;
        Throwable error = null;
        try (FileRecords file = FileRecords.open(path, false)) {
            Iterator<? extends RecordBatch> it = file.batchIterator();
            while (true) {
                RecordBatch batch;
                try {
                    if (!it.hasNext()) {
                        break;
                    }
                    batch = it.next();
                } catch (Throwable e) {
                    error = e;
                    break;
                }
                ObjectNode row = Lines.row("batch").put("position", position).put("sizeInBytes", batch.sizeInBytes());
                ArrayNode errors = Lines.JSON.createArrayNode();
                header(batch, row, errors);
                stillValid &= row.get("ensureValid").asBoolean();
                position += batch.sizeInBytes();
                valid = stillValid ? position : valid;
                List<ObjectNode> found = new ArrayList<>();
                records(batch, found, errors);
                if (!errors.isEmpty()) {
                    row.set("errors", errors);
                }
                out.print(row);
                for (ObjectNode record : found) {
                    out.print(record);
                }
                records += found.size();
                batches++;
            }
        }
        String stop = error != null ? "error" : position == size ? "eof" : "partial";
        out.print(Lines.row("end").put("batches", batches).put("records", records).put("validBytes", valid)
            .put("iteratedBytes", position).put("trailingBytes", size - position).put("stop", stop)
            .put("exception", error == null ? null : error.toString()));
    }

    private static void header(RecordBatch batch, ObjectNode row, ArrayNode errors) {
        value(row, errors, "baseOffset", batch::baseOffset);
        value(row, errors, "lastOffset", batch::lastOffset);
        value(row, errors, "nextOffset", batch::nextOffset);
        value(row, errors, "magic", batch::magic);
        value(row, errors, "crc", batch::checksum);
        value(row, errors, "isValid", batch::isValid);
        boolean valid = true;
        try {
            batch.ensureValid();
        } catch (Throwable e) {
            valid = false;
        }
        row.put("ensureValid", valid);
        value(row, errors, "compression", () -> batch.compressionType().name);
        value(row, errors, "timestampType", () -> batch.timestampType().name);
        value(row, errors, "maxTimestamp", batch::maxTimestamp);
        value(row, errors, "producerId", batch::producerId);
        value(row, errors, "producerEpoch", batch::producerEpoch);
        value(row, errors, "baseSequence", batch::baseSequence);
        value(row, errors, "lastSequence", batch::lastSequence);
        value(row, errors, "isTransactional", batch::isTransactional);
        value(row, errors, "isControl", batch::isControlBatch);
        value(row, errors, "partitionLeaderEpoch", batch::partitionLeaderEpoch);
        value(row, errors, "deleteHorizonMs", () -> {
            boolean there = batch.deleteHorizonMs().isPresent();
            return there ? (Object) batch.deleteHorizonMs().getAsLong() : null;
        });
        value(row, errors, "count", batch::countOrNull);
    }

    private static void value(ObjectNode row, ArrayNode errors, String name, Value value) {
        try {
            row.set(name, Lines.JSON.valueToTree(value.get()));
        } catch (Throwable e) {
            row.putNull(name);
            error(errors, name, e);
        }
    }

    private static void error(ArrayNode errors, String at, Throwable e) {
        Throwable cause = e.getCause();
        errors.addObject().put("at", at).put("error", cause == null ? e.toString() : e + ", from " + cause);
    }

    private static void records(RecordBatch batch, List<ObjectNode> found, ArrayNode errors) {
        CloseableIterator<Record> it = null;
        try {
            it = batch.streamingIterator(BufferSupplier.create());
            while (it.hasNext()) {
                Record record = it.next();
                ObjectNode row = record(record);
                if (batch.isControlBatch()) {
                    row.set("control", control(record));
                }
                found.add(row);
            }
        } catch (Throwable e) {
            error(errors, "records", e);
        } finally {
            if (it != null) {
                it.close();
            }
        }
    }

    /** What a control record says: its type, and its value with the names of Kafka's message definitions, or an error. */
    private static ObjectNode control(Record record) {
        ObjectNode out = Lines.JSON.createObjectNode();
        try {
            short number = ControlRecordType.parseTypeId(record.key());
            ControlRecordType type = ControlRecordType.fromTypeId(number);
            out.put("typeId", number).put("type", type.name());
            short version = 0;
            switch (type) {
                case COMMIT, ABORT ->
                    out.put("coordinatorEpoch", EndTransactionMarker.deserialize(record).coordinatorEpoch());
                case LEADER_CHANGE -> out.set("data",
                    LeaderChangeMessageJsonConverter.write(ControlRecordUtils.deserializeLeaderChangeMessage(record), version));
                case SNAPSHOT_HEADER -> out.set("data",
                    SnapshotHeaderRecordJsonConverter.write(ControlRecordUtils.deserializeSnapshotHeaderRecord(record), version));
                case SNAPSHOT_FOOTER -> out.set("data",
                    SnapshotFooterRecordJsonConverter.write(ControlRecordUtils.deserializeSnapshotFooterRecord(record), version));
                case KRAFT_VERSION -> out.set("data",
                    KRaftVersionRecordJsonConverter.write(ControlRecordUtils.deserializeKRaftVersionRecord(record), version));
                case KRAFT_VOTERS -> out.set("data",
                    VotersRecordJsonConverter.write(ControlRecordUtils.deserializeVotersRecord(record), version));
                default -> { }
            }
        } catch (Throwable e) {
            out.put("error", e.toString());
        }
        return out;
    }

    private static ObjectNode record(Record record) {
        ObjectNode row = Lines.record(
            record.offset(), record.timestamp(), record.sequence(), record.key(), record.value());
        ArrayNode headers = row.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(header.value());
        }
        boolean valid = true;
        try {
            record.ensureValid();
        } catch (Throwable e) {
            valid = false;
        }
        return row.put("isValid", valid);
    }
}
