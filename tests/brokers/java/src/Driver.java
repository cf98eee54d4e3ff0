import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Does what the requests on standard input say with Apache Kafka's public client API alone. Every wait has an end. */
public final class Driver implements AutoCloseable {
    private static final long LIMIT_MS = 60_000;
    private static final Duration POLL = Duration.ofMillis(200);
    private static final Duration PROBE = Duration.ofMillis(700);

    private final String servers;
    private final Admin admin;
    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();

    private Driver(String servers) {
        this.servers = servers;
        this.admin = Admin.create(Map.of("bootstrap.servers", servers));
    }

    public static void main(String[] args) throws IOException {
        try (Driver driver = new Driver(args[0])) {
            Lines.serve(driver::handle);
        }
    }

    /** Closes without waiting, so that a transaction that is left open stays open. */
    @Override
    public void close() {
        producers.values().forEach(producer -> producer.close(Duration.ZERO));
        admin.close(Duration.ofSeconds(5));
    }

    private void handle(JsonNode request, ObjectNode answer) throws Exception {
        String op = request.get("op").asText();
        switch (op) {
            case "versions" -> versions(answer);
            case "create_topic" -> createTopic(request);
            case "alter_topic" -> alterTopic(request);
            case "delete_records" -> await(admin.deleteRecords(Map.of(
                partition(request), RecordsToDelete.beforeOffset(request.get("before").asLong()))).all());
            case "producer" -> producers.put(request.get("producer").asText(),
                new KafkaProducer<>(new HashMap<>(Lines.strings(request.get("config")))));
            case "send" -> send(producer(request), request, answer);
            case "init_transactions" -> producer(request).initTransactions();
            case "begin" -> producer(request).beginTransaction();
            case "commit" -> producer(request).commitTransaction();
            case "abort" -> producer(request).abortTransaction();
            case "send_offsets" -> sendOffsets(request);
            case "close" -> {
                producer(request).close(Duration.ofMillis(request.get("wait_ms").asLong()));
                producers.remove(request.get("producer").asText());
            }
            case "commit_group" -> commitGroup(request, answer);
            case "digest" -> digest(request, answer);
            case "probe" -> probe(request, answer);
            default -> throw new IllegalArgumentException("unknown op " + op);
        }
    }

    private KafkaProducer<byte[], byte[]> producer(JsonNode request) {
        KafkaProducer<byte[], byte[]> producer = producers.get(request.get("producer").asText());
        if (producer == null) {
            throw new IllegalArgumentException("no producer " + request.get("producer"));
        }
        return producer;
    }

    private static void versions(ObjectNode answer) throws IOException {
        Properties kafka = new Properties();
        try (InputStream in = Driver.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            kafka.load(in);
        }
        answer.put("clients", kafka.getProperty("version")).put("java", System.getProperty("java.version"));
    }

    private static TopicPartition partition(JsonNode request) {
        return new TopicPartition(request.get("topic").asText(), request.get("partition").asInt());
    }

    private static <T> T await(KafkaFuture<T> future) throws Exception {
        return future.get(LIMIT_MS, TimeUnit.MILLISECONDS);
    }

    private void createTopic(JsonNode request) throws Exception {
        NewTopic topic = new NewTopic(request.get("topic").asText(), request.get("partitions").asInt(), (short) 1);
        await(admin.createTopics(List.of(topic.configs(Lines.strings(request.get("config"))))).all());
    }

