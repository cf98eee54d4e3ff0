import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.admin.TransactionListing;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.config.ConfigResource;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.concurrent.TimeUnit;

/** What the Admin client of Kafka 4 says of a running cluster, and what it changes. */
public final class Administrator implements AutoCloseable {
    private static final long LIMIT_MS = 60_000;

    private final Admin admin;

    private Administrator(String servers) {
        this.admin = Admin.create(Map.of("bootstrap.servers", servers));
    }

    public static void main(String[] args) throws IOException {
        try (Administrator administrator = new Administrator(args[0])) {
            Lines.serve(administrator::handle);
        }
    }

    @Override
    public void close() {
        admin.close(Duration.ofSeconds(5));
    }

    private void handle(JsonNode request, ObjectNode answer) throws Exception {
        switch (request.get("op").asText()) {
            case "create_topic" -> createTopic(request);
            case "set" -> set(request);
            case "move" -> move(request);
            case "topics" -> topics(answer);
            case "configs" -> configs(request, answer);
            case "transactions" -> transactions(answer.putArray("transactions"));
            case "producers" -> producers(request, answer);
            case "groups" -> groups(answer.putArray("groups"));
            case "commit_for_streams" -> await(admin.alterStreamsGroupOffsets(request.get("group").asText(),
                Map.of(new TopicPartition(request.get("topic").asText(), request.get("partition").asInt()),
                    new OffsetAndMetadata(request.get("offset").asLong(), "of streams"))).all());
            default -> throw new IllegalArgumentException("unknown op " + request.get("op"));
        }
    }

    private static <T> T await(KafkaFuture<T> future) throws Exception {
        return future.get(LIMIT_MS, TimeUnit.MILLISECONDS);
    }

    /** A topic whose replicas are where the request says, the preferred leader first. */
    private void createTopic(JsonNode request) throws Exception {
        Map<Integer, List<Integer>> assignments = new HashMap<>();
        for (JsonNode replicas : request.get("assignments")) {
            List<Integer> ids = new ArrayList<>();
            replicas.forEach(id -> ids.add(id.asInt()));
            assignments.put(assignments.size(), ids);
        }
        NewTopic topic = new NewTopic(request.get("topic").asText(), assignments);
        await(admin.createTopics(List.of(topic.configs(Lines.strings(request.get("config"))))).all());
    }

    /** Settings of a resource; an empty value takes one away. */
    private void set(JsonNode request) throws Exception {
        ConfigResource.Type type = ConfigResource.Type.valueOf(request.get("type").asText());
        Collection<AlterConfigOp> ops = new ArrayList<>();
        Lines.strings(request.get("config")).forEach((name, value) -> ops.add(new AlterConfigOp(
            new ConfigEntry(name, value), value.isEmpty() ? AlterConfigOp.OpType.DELETE : AlterConfigOp.OpType.SET)));
        await(admin.incrementalAlterConfigs(Map.of(new ConfigResource(type, request.get("name").asText()), ops)).all());
    }

    /** Moves a replica to another log directory of its broker. */
    private void move(JsonNode request) throws Exception {
        TopicPartitionReplica replica = new TopicPartitionReplica(
            request.get("topic").asText(), request.get("partition").asInt(), request.get("broker").asInt());
        await(admin.alterReplicaLogDirs(Map.of(replica, request.get("directory").asText())).all());
    }

    private void topics(ObjectNode answer) throws Exception {
        Collection<String> names = await(admin.listTopics(
            new org.apache.kafka.clients.admin.ListTopicsOptions().listInternal(true)).names());
        for (TopicDescription topic : await(admin.describeTopics(names).allTopicNames()).values()) {
            ObjectNode said = answer.putObject(topic.name()).put("topic_id", topic.topicId().toString());
            ArrayNode partitions = said.putArray("partitions");
            for (TopicPartitionInfo info : topic.partitions()) {
                ObjectNode one = partitions.addObject().put("leader", info.leader() == null ? -1 : info.leader().id());
                ids(one.putArray("replicas"), info.replicas());
                ids(one.putArray("isr"), info.isr());
            }
        }
    }

