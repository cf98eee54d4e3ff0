package pyspark_kafka_log;

import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.complex.ListVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.unsafe.Platform;

/** Lists, whose items are a column of their own. */
final class ListColumn extends MemoryColumn {
    private final ColumnVector[] items;
    private long offsets;

    ListColumn(ListVector vector) {
        super(vector);
        items = new ColumnVector[] {MemoryColumn.of(vector.getDataVector())};
    }

    void locate(FieldVector vector, int rows) {
        MemoryColumn.load(items);
        offsets = offsets(vector.getOffsetBuffer(), rows, ((ListVector) vector).getDataVector().getValueCount());
    }

    public ColumnarArray getArray(int row) {
        int start = Platform.getInt(null, offsets + 4L * row);
        return new ColumnarArray(items[0], start, Platform.getInt(null, offsets + 4L * row + 4) - start);
    }
}
