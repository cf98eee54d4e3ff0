import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.types.ArrayOf;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.CompactArrayOf;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.Struct;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.internals.ImplicitLinkedHashCollection;

import java.io.File;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.HexFormat;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;

/**
 * Every message class that Kafka generates from its definitions: what it holds, what it writes and what it reads.
 *
 * <p>An empty request is answered with {@code messages}: of each the class, its apiKey (-1 for none), the versions with their
 * fields, the values that it has when nothing was set, and {@code structs}: for the message and each of its structs, by the
 * name of the class, the fields as the class declares them, with the struct that each holds and the value it has at first. Other requests name a {@code message} and a {@code version}. With {@code value},
 * Kafka's JSON of the message, the answer has the bytes as {@code hex}; {@code tags} are tagged fields that Kafka does not
 * know, as a number and bytes. With {@code random}, a seed, {@code hex} is what the class writes of a message that was made
 * up. With {@code hex} the answer has the {@code value}, how many bytes are {@code left}, and what Kafka writes for the
 * message {@code again}, or {@code unwritable}, why it does not.
 */
public final class Messages {
    private static final int LONGEST = 5;
    private static final int DEEPEST = 4;
    private static final Map<String, Class<? extends Message>> FOUND = new TreeMap<>();

    private Messages() { }

    public static void main(String[] args) throws Exception {
        for (String path : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (path.contains("kafka") && path.endsWith(".jar")) {
                find(path);
            }
        }
        Lines.serve(Messages::handle);
    }

    private static void find(String jar) throws Exception {
        try (JarFile file = new JarFile(jar)) {
            for (JarEntry entry : file.stream().toList()) {
                String name = entry.getName();
                if (name.endsWith("JsonConverter.class") && !name.contains("$")) {
                    String message = name.substring(0, name.length() - "JsonConverter.class".length()).replace('/', '.');
                    Class<? extends Message> type = Class.forName(message).asSubclass(Message.class);
                    if (FOUND.put(type.getSimpleName(), type) != null) {
                        throw new IllegalStateException("two messages are called " + type.getSimpleName());
                    }
                }
            }
        }
    }

    private static void handle(JsonNode request, ObjectNode answer) throws Exception {
        if (request.isEmpty()) {
            list(answer.putArray("messages"));
            return;
        }
        Class<? extends Message> type = FOUND.get(request.get("message").textValue());
        short version = (short) request.get("version").intValue();
        if (request.has("value")) {
            Message message = (Message) convert(type, "read", JsonNode.class, request.get("value"), version);
            for (JsonNode tag : request.path("tags")) {
                byte[] data = HexFormat.of().parseHex(tag.get(1).textValue());
                message.unknownTaggedFields().add(new RawTaggedField(tag.get(0).intValue(), data));
            }
            answer.put("hex", hex(MessageUtil.toByteBufferAccessor(message, version).buffer()));
        } else if (request.has("random")) {
            Schema schema = schemas(type)[version];
            Struct made = struct(schema, new Random(request.get("random").longValue()), 0);
            ByteBuffer data = ByteBuffer.allocate(schema.sizeOf(made));
            schema.write(data, made);
            Message message = read(type, data.flip(), version);
            answer.put("hex", hex(MessageUtil.toByteBufferAccessor(message, version).buffer()));
        } else {
            ByteBuffer data = ByteBuffer.wrap(HexFormat.of().parseHex(request.get("hex").textValue()));
            Message message = read(type, data, version);
            answer.set("value", json(message, version));
            answer.put("left", data.remaining());
            try {
                answer.put("again", hex(MessageUtil.toByteBufferAccessor(message, version).buffer()));
            } catch (RuntimeException e) {
                answer.put("unwritable", e.getClass().getName());
            }
        }
    }

    private static Message read(Class<? extends Message> type, ByteBuffer data, short version) throws Exception {
        Message message = type.getDeclaredConstructor().newInstance();
        message.read(new ByteBufferAccessor(data), version);
        return message;
    }

    private static JsonNode json(Message message, short version) throws Exception {
        return (JsonNode) convert(message.getClass(), "write", message.getClass(), message, version);
    }

