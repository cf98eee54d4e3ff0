package pyspark_kafka_log;

import java.util.Map;

/**
 * A question to a worker on the driver that is asked to its end. A stream that is stopped interrupts its thread, which closes the sockets that this one waits
 * for, and so ends their workers: in the middle of a commit, or before anything is removed.
 */
class Undisturbed extends Thread {
    private final Map request;
    private String answer;
    private Throwable error;

    private Undisturbed(Map request) {
        super("kafka-log " + request.get("ask"));
        setDaemon(true);
        this.request = request;
    }

    public void run() {
        try {
            PythonWorker worker = PythonWorker.onDriver();
            try {
                answer = worker.text(request, null);
            } finally {
                worker.release();
            }
        } catch (Throwable e) {
            error = e;
        }
    }

    static String ask(Map request) {
        Undisturbed asked = new Undisturbed(request);
        asked.start();
        boolean interrupted = false;
        while (asked.isAlive()) {
            try {
                asked.join();
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) Thread.currentThread().interrupt();
        if (asked.error != null) org.apache.spark.unsafe.Platform.throwException(asked.error);
        return asked.answer;
    }
}
