package pyspark_kafka_log;

import java.util.OptionalLong;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;

/** How many bytes the rows of a scan are, about: by this Spark decides which side of a join it sends to all tasks. Rows are not counted for it. */
class LogSize implements Statistics {
    /** Nobody knows, so that nothing is sent. */
    static final LogSize UNKNOWN = new LogSize(OptionalLong.empty());

    /**
     * Rows with all columns of Spark's Kafka source, as Spark holds them, take 1 to 6.5 times the bytes of their segments, more the better these are
     * compressed; with values of ten bytes 5 to 13 times.
     */
    private static final double OF_SEGMENTS = 10;

    /** What Spark takes such a row for: 8 bytes, and those of the columns by their types. */
    private static final double ROW = 252;

    private final OptionalLong bytes;

    private LogSize(OptionalLong bytes) {
        this.bytes = bytes;
    }

    static LogSize of(LogPlan plan, StructType schema) {
        double row = 8 + schema.defaultSize();
        double size;
        if (plan.rows >= 0) size = plan.rows * row;
        else if (plan.bytes >= 0) size = plan.bytes * OF_SEGMENTS * SQLConf.get().fileCompressionFactor() * row / ROW;
        else return UNKNOWN;
        return new LogSize(OptionalLong.of(Math.max(1, (long) size)));
    }

    public OptionalLong sizeInBytes() {
        return bytes;
    }

    public OptionalLong numRows() {
        return OptionalLong.empty();
    }
}
