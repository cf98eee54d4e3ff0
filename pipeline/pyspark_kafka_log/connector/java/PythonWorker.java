package pyspark_kafka_log;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.SocketChannel;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.util.DateTimeUtils;
import org.apache.spark.sql.internal.SQLConf;
import scala.Tuple2;

/** A Python process of Spark's own pool, which runs pyspark_kafka_log.connector.worker and answers on a socket. */
class PythonWorker {
    private static final String MODULE = "pyspark_kafka_log.connector.worker";
    private static final String DAEMON = "pyspark.daemon";
    private static final String[] STORES = {"fs.s3a.", "fs.azure.", "fs.gs.", "google.cloud.auth."};
    private static final int BUFFER = 1 << 20;
    private static final int TRIES = 8;
    private static final String GONE = "kafka-log: the Python worker ended in the middle of its work: it was killed, or the machine had no memory for it";

    private final String python;
    private final scala.collection.immutable.Map environment;
    private final org.apache.spark.api.python.PythonWorker process;
    private final DataInputStream in;
    private final DataOutputStream out;
    private boolean broken;

    private PythonWorker(String python, String path, String memory) throws IOException {
        this.python = python;
        scala.collection.immutable.Map variables = scala.collection.immutable.Map$.MODULE$.empty();
        variables = (scala.collection.immutable.Map) variables.updated("PYTHONPATH", path);
        if (memory != null) variables = (scala.collection.immutable.Map) variables.updated("PYSPARK_EXECUTOR_MEMORY_MB", memory);
        variables = (scala.collection.immutable.Map) variables.updated("OMP_NUM_THREADS", "1");
        environment = (scala.collection.immutable.Map) variables.updated("SPARK_REUSE_WORKER", "1");
        Tuple2 made = (Tuple2) pool("createPythonWorker", Tuple2.class, boolean.class, Boolean.TRUE);
        process = (org.apache.spark.api.python.PythonWorker) made._1();
        if (process.selectionKey() != null) process.selectionKey().cancel();
        if (process.selector() != null) process.selector().close();
        SocketChannel channel = process.channel();
        channel.configureBlocking(true);
        in = new DataInputStream(new BufferedInputStream(Channels.newInputStream(channel), BUFFER));
        out = new DataOutputStream(new BufferedOutputStream(Channels.newOutputStream(channel), 1 << 16));
    }

    /** What Hadoop opens stores with, by its configuration and the session's. */
    private static Map stores() {
        Map out = new HashMap();
        org.apache.hadoop.conf.Configuration told = org.apache.spark.SparkContext$.MODULE$.getOrCreate().hadoopConfiguration();
        for (int i = 0; i < STORES.length; i++) {
            Map named = told.getPropsWithPrefix(STORES[i]);
            Object[] names = named.keySet().toArray();
            for (int j = 0; j < names.length; j++) out.put(STORES[i] + names[j], named.get(names[j]));
        }
        scala.collection.Iterator settings = SQLConf.get().getAllConfs().iterator();
        while (settings.hasNext()) {
            Tuple2 one = (Tuple2) settings.next();
            for (int i = 0; i < STORES.length; i++) {
                if (((String) one._1()).startsWith(STORES[i])) out.put(one._1(), one._2());
            }
        }
        return out;
    }

    /** What the session's configuration says where options do not, by the names of these. Only the driver has it. */
    static Map session() {
        SQLConf conf = SQLConf.get();
        Map out = new HashMap();
        out.put("timeZone", DateTimeUtils.getZoneId(conf.sessionLocalTimeZone()).getId()); // PST and the like by their whole names
        out.put("ignoreCorruptFiles", Boolean.valueOf(conf.ignoreCorruptFiles()));
        out.put("ignoreMissingFiles", Boolean.valueOf(conf.ignoreMissingFiles()));
        return out;
    }

    /** How many tasks run at once. */
    static int parallelism() {
        return org.apache.spark.SparkContext$.MODULE$.getOrCreate().defaultParallelism();
    }

    static PythonWorker onDriver() {
        try {
            return taken(WorkerSettings.ofDriver());
        } catch (PythonError e) {
            throw e.ofPlanning("plan");
        }
    }

    static PythonWorker toRead(Map settings) {
        try {
            return taken(settings);
        } catch (PythonError e) {
            throw e.ofReading();
        }
    }

