package pyspark_kafka_log;

/** An error of the Python worker, in its words. */
class PythonError extends RuntimeException {
    PythonError(String message) {
        super(message);
    }
}
