package pyspark_kafka_log;

import java.util.List;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.complex.StructVector;
import org.apache.spark.sql.vectorized.ColumnVector;

/** Structs, whose fields are columns of their own. */
final class StructColumn extends MemoryColumn {
    private final ColumnVector[] fields;

    StructColumn(StructVector vector) {
        super(vector);
        List children = vector.getChildrenFromFields();
        fields = new ColumnVector[children.size()];
        for (int i = 0; i < fields.length; i++) fields[i] = MemoryColumn.of((FieldVector) children.get(i));
    }

    void locate(FieldVector vector, int rows) {
        MemoryColumn.load(fields);
    }

    public ColumnVector getChild(int ordinal) {
        return fields[ordinal];
    }
}