    static PythonWorker toWrite(Map settings) {
        try {
            return taken(settings);
        } catch (PythonError e) {
            throw e.ofWriting();
        }
    }

    /**
     * A worker that has answered once: a Python without our package starts one too, which ends when it looks for it. The pool may hold
     * workers that were killed while they waited; each that does not answer is taken out of it.
     */
    private static PythonWorker taken(Map settings) {
        String python = (String) settings.get("python");
        String path = WorkerSettings.path(settings);
        String memory = (String) settings.get("memory");
        for (int left = TRIES - 1;; left--) {
            PythonWorker worker = null;
            try {
                worker = new PythonWorker(python, path, memory);
                worker.stream("{\"ask\": \"hello\"}", null).drain();
                return worker;
            } catch (Exception e) {
                if (worker != null) {
                    worker.broken();
                    worker.release();
                }
                // Spark knows by this exception that a query was stopped, or a task.
                if (Thread.currentThread().isInterrupted()) throw new UncheckedIOException(new ClosedByInterruptException());
                boolean died = worker != null || e.getCause() instanceof IOException;
                if (left == 0 || !died) throw new PythonError(WorkerTrial.whyNot(python, path, memory, MODULE, e));
            }
        }
    }

    static String json(Map request) {
        try {
            return new ObjectMapper().writeValueAsString(request);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Ask with more to come, which goes where this says. */
    OutputStream ask(String request) throws IOException {
        byte[] text = request.getBytes("UTF-8");
        out.writeInt(text.length);
        out.write(text);
        out.writeInt(0);
        return out;
    }

    /** The answer to what was asked. */
    Chunks answer() throws IOException {
        out.flush();
        return new Chunks(in);
    }

    /** Ask, and read the answer as it comes. */
    Chunks stream(String request, byte[] task) {
        try {
            byte[] text = request.getBytes("UTF-8");
            out.writeInt(text.length);
            out.write(text);
            out.writeInt(task == null ? 0 : task.length);
            if (task != null) out.write(task);
            out.flush();
        } catch (IOException e) {
            throw new UncheckedIOException(ended(e));
        }
        return new Chunks(in);
    }

    /** Ask on the driver, and read all of the answer. What opens stores is told with it, and nowhere else. */
    ByteBuffer bytes(Map request, byte[] task) {
        request.put("stores", stores());
        Chunks chunks = stream(json(request), task);
        try {
            return ByteBuffer.wrap(chunks.readAllBytes());
        } catch (PythonError e) {
            throw e.ofPlanning(action((String) request.get("ask")));
        } catch (IOException e) {
            throw new UncheckedIOException(ended(e));
        }
    }

    private static String action(String asked) {
        if ("schema".equals(asked)) return "infer the schema of";
        return "commit".equals(asked) || "abort".equals(asked) ? asked : "plan";
    }

    String text(Map request, byte[] task) {
        try {
            return new String(bytes(request, task).array(), "UTF-8");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** What it means that nothing can be sent or had: the worker is gone, unless this thread is told to stop. It is not to be used again. */
    IOException ended(IOException e) {
        broken = true;
        return e instanceof ClosedChannelException ? e : new IOException(GONE, e);
    }

    /** Not to be used again. */
    void broken() {
        broken = true;
    }

    /** Back into the pool, or to its end. */
    void release() {
        try {
            pool(
                broken ? "destroyPythonWorker" : "releasePythonWorker",
                void.class,
                org.apache.spark.api.python.PythonWorker.class,
                process);
        } catch (IllegalStateException e) {
            if (!broken) throw e; // else its daemon has died with it, and Spark starts another one
        }
    }

    /**
     * A method of SparkEnv, which keeps the pool. It is looked up alone: Janino and reflection look at all methods of a class, and those of
     * SparkEnv name classes that PySpark does not bring.
     */
    private Object pool(String name, Class result, Class last, Object argument) {
        try {
            Object env = org.apache.spark.SparkEnv$.MODULE$.get();
            MethodType type = MethodType.methodType(
                result,
                new Class[] {String.class, String.class, String.class, scala.collection.immutable.Map.class, last});
            MethodHandle method = MethodHandles.publicLookup().findVirtual(env.getClass(), name, type);
            return method.invokeWithArguments(new Object[] {env, python, MODULE, DAEMON, environment, argument});
        } catch (RuntimeException e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException("kafka-log: no Python worker: " + e, e);
        }
    }
}
