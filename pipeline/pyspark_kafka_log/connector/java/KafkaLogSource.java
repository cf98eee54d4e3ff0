package pyspark_kafka_log;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The data source kafka-log in the JVM. All that it knows of logs it asks Python workers. */
public class KafkaLogSource implements TableProvider, DataSourceRegister {
    public String shortName() {
        return "kafka-log";
    }

    public boolean supportsExternalMetadata() {
        return true; // .schema(...) chooses columns
    }

    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return schema(given(options.asCaseSensitiveMap()), null);
    }

    public Table getTable(StructType schema, Transform[] partitioning, Map options) {
        return new LogTable(schema, given(options));
    }

    /**
     * The options, where Spark's catalog gives all properties of a table: those of OPTIONS again as option.NAME, its LOCATION as path, which begins
     * with a scheme and is no URL: what looks like an escape in it is none.
     */
    private static Map given(Map properties) {
        if (properties.get("provider") == null || properties.get("owner") == null) return properties;
        Map options = new HashMap();
        Object[] names = properties.keySet().toArray();
        for (int i = 0; i < names.length; i++) {
            String name = (String) names[i];
            if (name.startsWith("option.")) options.put(name.substring(7), properties.get(name));
        }
        String path = (String) properties.get("path");
        if (path != null) options.put("path", path.startsWith("file:/") ? path.substring(5) : path);
        return options;
    }

    /** The columns there are, or, of a user's own schema, that it is one that can be had. */
    static StructType schema(Map options, StructType wanted) {
        Map request = new HashMap();
        request.put("ask", "schema");
        request.put("options", options);
        request.put("schema", wanted == null ? null : wanted.json());
        PythonWorker worker = PythonWorker.onDriver();
        try {
            return (StructType) DataType.fromJson(worker.text(request, null));
        } finally {
            worker.release();
        }
    }

    /**
     * What a path holds, by the options, or what is to be written there: Spark does not say which when it asks for a table. The columns and
     * options are those of a read when it asks whether it can read.
     */
    static class LogTable implements Table, SupportsRead, SupportsWrite, SupportsMetadataColumns {
        final StructType schema;
        final Map options;
        private boolean checked;

        LogTable(StructType schema, Map options) {
            this.schema = schema;
            this.options = options;
        }

        public String name() {
            Object path = options.get("path");
            return "kafka-log " + (path == null ? options.get("paths") : path);
        }

        public StructType schema() {
            return schema;
        }

        /** Rows of a view are of no file. */
        public MetadataColumn[] metadataColumns() {
            return LogScan.option(options, "view") == null ? new MetadataColumn[] {new FileMetadata()} : new MetadataColumn[0];
        }

        public Set capabilities() {
            Set capabilities = new Capabilities(this);
            capabilities.add(TableCapability.BATCH_READ);
            capabilities.add(TableCapability.MICRO_BATCH_READ);
            capabilities.add(TableCapability.BATCH_WRITE);
            capabilities.add(TableCapability.STREAMING_WRITE);
            capabilities.add(TableCapability.TRUNCATE);
            capabilities.add(TableCapability.ACCEPT_ANY_SCHEMA);
            return capabilities;
        }

        void checkRead() {
            if (!checked) KafkaLogSource.schema(options, schema);
            checked = true;
        }

        public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
            return new LogWrite(merged(info.options()), info);
        }

        private Map merged(CaseInsensitiveStringMap given) {
            Map all = new HashMap(options);
            for (Object name : options.keySet()) {
                if (given.containsKey((String) name)) all.remove(name); // in whatever case
            }
            all.putAll(given.asCaseSensitiveMap());
            return all;
        }

        public ScanBuilder newScanBuilder(CaseInsensitiveStringMap given) {
            Map all = merged(given);
            if (!all.equals(options)) KafkaLogSource.schema(all, schema); // FROM t WITH (...): the columns stay
            return new LogScan(schema, all);
        }
    }

    /** Whoever asks for reading is told of options and columns that cannot be read. */
    static class Capabilities extends HashSet {
        private final LogTable table;

        Capabilities(LogTable table) {
            this.table = table;
        }

        public boolean contains(Object capability) {
            if (capability == TableCapability.BATCH_READ || capability == TableCapability.MICRO_BATCH_READ) table.checkRead();
            return super.contains(capability);
        }
    }
}
