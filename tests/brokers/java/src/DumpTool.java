/** Kafka's own dump tool, by its own main class, with what it is called in this release. */
public final class DumpTool {
    private DumpTool() {
    }

    public static void main(String[] args) throws Exception {
        Class.forName("org.apache.kafka.tools.DumpLogSegments")
            .getMethod("main", String[].class)
            .invoke(null, (Object) args);
    }
}