    /** What the class says that makes JSON of a message and the other way round, or its exception. */
    private static Object convert(Class<?> type, String name, Class<?> first, Object value, short version)
            throws Exception {
        try {
            return Class.forName(type.getName() + "JsonConverter")
                .getMethod(name, first, short.class).invoke(null, value, version);
        } catch (InvocationTargetException e) {
            if (e.getCause() instanceof Exception cause) {
                throw cause;
            }
            throw e;
        }
    }

    private static Schema[] schemas(Class<? extends Message> type) throws Exception {
        return (Schema[]) type.getField("SCHEMAS").get(null);
    }

    // ---------------------------------------------------------------- what there is

    private static void list(ArrayNode messages) throws Exception {
        for (Class<? extends Message> type : FOUND.values()) {
            Message message = type.getDeclaredConstructor().newInstance();
            ObjectNode out = messages.addObject();
            out.put("message", type.getSimpleName());
            out.put("class", type.getName());
            out.put("api_key", message instanceof ApiMessage api ? api.apiKey() : -1);
            ObjectNode structs = out.putObject("structs");
            declared(type, structs.putArray(type.getSimpleName()));
            for (Class<?> inner : type.getDeclaredClasses()) {
                if (Message.class.isAssignableFrom(inner)) {
                    declared(inner, structs.putArray(inner.getSimpleName()));
                }
            }
            Schema[] schemas = schemas(type);
            ObjectNode versions = out.putObject("versions");
            ObjectNode defaults = out.putObject("defaults");
            for (short v = message.lowestSupportedVersion(); v <= message.highestSupportedVersion(); v++) {
                describe(schemas[v], versions.putArray(Short.toString(v)));
                try {
                    defaults.set(Short.toString(v), json(message, v));
                } catch (RuntimeException e) {
                    defaults.putNull(Short.toString(v));
                }
            }
        }
    }

    private static void declared(Class<?> type, ArrayNode fields) throws Exception {
        Object made = type.getDeclaredConstructor().newInstance();
        boolean linked = ImplicitLinkedHashCollection.Element.class.isAssignableFrom(type);
        for (java.lang.reflect.Field field : type.getDeclaredFields()) {
            String name = field.getName();
            if (Modifier.isStatic(field.getModifiers()) || name.startsWith("_")
                    || linked && (name.equals("next") || name.equals("prev"))) {
                continue;
            }
            field.setAccessible(true);
            ObjectNode out = fields.addObject().put("name", name).put("struct", held(field));
            Object value = field.get(made);
            if (value == null) {
                out.putNull("default");
            } else if (value instanceof Number || value instanceof Boolean || value instanceof CharSequence
                    || value instanceof Uuid) {
                out.put("default", value.toString());
            } else {
                out.put("default", "");
            }
        }
    }

    /** The struct that a field holds, alone or many times; nothing for other types. */
    private static String held(java.lang.reflect.Field field) {
        Class<?> type = field.getType();
        if (Collection.class.isAssignableFrom(type)) {
            java.lang.reflect.Type whole = type.isInterface() ? field.getGenericType() : type.getGenericSuperclass();
            type = whole instanceof ParameterizedType given && given.getActualTypeArguments()[0] instanceof Class<?> of
                ? of : Object.class;
        }
        return Message.class.isAssignableFrom(type) ? type.getSimpleName() : "";
    }

