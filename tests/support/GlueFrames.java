// Prints what the serializers of the AWS Glue Schema Registry write, one JSON object per line. make_registry_frames.py runs it.
import com.amazonaws.services.schemaregistry.serializers.GlueSchemaRegistryKafkaSerializer;
import com.amazonaws.services.schemaregistry.serializers.json.JsonDataWithSchema;
import com.google.protobuf.DescriptorProtos.DescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.MessageOptions;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import java.util.HexFormat;
import java.util.Map;
import java.util.UUID;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import software.amazon.awssdk.auth.credentials.AnonymousCredentialsProvider;

public class GlueFrames {
    static final UUID ID = UUID.fromString("b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63");
    static final String AVRO =
            "{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"n\",\"type\":\"long\"},{\"name\":\"s\",\"type\":\"string\"}]}";
    static final String JSON =
            "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"},\"s\":{\"type\":\"string\"}}}";

    static void print(String type, String compression, String name, Object data) {
        var configs = Map.of("region", "eu-west-1", "dataFormat", type, "compression", compression);
        var serializer = new GlueSchemaRegistryKafkaSerializer(AnonymousCredentialsProvider.create(), ID, configs);
        String hex = HexFormat.of().formatHex(serializer.serialize("t", data));
        System.out.printf(
                "{\"writer\": \"glue\", \"type\": \"%s\", \"compression\": \"%s\", \"message\": \"%s\", \"hex\": \"%s\"}%n",
                type, compression, name, hex);
    }

    static FieldDescriptorProto field(String name, int number, FieldDescriptorProto.Type type) {
        return FieldDescriptorProto.newBuilder().setName(name).setNumber(number).setType(type).build();
    }

    /** Messages in another order than that of their names; a map, whose entries are a nested message. */
    static FileDescriptor messages() throws Exception {
        var number = field("n", 1, FieldDescriptorProto.Type.TYPE_INT64);
        var entry = DescriptorProto.newBuilder().setName("NamedEntry")
                .setOptions(MessageOptions.newBuilder().setMapEntry(true))
                .addField(field("key", 1, FieldDescriptorProto.Type.TYPE_STRING))
                .addField(field("value", 2, FieldDescriptorProto.Type.TYPE_INT64));
        var named = FieldDescriptorProto.newBuilder().setName("named").setNumber(2)
                .setLabel(FieldDescriptorProto.Label.LABEL_REPEATED)
                .setType(FieldDescriptorProto.Type.TYPE_MESSAGE).setTypeName(".shop.Apple.NamedEntry");
        var file = FileDescriptorProto.newBuilder().setName("shop.proto").setPackage("shop").setSyntax("proto3")
                .addMessageType(DescriptorProto.newBuilder().setName("Zebra").addField(number))
                .addMessageType(DescriptorProto.newBuilder().setName("Apple").addField(number).addField(named)
                        .addNestedType(entry)
                        .addNestedType(DescriptorProto.newBuilder().setName("Inner").addField(number)))
                .addMessageType(DescriptorProto.newBuilder().setName("AppleTree").addField(number));
        return FileDescriptor.buildFrom(file.build(), new FileDescriptor[0]);
    }

    public static void main(String[] args) throws Exception {
        var record = new GenericData.Record(new Schema.Parser().parse(AVRO));
        record.put("n", 7L);
        record.put("s", "seven");
        FileDescriptor file = messages();
        Descriptor apple = file.findMessageTypeByName("Apple");
        for (String compression : new String[] {"NONE", "ZLIB"}) {
            print("AVRO", compression, "", record);
            print("JSON", compression, "", JsonDataWithSchema.builder(JSON, "{\"n\": 7, \"s\": \"seven\"}").build());
            for (Descriptor one : new Descriptor[] {
                    file.findMessageTypeByName("Zebra"), apple, apple.findNestedTypeByName("Inner"),
                    file.findMessageTypeByName("AppleTree")}) {
                var message = DynamicMessage.newBuilder(one).setField(one.findFieldByName("n"), 7L).build();
                print("PROTOBUF", compression, one.getFullName(), message);
            }
        }
    }
}
