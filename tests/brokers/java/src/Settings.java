import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.storage.internals.log.LogConfig;

/** Prints each setting of brokers and topics, and its type. It runs from its source. */
public class Settings {
    public static void main(String[] arguments) throws Exception {
        Map<String, ConfigDef.Type> types = new TreeMap<>();
        for (ConfigDef definitions : new ConfigDef[] {AbstractKafkaConfig.CONFIG_DEF, topics()}) {
            definitions.configKeys().forEach((name, key) -> types.put(name, key.type));
        }
        types.forEach((name, type) -> System.out.println("setting " + name + " " + type));
    }

    private static ConfigDef topics() throws Exception {
        var field = LogConfig.class.getDeclaredField("CONFIG");
        field.setAccessible(true);
        return (ConfigDef) field.get(null);
    }
}