    private static void ids(ArrayNode into, List<Node> nodes) {
        nodes.forEach(node -> into.add(node.id()));
    }

    /** What was set for topics, without defaults. */
    private void configs(JsonNode request, ObjectNode answer) throws Exception {
        List<ConfigResource> topics = new ArrayList<>();
        request.get("topics").forEach(name ->
            topics.add(new ConfigResource(ConfigResource.Type.TOPIC, name.asText())));
        await(admin.describeConfigs(topics).all()).forEach((topic, config) -> {
            ObjectNode said = answer.putObject(topic.name());
            for (ConfigEntry entry : config.entries()) {
                if (entry.source() == ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG) {
                    said.put(entry.name(), entry.value());
                }
            }
        });
    }

    private void transactions(ArrayNode answer) throws Exception {
        for (TransactionListing listed : await(admin.listTransactions().all())) {
            String id = listed.transactionalId();
            TransactionDescription said = await(admin.describeTransactions(List.of(id)).description(id));
            ObjectNode one = answer.addObject().put("transactional_id", id)
                .put("producer_id", said.producerId()).put("producer_epoch", said.producerEpoch())
                .put("state", said.state().toString()).put("timeout_ms", said.transactionTimeoutMs())
                .put("start_time", orNull(said.transactionStartTimeMs()));
            ArrayNode partitions = one.putArray("partitions");
            said.topicPartitions().forEach(at -> partitions.add(at.toString()));
        }
    }

    private void producers(JsonNode request, ObjectNode answer) throws Exception {
        for (JsonNode at : request.get("partitions")) {
            TopicPartition partition = new TopicPartition(at.get("topic").asText(), at.get("partition").asInt());
            ArrayNode said = answer.putArray(partition.toString());
            var found = await(admin.describeProducers(List.of(partition)).partitionResult(partition));
            for (ProducerState one : found.activeProducers()) {
                OptionalInt epoch = one.coordinatorEpoch();
                said.addObject().put("producer_id", one.producerId()).put("producer_epoch", one.producerEpoch())
                    .put("last_sequence", one.lastSequence()).put("last_timestamp", one.lastTimestamp())
                    .put("coordinator_epoch", epoch.isPresent() ? (Integer) epoch.getAsInt() : null)
                    .put("open_since", orNull(one.currentTransactionStartOffset()));
            }
        }
    }

    private static Long orNull(OptionalLong value) {
        return value.isPresent() ? (Long) value.getAsLong() : null;
    }

    /** Groups of all kinds with what they have committed; of a share group the offsets where it starts. */
    private void groups(ArrayNode answer) throws Exception {
        for (GroupListing group : await(admin.listGroups().all())) {
            String id = group.groupId();
            GroupType type = group.type().orElse(GroupType.UNKNOWN);
            ObjectNode offsets = answer.addObject().put("group", id).put("type", type.toString()).putObject("offsets");
            for (var entry : committed(id, type).entrySet()) {
                if (entry.getValue() != null) {
                    OffsetAndMetadata at = entry.getValue();
                    offsets.putObject(entry.getKey().toString()).put("offset", at.offset())
                        .put("leader_epoch", at.leaderEpoch().orElse(null)).put("metadata", at.metadata());
                }
            }
        }
    }

    private Map<TopicPartition, OffsetAndMetadata> committed(String group, GroupType type) throws Exception {
        return switch (type) {
            case SHARE -> shared(group);
            case STREAMS -> await(admin.listStreamsGroupOffsets(Map.of(group,
                new org.apache.kafka.clients.admin.ListStreamsGroupOffsetsSpec())).partitionsToOffsetAndMetadata(group));
            default -> await(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata());
        };
    }

    private Map<TopicPartition, OffsetAndMetadata> shared(String group) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> out = new HashMap<>();
        await(admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec())).partitionsToOffsetInfo(group))
            .forEach((at, info) -> out.put(at, info == null ? null : new OffsetAndMetadata(info.startOffset(),
                info.leaderEpoch(), "")));
        return out;
    }
}
