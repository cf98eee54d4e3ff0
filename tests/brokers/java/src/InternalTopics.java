import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;

import java.io.IOException;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Makes a cluster write what lies in Kafka's own topics: groups of all kinds, transactions, and what administrators do. */
public final class InternalTopics implements AutoCloseable {
    private static final long LIMIT_MS = 60_000;
    private static final Duration POLL = Duration.ofMillis(200);
    private static final String TOPIC = "orders";
    private static final String BYTES = "org.apache.kafka.common.serialization.ByteArray";

    private final String servers;
    private final Admin admin;

    private InternalTopics(String servers) {
        this.servers = servers;
        this.admin = Admin.create(Map.of("bootstrap.servers", servers));
    }

    public static void main(String[] args) throws IOException {
        try (InternalTopics topics = new InternalTopics(args[0])) {
            Lines.serve(topics::handle);
        }
    }

    @Override
    public void close() {
        admin.close(Duration.ofSeconds(5));
    }

    private void handle(JsonNode request, ObjectNode answer) throws Exception {
        switch (request.get("op").asText()) {
            case "fill" -> {
                topics();
                administration();
                classicGroup();
                consumerGroup();
                shareGroup();
                transactions();
                deletions();
            }
            default -> throw new IllegalArgumentException("unknown op " + request.get("op"));
        }
    }

    private static <T> T await(KafkaFuture<T> future) throws Exception {
        return future.get(LIMIT_MS, TimeUnit.MILLISECONDS);
    }

    private void topics() throws Exception {
        await(admin.createTopics(List.of(
            new NewTopic(TOPIC, 2, (short) 1).configs(Map.of("cleanup.policy", "compact", "retention.ms", "600000")),
            new NewTopic("orders-late", 1, (short) 1),
            new NewTopic("doomed", 1, (short) 1))).all());
        await(admin.createPartitions(Map.of("orders-late", NewPartitions.increaseTo(3))).all());
        try (KafkaProducer<byte[], byte[]> producer = producer(Map.of())) {
            for (int i = 0; i < 20; i++) {
                producer.send(new ProducerRecord<>(TOPIC, i % 2, new byte[] {(byte) i}, new byte[] {1, 2, 3}));
                producer.send(new ProducerRecord<>("orders-late", i % 3, null, new byte[] {(byte) i}));
            }
            producer.flush();
        }
    }

