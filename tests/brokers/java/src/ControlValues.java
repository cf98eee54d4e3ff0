import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.message.EndTxnMarker;
import org.apache.kafka.common.message.EndTxnMarkerJsonConverter;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.KRaftVersionRecordJsonConverter;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.LeaderChangeMessageJsonConverter;
import org.apache.kafka.common.message.SnapshotFooterRecord;
import org.apache.kafka.common.message.SnapshotFooterRecordJsonConverter;
import org.apache.kafka.common.message.SnapshotHeaderRecord;
import org.apache.kafka.common.message.SnapshotHeaderRecordJsonConverter;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.message.VotersRecordJsonConverter;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.types.RawTaggedField;

import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.Map;

/**
 * Writes and reads the values of control records with Kafka's own classes.
 *
 * <p>A request names a {@code message} and a {@code version}. With {@code value}, Kafka's JSON of the message, the answer
 * has the bytes as {@code hex}; {@code tags} are tagged fields that Kafka does not know, as a number and bytes. With
 * {@code hex} the answer has the {@code value}, how many bytes are {@code left}, and what Kafka writes
 * for the message {@code again}.
 */
public final class ControlValues {
    private interface Reader {
        Message read(JsonNode value, short version);
    }

    private interface Writer {
        JsonNode write(Message message, short version);
    }

    private record Kind(Reader reader, Writer writer) { }

    private static final Map<String, Kind> KINDS = Map.of(
        "EndTxnMarker", new Kind(
            EndTxnMarkerJsonConverter::read,
            (m, v) -> EndTxnMarkerJsonConverter.write((EndTxnMarker) m, v)),
        "LeaderChangeMessage", new Kind(
            LeaderChangeMessageJsonConverter::read,
            (m, v) -> LeaderChangeMessageJsonConverter.write((LeaderChangeMessage) m, v)),
        "SnapshotHeaderRecord", new Kind(
            SnapshotHeaderRecordJsonConverter::read,
            (m, v) -> SnapshotHeaderRecordJsonConverter.write((SnapshotHeaderRecord) m, v)),
        "SnapshotFooterRecord", new Kind(
            SnapshotFooterRecordJsonConverter::read,
            (m, v) -> SnapshotFooterRecordJsonConverter.write((SnapshotFooterRecord) m, v)),
        "KRaftVersionRecord", new Kind(
            KRaftVersionRecordJsonConverter::read,
            (m, v) -> KRaftVersionRecordJsonConverter.write((KRaftVersionRecord) m, v)),
        "VotersRecord", new Kind(
            VotersRecordJsonConverter::read,
            (m, v) -> VotersRecordJsonConverter.write((VotersRecord) m, v)));

    private ControlValues() { }

    public static void main(String[] args) throws Exception {
        Lines.serve(ControlValues::handle);
    }

    private static void handle(JsonNode request, ObjectNode answer) throws Exception {
        String name = request.get("message").textValue();
        short version = (short) request.get("version").intValue();
        Kind kind = KINDS.get(name);
        if (request.has("value")) {
            Message message = kind.reader().read(request.get("value"), version);
            for (JsonNode tag : request.path("tags")) {
                byte[] data = HexFormat.of().parseHex(tag.get(1).textValue());
                message.unknownTaggedFields().add(new RawTaggedField(tag.get(0).intValue(), data));
            }
            ByteBuffer written = MessageUtil.toByteBufferAccessor(message, version).buffer();
            answer.put("hex", hex(written));
        } else {
            ByteBuffer data = ByteBuffer.wrap(HexFormat.of().parseHex(request.get("hex").textValue()));
            Class<?> type = Class.forName("org.apache.kafka.common.message." + name);
            Message message = (Message) type.getDeclaredConstructor().newInstance();
            message.read(new ByteBufferAccessor(data), version);
            answer.set("value", kind.writer().write(message, version));
            answer.put("left", data.remaining());
            answer.put("again", hex(MessageUtil.toByteBufferAccessor(message, version).buffer()));
        }
    }

    private static String hex(ByteBuffer buffer) {
        byte[] data = new byte[buffer.remaining()];
        buffer.duplicate().get(data);
        return HexFormat.of().formatHex(data);
    }
}
