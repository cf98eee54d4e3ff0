package pyspark_kafka_log;

import java.io.File;
import java.net.URI;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkFiles;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.sql.internal.SQLConf;

/** How workers are started: the interpreter, and where it looks for packages. What is right on the driver need not be there for tasks. */
class WorkerSettings {
    private WorkerSettings() {
    }

    /** For workers that the driver asks: the Python that has called enable, with its packages. */
    static HashMap ofDriver() {
        String path = joined(setting("kafkaLog.pythonPath", ""), System.getProperty("kafkaLog.driverPythonPath", ""));
        return settings(setting("kafkaLog.driverPython", python()), path);
    }

    /** For workers of tasks; in local mode those run where the driver does. */
    static HashMap ofTasks() {
        if (context().isLocal()) return ofDriver();
        return settings(python(), setting("kafkaLog.pythonPath", ""));
    }

    /** Where packages are looked for on this machine: in the files that Spark has brought here, then in the directories. */
    static String path(Map settings) {
        String path = "";
        String[] names = (String[]) settings.get("files");
        for (int i = 0; i < names.length; i++) path = joined(path, SparkFiles.get(names[i]));
        return joined(path, (String) settings.get("path"));
    }

    private static HashMap settings(String python, String path) {
        HashMap out = new HashMap();
        out.put("python", python);
        out.put("path", path);
        out.put("files", packages());
        out.put("memory", memory());
        return out;
    }

    /** How many MiB a worker may have, as Spark tells its own; null where nothing says so. */
    private static String memory() {
        String all = setting("executor.pyspark.memory", "");
        if (all.isEmpty()) return null;
        long cores = Math.max(1, Long.parseLong(setting("executor.cores", "1")));
        return Long.toString(JavaUtils.byteStringAsMb(all) / cores);
    }

    /** What Spark's own workers run. A relative path is one from the directory in which an executor runs. */
    private static String python() {
        String variable = System.getenv("PYSPARK_PYTHON");
        return setting("kafkaLog.python", setting("pyspark.python", variable == null ? "python3" : variable));
    }

    /** A setting of the session's, else of this process. */
    private static String setting(String name, String none) {
        return SQLConf.get().getConfString("spark." + name, System.getProperty(name, none));
    }

    /** The names of --py-files and the like that Python can import from. */
    private static String[] packages() {
        java.util.ArrayList names = new java.util.ArrayList();
        scala.collection.Iterator files = context().listFiles().iterator();
        while (files.hasNext()) {
            String name = new File(URI.create((String) files.next()).getPath()).getName();
            if (name.endsWith(".zip") || name.endsWith(".egg")) names.add(name);
        }
        java.util.Collections.sort(names);
        return (String[]) names.toArray(new String[names.size()]);
    }

    private static SparkContext context() {
        return org.apache.spark.SparkContext$.MODULE$.getOrCreate();
    }

    private static String joined(String one, String other) {
        if (one.isEmpty() || other.isEmpty()) return one + other;
        return one + File.pathSeparator + other;
    }
}
