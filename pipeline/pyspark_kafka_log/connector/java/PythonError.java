package pyspark_kafka_log;

import org.apache.spark.SparkRuntimeException;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.unsafe.Platform;

/** An error of the Python worker, in its words. */
class PythonError extends RuntimeException {
    private static final String CONDITION = "PYTHON_DATA_SOURCE_ERROR";
    private static final String NAME = "kafka-log";

    PythonError(String message) {
        super(message);
    }

    /** What the driver is told: what it is told of errors of a Python source while a query is planned. */
    RuntimeException ofPlanning(String action) {
        Platform.throwException(new AnalysisException(CONDITION, words(action)));
        return this;
    }

    /** What the driver is told of an error in a task. */
    RuntimeException ofReading() {
        return ofTask("read");
    }

    RuntimeException ofWriting() {
        return ofTask("write");
    }

    private RuntimeException ofTask(String action) {
        return new SparkRuntimeException(
            CONDITION, words(action), null, new org.apache.spark.QueryContext[0], "");
    }

    private scala.collection.immutable.Map words(String action) {
        scala.collection.immutable.Map words = scala.collection.immutable.Map$.MODULE$.empty();
        words = (scala.collection.immutable.Map) words.updated("action", action);
        words = (scala.collection.immutable.Map) words.updated("type", NAME);
        String message = getMessage();
        if (message.startsWith(NAME + ": ")) message = message.substring(NAME.length() + 2); // it stands before the message
        return (scala.collection.immutable.Map) words.updated("msg", message);
    }
}
