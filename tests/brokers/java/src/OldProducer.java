import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/** The part of {@link Driver} that clients before 0.11 have: a producer without headers, ids or transactions. */
public final class OldProducer {
    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();

    public static void main(String[] args) throws Exception {
        OldProducer driver = new OldProducer();
        Lines.serve(driver::handle);
        for (KafkaProducer<byte[], byte[]> producer : driver.producers.values()) {
            producer.close(5, TimeUnit.SECONDS);
        }
    }

    private void handle(JsonNode request, ObjectNode answer) throws Exception {
        String op = request.get("op").asText();
        String id = request.get("producer").asText();
        switch (op) {
            case "producer" -> producers.put(id, new KafkaProducer<>(new HashMap<>(Lines.strings(request.get("config")))));
            case "send" -> send(producers.get(id), request, answer);
            case "close" -> producers.remove(id).close(10, TimeUnit.SECONDS);
            default -> throw new IllegalArgumentException("unknown op " + op);
        }
    }

    private static void send(KafkaProducer<byte[], byte[]> producer, JsonNode request, ObjectNode answer)
            throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode record : request.get("records")) {
            sent.add(producer.send(record(request.get("topic").asText(), request.get("partition").asInt(), record)));
        }
        producer.flush();
        long last = -1;
        for (Future<RecordMetadata> future : sent) {
            last = future.get(30, TimeUnit.SECONDS).offset();
        }
        answer.put("last_offset", last);
    }

    /** Clients before 0.10 know no timestamp, and their record class has no constructor that takes one. */
    @SuppressWarnings("unchecked")
    private static ProducerRecord<byte[], byte[]> record(String topic, int partition, JsonNode record)
            throws ReflectiveOperationException {
        byte[] key = Lines.bytes(record.get("k"));
        byte[] value = Lines.bytes(record.get("v"));
        for (Constructor<?> constructor : ProducerRecord.class.getConstructors()) {
            if (constructor.getParameterCount() == 5) {
                return (ProducerRecord<byte[], byte[]>)
                    constructor.newInstance(topic, partition, record.get("t").asLong(), key, value);
            }
        }
        return new ProducerRecord<>(topic, partition, key, value);
    }
}
