package pyspark_kafka_log;

import org.apache.arrow.vector.complex.StructVector;
import org.apache.spark.sql.vectorized.ArrowColumnVector;

/** A struct of an Arrow stream. Spark closes columns after each batch: one of structs would lose its fields, and the next batch has no place then. */
class StructColumn extends ArrowColumnVector {
    StructColumn(StructVector vector) {
        super(vector);
    }

    public void closeIfFreeable() {
        // The stream closes it.
    }
}
