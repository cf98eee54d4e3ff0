// Prints what the Avro serializer of the Apicurio Registry writes, one JSON object per line. make_registry_frames.py runs it.
import io.apicurio.registry.resolver.ParsedSchemaImpl;
import io.apicurio.registry.resolver.SchemaLookupResult;
import io.apicurio.registry.resolver.SchemaResolver;
import io.apicurio.registry.serde.avro.AvroKafkaSerializer;
import java.lang.reflect.Proxy;
import java.util.HexFormat;
import java.util.Map;
import java.util.StringJoiner;
import java.util.TreeMap;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;

public class ApicurioFrames {
    static final String AVRO =
            "{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"n\",\"type\":\"long\"},{\"name\":\"s\",\"type\":\"string\"}]}";
    static final Schema SCHEMA = new Schema.Parser().parse(AVRO);

    /** A registry in which the schema has the globalId 70 and the contentId 7. */
    @SuppressWarnings("unchecked")
    static SchemaResolver<Schema, Object> resolver() {
        var found = SchemaLookupResult.<Schema>builder().globalId(70).contentId(7)
                .parsedSchema(new ParsedSchemaImpl<Schema>().setParsedSchema(SCHEMA)).build();
        return (SchemaResolver<Schema, Object>) Proxy.newProxyInstance(
                ApicurioFrames.class.getClassLoader(), new Class<?>[] {SchemaResolver.class},
                (proxy, method, arguments) -> method.getName().startsWith("resolveSchema") ? found : null);
    }

    static void print(boolean isKey, Map<String, Object> configs) {
        var record = new GenericData.Record(SCHEMA);
        record.put("n", 7L);
        record.put("s", "seven");
        var headers = new RecordHeaders();
        byte[] data;
        try (var serializer = new AvroKafkaSerializer<Object>(resolver())) {
            serializer.configure(configs, isKey);
            data = serializer.serialize("t", headers, record);
        }
        var printed = new StringJoiner(", ", "{", "}");
        for (Header header : headers) {
            printed.add("\"%s\": \"%s\"".formatted(header.key(), HexFormat.of().formatHex(header.value())));
        }
        var shown = new StringJoiner(", ", "{", "}");
        new TreeMap<>(configs).forEach((name, value) -> shown.add("\"%s\": \"%s\"".formatted(name, value)));
        System.out.printf(
                "{\"writer\": \"apicurio\", \"part\": \"%s\", \"configs\": %s, \"headers\": %s, \"hex\": \"%s\"}%n",
                isKey ? "key" : "value", shown, printed, HexFormat.of().formatHex(data));
    }

    public static void main(String[] args) {
        String headers = "apicurio.registry.headers.enabled", id = "apicurio.registry.use-id";
        for (boolean isKey : new boolean[] {false, true}) {
            for (String kind : new String[] {"globalId", "contentId"}) {
                print(isKey, Map.of(id, kind));
                print(isKey, Map.of(id, kind, "apicurio.registry.avro.encoding", "JSON"));
                print(isKey, Map.of(id, kind, headers, "false"));
                print(isKey, Map.of(id, kind, headers, "false", "apicurio.registry.as-confluent", "true"));
            }
        }
    }
}
