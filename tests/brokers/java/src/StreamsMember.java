import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.Subtopology;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.TaskIds;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.TopicInfo;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.Topology;
import org.apache.kafka.common.message.StreamsGroupHeartbeatResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.ResponseHeader;
import org.apache.kafka.common.requests.StreamsGroupHeartbeatRequest;
import org.apache.kafka.common.requests.StreamsGroupHeartbeatResponse;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * Members of a streams group, as far as the coordinator can tell: their heartbeats, in the classes of Kafka's clients. An
 * application of Kafka Streams would bring a library of 70 MB along.
 */
public final class StreamsMember {
    private static final int LIMIT_MS = 30_000;
    private static final ApiKeys API = ApiKeys.STREAMS_GROUP_HEARTBEAT;
    private static final short VERSION = 0;

    private final String host;
    private final int port;
    private int correlation;

    private StreamsMember(String server) {
        int colon = server.lastIndexOf(':');
        this.host = server.substring(0, colon);
        this.port = Integer.parseInt(server.substring(colon + 1));
    }

    public static void main(String[] args) throws IOException {
        StreamsMember member = new StreamsMember(args[0]);
        Lines.serve(member::handle);
    }

    private void handle(JsonNode request, ObjectNode answer) throws Exception {
        StreamsGroupHeartbeatResponseData said = ask(heartbeat(request));
        if (said.errorCode() != 0) {
            throw new IllegalStateException("error " + said.errorCode() + ": " + said.errorMessage());
        }
        answer.put("epoch", said.memberEpoch());
        tasks(answer, "active", said.activeTasks());
        tasks(answer, "standby", said.standbyTasks());
        tasks(answer, "warmup", said.warmupTasks());
    }

    private static void tasks(ObjectNode answer, String name, List<StreamsGroupHeartbeatResponseData.TaskIds> tasks) {
        if (tasks == null) {
            answer.putNull(name); // as before
            return;
        }
        ArrayNode partitions = answer.putArray(name);
        tasks.forEach(task -> task.partitions().forEach(partitions::add));
    }

    /** With the epoch 0 a member joins and says its topology, with -1 it leaves. */
    private static StreamsGroupHeartbeatRequestData heartbeat(JsonNode request) {
        String member = request.get("member").asText();
        int epoch = request.get("epoch").asInt();
        StreamsGroupHeartbeatRequestData data = new StreamsGroupHeartbeatRequestData()
            .setGroupId(request.get("group").asText()).setMemberId(member).setMemberEpoch(epoch);
        if (epoch < 0) {
            return data;
        }
        String topic = request.get("topic").asText();
        if (epoch == 0) {
            TopicInfo changelog = new TopicInfo().setName(topic + "-changelog");
            Subtopology only = new Subtopology().setSubtopologyId("0").setSourceTopics(List.of(topic))
                .setStateChangelogTopics(List.of(changelog));
            data.setTopology(new Topology().setEpoch(1).setSubtopologies(List.of(only)))
                .setProcessId("process-of-" + member).setClientTags(List.of()).setRebalanceTimeoutMs(LIMIT_MS);
        }
        return data.setActiveTasks(owned(request, "active")).setStandbyTasks(owned(request, "standby"))
            .setWarmupTasks(owned(request, "warmup"));
    }

    private static List<TaskIds> owned(JsonNode request, String name) {
        List<Integer> partitions = new ArrayList<>();
        request.get(name).forEach(number -> partitions.add(number.asInt()));
        return partitions.isEmpty() ? List.of()
            : List.of(new TaskIds().setSubtopologyId("0").setPartitions(partitions));
    }

    private StreamsGroupHeartbeatResponseData ask(StreamsGroupHeartbeatRequestData data) throws IOException {
        RequestHeader header = new RequestHeader(API, VERSION, "streams-member", correlation++);
        ByteBuffer bytes = new StreamsGroupHeartbeatRequest.Builder(data).build(VERSION).serializeWithHeader(header);
        try (Socket socket = new Socket(host, port)) {
            socket.setSoTimeout(LIMIT_MS);
            DataOutputStream out = new DataOutputStream(socket.getOutputStream());
            out.writeInt(bytes.remaining());
            out.write(bytes.array(), bytes.arrayOffset() + bytes.position(), bytes.remaining());
            out.flush();
            DataInputStream in = new DataInputStream(socket.getInputStream());
            byte[] answer = new byte[in.readInt()];
            in.readFully(answer);
            ByteBuffer read = ByteBuffer.wrap(answer);
            ResponseHeader.parse(read, API.responseHeaderVersion(VERSION));
            return StreamsGroupHeartbeatResponse.parse(new ByteBufferAccessor(read), VERSION).data();
        }
    }
}
