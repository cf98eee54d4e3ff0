package pyspark_kafka_log;

import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** What a task has written, in the words of Python. The driver asks for its text alone: executors have loaded a class of their own. */
class Written implements WriterCommitMessage {
    private final String told;

    Written(String told) {
        this.told = told;
    }

    public String toString() {
        return told;
    }
}