    private static void describe(Schema schema, ArrayNode fields) {
        for (BoundField bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields tagged) {
                for (Map.Entry<Integer, Field> field : new TreeMap<>(tagged.fields()).entrySet()) {
                    describe(field.getValue(), fields.addObject().put("tag", field.getKey()));
                }
                fields.addObject().put("type", "TAGGED_FIELDS");
            } else {
                describe(bound.def, fields.addObject());
            }
        }
    }

    private static void describe(Field field, ObjectNode out) {
        out.put("name", field.name);
        describe(field.type, out);
    }

    private static void describe(Type type, ObjectNode out) {
        if (type instanceof Schema schema) {
            out.put("type", "STRUCT");
            describe(schema, out.putArray("fields"));
        } else if (type.isArray()) {
            out.put("type", type instanceof CompactArrayOf ? "COMPACT_ARRAY" : "ARRAY");
            describe(type.arrayElementType().orElseThrow(), out.putObject("of"));
        } else {
            out.put("type", type.toString());
        }
        out.put("nullable", type.isNullable());
    }

    // ---------------------------------------------------------------- messages that are made up

    private static Struct struct(Schema schema, Random random, int depth) {
        Struct made = new Struct(schema);
        for (BoundField field : schema.fields()) {
            made.set(field, value(field.def.type, random, depth));
        }
        return made;
    }

    private static Object value(Type type, Random random, int depth) {
        if (type.isNullable() && random.nextInt(4) == 0) {
            return null;
        }
        if (type instanceof Schema schema) {
            return struct(schema, random, depth + 1);
        }
        if (type instanceof TaggedFields tagged) {
            return tags(tagged, random, depth);
        }
        if (type instanceof ArrayOf || type instanceof CompactArrayOf) {
            Object[] made = new Object[depth > DEEPEST ? 0 : random.nextInt(random.nextInt(9) == 0 ? 140 : 3)];
            for (int i = 0; i < made.length; i++) {
                made[i] = value(type.arrayElementType().orElseThrow(), random, depth + (made.length > 3 ? DEEPEST : 1));
            }
            return made;
        }
        String name = type.toString().replace("COMPACT_", "").replace("NULLABLE_", "");
        return switch (name) {
            case "BOOLEAN" -> random.nextBoolean();
            case "INT8" -> (byte) number(random, 8);
            case "INT16" -> (short) number(random, 16);
            case "UINT16" -> (int) number(random, 16) & 0xFFFF;
            case "INT32" -> (int) number(random, 32);
            case "UINT32" -> number(random, 32) & 0xFFFFFFFFL;
            case "INT64" -> number(random, 64);
            case "FLOAT64" -> Double.longBitsToDouble(random.nextLong() & 0x7FEFFFFFFFFFFFFFL);
            case "UUID" -> new Uuid(random.nextLong(), random.nextLong());
            case "STRING" -> text(random);
            case "BYTES" -> ByteBuffer.wrap(text(random).getBytes(java.nio.charset.StandardCharsets.UTF_8));
            case "RECORDS" -> MemoryRecords.EMPTY;
            default -> throw new IllegalStateException("nothing is made up for " + name);
        };
    }

    private static TreeMap<Integer, Object> tags(TaggedFields tagged, Random random, int depth) {
        TreeMap<Integer, Object> made = new TreeMap<>();
        for (Map.Entry<Integer, Field> field : tagged.fields().entrySet()) {
            if (random.nextBoolean()) {
                Object held = value(field.getValue().type, random, depth + 1);
                // Schemas write a byte for a struct that is null, where classes read a varint.
                if (held != null || !(field.getValue().type instanceof Schema)) {
                    made.put(field.getKey(), held);
                }
            }
        }
        if (random.nextInt(5) == 0) {
            int tag = 1000 + random.nextInt(1 << random.nextInt(16));
            byte[] data = new byte[random.nextInt(200)];
            random.nextBytes(data);
            made.put(tag, new RawTaggedField(tag, data));
        }
        return made;
    }

    /** Numbers of every size, and those at the edges. */
    private static long number(Random random, int bits) {
        return switch (random.nextInt(6)) {
            case 0 -> 0;
            case 1 -> -1;
            case 2 -> random.nextBoolean() ? -1L << (bits - 1) : ~(-1L << (bits - 1));
            default -> random.nextLong() >> (64 - bits + random.nextInt(bits));
        };
    }

    private static String text(Random random) {
        StringBuilder made = new StringBuilder();
        for (int n = random.nextInt(random.nextInt(9) == 0 ? 200 : LONGEST); n > 0; n--) {
            made.appendCodePoint("aZ-_.0 é€\uD83D\uDE00".codePoints().skip(random.nextInt(10)).findFirst().orElseThrow());
        }
        return made.toString();
    }

    private static String hex(ByteBuffer buffer) {
        byte[] data = new byte[buffer.remaining()];
        buffer.duplicate().get(data);
        return HexFormat.of().formatHex(data);
    }
}
