package pyspark_kafka_log;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A path in a query: SELECT * FROM `kafka-log`.`/path`, or with a view between. It lists nothing, and makes and removes nothing. */
public class LogCatalog implements TableCatalog {
    private String name;

    public void initialize(String name, CaseInsensitiveStringMap options) {
        this.name = name;
    }

    public String name() {
        return name;
    }

    public Identifier[] listTables(String[] namespace) {
        return new Identifier[0];
    }

    public Table loadTable(Identifier asked) throws NoSuchTableException {
        String[] view = asked.namespace();
        if (view.length > 1) throw new NoSuchTableException(asked);
        Map options = new HashMap();
        options.put("path", asked.name());
        if (view.length == 1) options.put("view", view[0]);
        return new KafkaLogSource.LogTable(KafkaLogSource.schema(options, null), options);
    }

    public Table createTable(Identifier asked, StructType schema, Transform[] partitioning, Map properties) {
        throw refused();
    }

    public Table alterTable(Identifier asked, TableChange[] changes) {
        throw refused();
    }

    public boolean dropTable(Identifier asked) {
        throw refused();
    }

    public void renameTable(Identifier from, Identifier to) {
        throw refused();
    }

    private static UnsupportedOperationException refused() {
        return new UnsupportedOperationException("kafka-log: a path in a query is read; tables are made with CREATE TABLE ... USING `kafka-log`");
    }
}
