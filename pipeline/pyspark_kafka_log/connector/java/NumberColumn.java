package pyspark_kafka_log;

import org.apache.arrow.vector.FieldVector;
import org.apache.spark.unsafe.Platform;

/** Numbers and times, each in so many bytes; booleans, each in a bit. */
final class NumberColumn extends MemoryColumn {
    private final int width;
    private long values;

    /** Of a width of 0 are booleans. */
    NumberColumn(FieldVector vector, int width) {
        super(vector);
        this.width = width;
    }

    void locate(FieldVector vector, int rows) {
        values = address(vector.getDataBuffer(), width == 0 ? (rows + 7L) / 8 : (long) width * rows);
    }

    public boolean getBoolean(int row) {
        return bit(values, row);
    }

    public byte getByte(int row) {
        return Platform.getByte(null, values + row);
    }

    public short getShort(int row) {
        return Platform.getShort(null, values + 2L * row);
    }

    public int getInt(int row) {
        return Platform.getInt(null, values + 4L * row);
    }

    public long getLong(int row) {
        return Platform.getLong(null, values + 8L * row);
    }

    public float getFloat(int row) {
        return Platform.getFloat(null, values + 4L * row);
    }

    public double getDouble(int row) {
        return Platform.getDouble(null, values + 8L * row);
    }
}
