package pyspark_kafka_log;

import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** What a task has written, in the words of Python. */
class Written implements WriterCommitMessage {
    final String told;

    Written(String told) {
        this.told = told;
    }
}
