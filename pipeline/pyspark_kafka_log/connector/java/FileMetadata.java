package pyspark_kafka_log;

import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** The hidden column that Spark's file sources have: which file a row is of, and which bytes of it the task reads. */
class FileMetadata implements MetadataColumn {
    static final String NAME = "_metadata";

    public String name() {
        return NAME;
    }

    public DataType dataType() {
        return new StructType()
            .add("file_path", DataTypes.StringType)
            .add("file_name", DataTypes.StringType)
            .add("file_size", DataTypes.LongType)
            .add("file_block_start", DataTypes.LongType)
            .add("file_block_length", DataTypes.LongType)
            .add("file_modification_time", DataTypes.TimestampType);
    }

    public boolean isNullable() {
        return true;
    }

    /** Those of its fields that a query uses; null where it uses none. */
    static String[] fields(StructType schema) {
        for (int i = 0; i < schema.length(); i++) {
            if (NAME.equals(schema.apply(i).name())) return ((StructType) schema.apply(i).dataType()).fieldNames();
        }
        return null;
    }
}
