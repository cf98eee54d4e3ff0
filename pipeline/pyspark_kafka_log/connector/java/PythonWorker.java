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
import java.nio.channels.SocketChannel;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.sql.internal.SQLConf;
import scala.Tuple2;

/** A Python process of Spark's own pool, which runs pyspark_kafka_log.connector.worker and answers on a socket. */
class PythonWorker {
    private static final String MODULE = "pyspark_kafka_log.connector.worker";
    private static final String DAEMON = "pyspark.daemon";
    private static final String S3A = "fs.s3a.";
    private static final int BUFFER = 1 << 20;

    private final String python;
    private final scala.collection.immutable.Map environment;
    private final org.apache.spark.api.python.PythonWorker process;
    private final DataInputStream in;
    private final DataOutputStream out;
    private boolean broken;

    private PythonWorker(Map settings) {
        python = (String) settings.get("python");
        scala.collection.immutable.Map variables = scala.collection.immutable.Map$.MODULE$.empty();
        Object[] names = settings.keySet().toArray();
        for (int i = 0; i < names.length; i++) {
            String name = (String) names[i];
            if (name.startsWith("env.")) {
                variables = (scala.collection.immutable.Map) variables.updated(name.substring(4), settings.get(name));
            }
        }
        environment = variables;
        Tuple2 made = (Tuple2) pool("createPythonWorker", Tuple2.class, boolean.class, Boolean.TRUE);
        process = (org.apache.spark.api.python.PythonWorker) made._1();
        try {
            if (process.selectionKey() != null) process.selectionKey().cancel();
            if (process.selector() != null) process.selector().close();
            SocketChannel channel = process.channel();
            channel.configureBlocking(true);
            in = new DataInputStream(new BufferedInputStream(Channels.newInputStream(channel), BUFFER));
            out = new DataOutputStream(new BufferedOutputStream(Channels.newOutputStream(channel), 1 << 16));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** How workers are started: the interpreter, and variables of its environment. */
    static HashMap settings() {
        HashMap out = new HashMap();
        out.put("python", setting("kafkaLog.python", System.getenv("PYSPARK_PYTHON") == null ? "python3" : System.getenv("PYSPARK_PYTHON")));
        out.put("env.PYTHONPATH", setting("kafkaLog.pythonPath", ""));
        out.put("env.SPARK_REUSE_WORKER", "1");
        String memory = setting("executor.pyspark.memory", "");
        if (!memory.isEmpty()) {
            long cores = Math.max(1, Long.parseLong(setting("executor.cores", "1")));
            out.put("env.PYSPARK_EXECUTOR_MEMORY_MB", Long.toString(JavaUtils.byteStringAsMb(memory) / cores));
        }
        return out;
    }

    /** A setting of the session's, else of this process. */
    private static String setting(String name, String none) {
        return SQLConf.get().getConfString("spark." + name, System.getProperty(name, none));
    }

    /** What Hadoop opens S3 with, by its configuration and the session's. */
    private static Map stores() {
        Map out = new HashMap();
        Map told = org.apache.spark.SparkContext$.MODULE$.getOrCreate().hadoopConfiguration().getPropsWithPrefix(S3A);
        Object[] names = told.keySet().toArray();
        for (int i = 0; i < names.length; i++) out.put(S3A + names[i], told.get(names[i]));
        scala.collection.Iterator settings = SQLConf.get().getAllConfs().iterator();
        while (settings.hasNext()) {
            Tuple2 one = (Tuple2) settings.next();
            if (((String) one._1()).startsWith(S3A)) out.put(one._1(), one._2());
        }
        return out;
    }

    /** How many tasks run at once. */
    static int parallelism() {
        return org.apache.spark.SparkContext$.MODULE$.getOrCreate().defaultParallelism();
    }

    static PythonWorker onDriver() {
        return take(settings());
    }

    static PythonWorker take(Map settings) {
        return new PythonWorker(settings);
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
            broken = true;
            throw new UncheckedIOException(e);
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
            broken = true;
            throw new UncheckedIOException(e);
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

    /** Not to be used again. */
    void broken() {
        broken = true;
    }

    /** Back into the pool, or to its end. */
    void release() {
        pool(
            broken ? "destroyPythonWorker" : "releasePythonWorker",
            void.class,
            org.apache.spark.api.python.PythonWorker.class,
            process);
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
