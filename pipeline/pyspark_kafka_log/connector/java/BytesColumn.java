package pyspark_kafka_log;

import org.apache.arrow.vector.FieldVector;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** Bytes and strings. */
final class BytesColumn extends MemoryColumn {
    private long offsets;
    private long values;

    BytesColumn(FieldVector vector) {
        super(vector);
    }

    void locate(FieldVector vector, int rows) {
        values = vector.getDataBuffer().memoryAddress();
        offsets = offsets(vector.getOffsetBuffer(), rows, vector.getDataBuffer().capacity());
    }

    public byte[] getBinary(int row) {
        int start = Platform.getInt(null, offsets + 4L * row);
        byte[] out = new byte[Platform.getInt(null, offsets + 4L * row + 4) - start];
        Platform.copyMemory(null, values + start, out, Platform.BYTE_ARRAY_OFFSET, out.length);
        return out;
    }

    public UTF8String getUTF8String(int row) {
        int start = Platform.getInt(null, offsets + 4L * row);
        return UTF8String.fromAddress(null, values + start, Platform.getInt(null, offsets + 4L * row + 4) - start);
    }
}