    private void alterTopic(JsonNode request) throws Exception {
        Collection<AlterConfigOp> changes = new ArrayList<>();
        Lines.strings(request.get("config")).forEach((name, value) ->
            changes.add(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)));
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, request.get("topic").asText());
        await(admin.incrementalAlterConfigs(Map.of(topic, changes)).all());
    }

    private static void send(KafkaProducer<byte[], byte[]> producer, JsonNode request, ObjectNode answer)
            throws Exception {
        TopicPartition to = partition(request);
        Integer place = to.partition() < 0 ? null : Integer.valueOf(to.partition()); // null: the producer chooses
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode record : request.get("records")) {
            ProducerRecord<byte[], byte[]> made = new ProducerRecord<>(to.topic(), place,
                record.get("t").asLong(), Lines.bytes(record.get("k")), Lines.bytes(record.get("v")));
            for (JsonNode header : record.get("h")) {
                made.headers().add(header.get(0).asText(), Lines.bytes(header.get(1)));
            }
            sent.add(producer.send(made));
        }
        producer.flush();
        long last = -1;
        for (Future<RecordMetadata> future : sent) {
            last = future.get(LIMIT_MS, TimeUnit.MILLISECONDS).offset();
        }
        answer.put("last_offset", last);
    }

    private KafkaConsumer<byte[], byte[]> consumer(Map<String, String> more) {
        Map<String, Object> config = new HashMap<>(Map.of(
            "bootstrap.servers", servers,
            "enable.auto.commit", "false",
            "auto.offset.reset", "earliest",
            // A fetch at the end of a partition delays the fetch of the next partition by this.
            "fetch.max.wait.ms", "10",
            "key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer",
            "value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer"));
        config.putAll(more);
        return new KafkaConsumer<>(config);
    }

    private void sendOffsets(JsonNode request) {
        Map<String, String> config = Map.of("group.id", request.get("group").asText());
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(config)) {
            OffsetAndMetadata offset = new OffsetAndMetadata(request.get("offset").asLong(), "in a transaction");
            producer(request).sendOffsetsToTransaction(Map.of(partition(request), offset), consumer.groupMetadata());
        }
    }

    /** Joins a group, reads what one poll gives, commits those offsets and leaves. */
    private void commitGroup(JsonNode request, ObjectNode answer) throws Exception {
        long end = System.currentTimeMillis() + LIMIT_MS;
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(Lines.strings(request.get("config")))) {
            consumer.subscribe(List.of(request.get("topic").asText()));
            int count = 0;
            while (count == 0) {
                if (System.currentTimeMillis() > end) {
                    throw new TimeoutException("no record for group in " + LIMIT_MS + " ms");
                }
                count = consumer.poll(POLL).count();
            }
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            for (TopicPartition at : consumer.assignment()) {
                offsets.put(at, new OffsetAndMetadata(consumer.position(at), "read by " + request.get("topic").asText()));
            }
            consumer.commitSync(offsets);
            answer.put("records", count);
        }
    }

    /** For offsets and times the first offset that a consumer gets from there; null where it gets none. */
    private void probe(JsonNode request, ObjectNode answer) throws Exception {
        TopicPartition at = partition(request);
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(Map.of("max.poll.records", "1"))) {
            consumer.assign(List.of(at));
            ArrayNode offsets = answer.putArray("offsets");
            for (JsonNode offset : request.get("offsets")) {
                consumer.seek(at, offset.asLong());
                offsets.add(first(consumer));
            }
            ArrayNode times = answer.putArray("times");
            for (JsonNode time : request.get("times")) {
                OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(at, time.asLong()), PROBE).get(at);
                times.add(found == null ? null : (Long) found.offset());
            }
        }
    }

    private static Long first(KafkaConsumer<byte[], byte[]> consumer) {
        long end = System.currentTimeMillis() + PROBE.toMillis();
        while (System.currentTimeMillis() < end) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                return record.offset();
            }
        }
        return null;
    }

    private void digest(JsonNode request, ObjectNode answer) throws Exception {
        for (String isolation : List.of("read_uncommitted", "read_committed")) {
            try (KafkaConsumer<byte[], byte[]> consumer = consumer(Map.of("isolation.level", isolation))) {
                for (JsonNode at : request.get("partitions")) {
                    TopicPartition partition = partition(at);
                    String name = partition.toString();
                    ObjectNode both = answer.has(name) ? (ObjectNode) answer.get(name) : answer.putObject(name);
                    digest(consumer, partition, both.putObject(isolation), request.path("limit_ms").asLong(LIMIT_MS));
                }
            }
        }
    }

    private static void digest(KafkaConsumer<byte[], byte[]> consumer, TopicPartition at, ObjectNode answer,
            long limitMs) throws Exception {
        MessageDigest sha = MessageDigest.getInstance("SHA-256");
        long count = 0;
        Long first = null;
        Long last = null;
        consumer.assign(List.of(at));
        consumer.seekToBeginning(List.of(at));
        long start = consumer.position(at);
        long stop = consumer.endOffsets(List.of(at)).get(at);
        long limit = System.currentTimeMillis() + limitMs;
        while (consumer.position(at) < stop) {
            if (System.currentTimeMillis() > limit) {
                throw new TimeoutException(at + " is read to " + consumer.position(at) + " of " + stop);
            }
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                sha.update(canonical(record));
                first = first == null ? (Long) record.offset() : first;
                last = record.offset();
                count++;
            }
        }
        answer.put("start_offset", start).put("end_offset", stop).put("count", count)
            .put("first_offset", first).put("last_offset", last)
            .put("sha256", String.format("%064x", new BigInteger(1, sha.digest())));
    }

    private static byte[] canonical(ConsumerRecord<byte[], byte[]> record) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeLong(record.offset());
        out.writeLong(record.timestamp());
        blob(out, record.key());
        blob(out, record.value());
        Header[] headers = record.headers().toArray();
        out.writeInt(headers.length);
        for (Header header : headers) {
            blob(out, header.key().getBytes(StandardCharsets.UTF_8));
            blob(out, header.value());
        }
        return bytes.toByteArray();
    }

    private static void blob(DataOutputStream out, byte[] value) throws IOException {
        out.writeInt(value == null ? -1 : value.length);
        if (value != null) {
            out.write(value);
        }
    }
}