    private void administration() throws Exception {
        ResourcePattern literal = new ResourcePattern(ResourceType.TOPIC, TOPIC, PatternType.LITERAL);
        ResourcePattern prefix = new ResourcePattern(ResourceType.GROUP, "team-é", PatternType.PREFIXED);
        AclBinding kept = acl(literal, "User:ana", AclOperation.READ, AclPermissionType.ALLOW);
        AclBinding dropped = acl(prefix, "User:*", AclOperation.ALL, AclPermissionType.DENY);
        await(admin.createAcls(List.of(kept, dropped)).all());
        await(admin.deleteAcls(List.of(dropped.toFilter())).all());
        ScramCredentialInfo strong = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192);
        ScramCredentialInfo other = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096);
        await(admin.alterUserScramCredentials(List.of(
            new UserScramCredentialUpsertion("ana", strong, "secret"),
            new UserScramCredentialUpsertion("bob", other, "secret"))).all());
        await(admin.alterUserScramCredentials(List.of(
            new UserScramCredentialDeletion("bob", ScramMechanism.SCRAM_SHA_256))).all());
        Map<String, String> defaultClient = new HashMap<>();
        defaultClient.put(ClientQuotaEntity.CLIENT_ID, null);
        quota(new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, "ana")), "request_percentage", 12.5);
        quota(new ClientQuotaEntity(defaultClient), "consumer_byte_rate", 2e9);
        quota(new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, "ana")), "request_percentage", null);
        config(new ConfigResource(ConfigResource.Type.BROKER, "1"), "log.cleaner.threads", "2");
        config(new ConfigResource(ConfigResource.Type.BROKER, ""), "log.cleaner.backoff.ms", "600");
        config(new ConfigResource(ConfigResource.Type.TOPIC, TOPIC), "retention.bytes", "1000000");
        config(new ConfigResource(ConfigResource.Type.TOPIC, TOPIC), "retention.bytes", null);
        config(new ConfigResource(ConfigResource.Type.GROUP, "modern"), "consumer.session.timeout.ms", "50000");
        await(admin.updateFeatures(Map.of(
            "eligible.leader.replicas.version", new FeatureUpdate((short) 0, FeatureUpdate.UpgradeType.SAFE_DOWNGRADE)),
            new UpdateFeaturesOptions()).all());
    }

    private static AclBinding acl(ResourcePattern on, String who, AclOperation what, AclPermissionType may) {
        return new AclBinding(on, new AccessControlEntry(who, "*", what, may));
    }

    private void quota(ClientQuotaEntity who, String key, Double value) throws Exception {
        await(admin.alterClientQuotas(List.of(
            new ClientQuotaAlteration(who, List.of(new ClientQuotaAlteration.Op(key, value))))).all());
    }

    private void config(ConfigResource what, String key, String value) throws Exception {
        AlterConfigOp.OpType op = value == null ? AlterConfigOp.OpType.DELETE : AlterConfigOp.OpType.SET;
        Collection<AlterConfigOp> ops = List.of(new AlterConfigOp(new ConfigEntry(key, value), op));
        await(admin.incrementalAlterConfigs(Map.of(what, ops)).all());
    }

    private Map<String, Object> common(String group, Map<String, String> more) {
        Map<String, Object> config = new HashMap<>(Map.of(
            "bootstrap.servers", servers,
            "group.id", group,
            "client.id", "client-of-" + group,
            "key.deserializer", BYTES + "Deserializer",
            "value.deserializer", BYTES + "Deserializer"));
        config.putAll(more);
        return config;
    }

    private KafkaProducer<byte[], byte[]> producer(Map<String, String> more) {
        Map<String, Object> config = new HashMap<>(Map.of(
            "bootstrap.servers", servers,
            "key.serializer", BYTES + "Serializer",
            "value.serializer", BYTES + "Serializer"));
        config.putAll(more);
        return new KafkaProducer<>(config);
    }

    private static Map<String, String> reading(String protocol) {
        return Map.of("group.protocol", protocol, "enable.auto.commit", "false", "auto.offset.reset", "earliest");
    }

    private void classicGroup() throws Exception {
        Map<String, String> config = new HashMap<>(reading("classic"));
        config.put("group.instance.id", "instance-1");
        config.put("session.timeout.ms", "6000"); // a static member does not leave: its session ends
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(common("classic", config))) {
            consumer.subscribe(List.of(TOPIC));
            read(consumer);
            consumer.commitSync(Map.of(new TopicPartition(TOPIC, 0), new OffsetAndMetadata(3, Optional.of(7), "with é"),
                new TopicPartition(TOPIC, 1), new OffsetAndMetadata(4)));
        }
    }

    private void consumerGroup() throws Exception {
        try (KafkaConsumer<byte[], byte[]> one = new KafkaConsumer<>(common("modern", reading("consumer")));
             KafkaConsumer<byte[], byte[]> two = new KafkaConsumer<>(common("modern", reading("consumer")))) {
            one.subscribe(new SubscriptionPattern("orders.*"));
            two.subscribe(List.of(TOPIC, "orders-late"));
            read(one);
            long end = System.currentTimeMillis() + 5_000;
            while (System.currentTimeMillis() < end && (two.assignment().isEmpty() || one.assignment().size() > 3)) {
                one.poll(POLL);
                two.poll(POLL);
            }
            one.commitSync();
            two.commitSync();
        }
    }

    private static void read(KafkaConsumer<byte[], byte[]> consumer) throws TimeoutException {
        long end = System.currentTimeMillis() + LIMIT_MS;
        while (consumer.poll(POLL).isEmpty()) {
            if (System.currentTimeMillis() > end) {
                throw new TimeoutException("no record in " + LIMIT_MS + " ms");
            }
        }
    }

    private void shareGroup() throws Exception {
        config(new ConfigResource(ConfigResource.Type.GROUP, "shared"), "share.auto.offset.reset", "earliest");
        Map<String, String> explicit = Map.of("share.acknowledgement.mode", "explicit");
        try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(common("shared", explicit))) {
            consumer.subscribe(List.of("orders-late"));
            long end = System.currentTimeMillis() + LIMIT_MS;
            int count = 0;
            while (count < 20) {
                if (System.currentTimeMillis() > end) {
                    throw new TimeoutException(count + " records for the share group in " + LIMIT_MS + " ms");
                }
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                    AcknowledgeType[] all = {AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT};
                    consumer.acknowledge(record, all[count++ % 3]);
                }
                consumer.commitSync();
            }
        }
    }

    private void transactions() throws Exception {
        Map<String, String> id = Map.of("transactional.id", "tx-é", "transaction.timeout.ms", "60000");
        Map<String, Object> group = common("of-transactions", reading("classic"));
        try (KafkaProducer<byte[], byte[]> producer = producer(id);
             KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(group)) {
            producer.initTransactions();
            for (int i = 0; i < 4; i++) {
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(TOPIC, i % 2, new byte[] {9}, new byte[] {(byte) i}));
                producer.send(new ProducerRecord<>("orders-late", 0, null, new byte[] {(byte) i}));
                producer.flush();
                if (i == 2) {
                    Map<TopicPartition, OffsetAndMetadata> offsets =
                        Map.of(new TopicPartition(TOPIC, 0), new OffsetAndMetadata(5, "in a transaction"));
                    producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                }
                if (i % 2 == 0) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
            }
        }
    }

    /** What leaves tombstones, and records that take others back. */
    private void deletions() throws Exception {
        await(admin.deleteTopics(List.of("doomed")).all());
        await(admin.deleteConsumerGroupOffsets("of-transactions", java.util.Set.of(new TopicPartition(TOPIC, 0))).all());
        long end = System.currentTimeMillis() + LIMIT_MS;
        while (true) {
            try {
                await(admin.deleteConsumerGroups(List.of("classic")).all());
                return;
            } catch (java.util.concurrent.ExecutionException e) {
                if (System.currentTimeMillis() > end) {
                    throw e;
                }
                Thread.sleep(200);
            }
        }
    }
}
