package pyspark_kafka_log;

import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.BitVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.Float4Vector;
import org.apache.arrow.vector.Float8Vector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.SmallIntVector;
import org.apache.arrow.vector.TimeStampMicroTZVector;
import org.apache.arrow.vector.TinyIntVector;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.arrow.vector.complex.ListVector;
import org.apache.arrow.vector.complex.StructVector;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A column of Arrow whose values are read where they lie in memory. Spark's own ArrowColumnVector asks several objects, of classes that
 * differ by column, for each value and each null, which takes longer than all else that becomes of a row.
 */
abstract class MemoryColumn extends ColumnVector {
    private final FieldVector vector;
    private int nulls;
    private long validity;

    MemoryColumn(FieldVector vector) {
        super(ArrowUtils.fromArrowField(vector.getField()));
        this.vector = vector;
    }

    /** A column of the values of a vector. */
    static ColumnVector of(FieldVector vector) {
        if (vector instanceof BitVector) return new NumberColumn(vector, 0);
        if (vector instanceof TinyIntVector) return new NumberColumn(vector, 1);
        if (vector instanceof SmallIntVector) return new NumberColumn(vector, 2);
        if (vector instanceof IntVector || vector instanceof Float4Vector) return new NumberColumn(vector, 4);
        if (vector instanceof BigIntVector || vector instanceof Float8Vector || vector instanceof TimeStampMicroTZVector) {
            return new NumberColumn(vector, 8);
        }
        if (vector instanceof VarBinaryVector || vector instanceof VarCharVector) return new BytesColumn(vector);
        if (vector instanceof ListVector && vector.getClass() == ListVector.class) return new ListColumn((ListVector) vector);
        if (vector instanceof StructVector) return new StructColumn((StructVector) vector);
        return new ArrowColumnVector(vector);
    }

    /** The values that vectors have now. */
    static void load(ColumnVector[] columns) {
        for (int i = 0; i < columns.length; i++) {
            if (columns[i] instanceof MemoryColumn) ((MemoryColumn) columns[i]).load();
        }
    }

    /** The values that the vector has now. */
    void load() {
        nulls = vector.getNullCount();
        int rows = vector.getValueCount();
        validity = nulls == 0 ? 0 : address(vector.getValidityBuffer(), (rows + 7L) / 8);
        locate(vector, rows);
    }

    /** Keep where the values of the vector lie now. */
    abstract void locate(FieldVector vector, int rows);

    /** Where a buffer begins, which has at least so many bytes: nothing beyond its end is read later. */
    static long address(ArrowBuf buffer, long bytes) {
        if (buffer.capacity() < bytes) {
            throw new IllegalStateException("kafka-log: a column has " + buffer.capacity() + " bytes where " + bytes + " are needed");
        }
        return buffer.memoryAddress();
    }

    /** Where 32-bit offsets begin, one more than there are rows, which rise to an end that lies in the values. */
    static long offsets(ArrowBuf buffer, int rows, long values) {
        if (rows == 0) return 0;
        long at = address(buffer, 4L * (rows + 1L));
        int last = Platform.getInt(null, at);
        if (last < 0) throw new IllegalStateException("kafka-log: a column has an offset " + last);
        for (int i = 1; i <= rows; i++) {
            int next = Platform.getInt(null, at + 4L * i);
            if (next < last) throw new IllegalStateException("kafka-log: offsets of a column fall from " + last + " to " + next);
            last = next;
        }
        if (last > values) throw new IllegalStateException("kafka-log: an offset " + last + " of a column with " + values);
        return at;
    }

    static boolean bit(long bits, int row) {
        return (Platform.getByte(null, bits + (row >> 3)) >> (row & 7) & 1) != 0;
    }

    public final boolean isNullAt(int row) {
        return nulls != 0 && !bit(validity, row);
    }

    public final boolean hasNull() {
        return nulls != 0;
    }

    public final int numNulls() {
        return nulls;
    }

    public void close() {
        // The stream closes its vectors. Spark closes columns after each batch, and structs would lose their fields for the next.
    }

    private UnsupportedOperationException not() {
        return new UnsupportedOperationException("kafka-log: a value of another type is asked of a column of " + dataType());
    }

    public boolean getBoolean(int row) {
        throw not();
    }

    public byte getByte(int row) {
        throw not();
    }

    public short getShort(int row) {
        throw not();
    }

    public int getInt(int row) {
        throw not();
    }

    public long getLong(int row) {
        throw not();
    }

    public float getFloat(int row) {
        throw not();
    }

    public double getDouble(int row) {
        throw not();
    }

    public ColumnarArray getArray(int row) {
        throw not();
    }

    public ColumnarMap getMap(int row) {
        throw not();
    }

    public Decimal getDecimal(int row, int precision, int scale) {
        throw not();
    }

    public UTF8String getUTF8String(int row) {
        throw not();
    }

    public byte[] getBinary(int row) {
        throw not();
    }

    public ColumnVector getChild(int ordinal) {
        throw not();
    }
}
