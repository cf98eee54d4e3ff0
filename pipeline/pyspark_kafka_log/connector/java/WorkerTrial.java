package pyspark_kafka_log;

import java.io.File;
import java.io.IOException;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.net.InetAddress;
import java.util.concurrent.TimeUnit;

/** Why a Python cannot be a worker: it is started once more, and what it says is taken. */
class WorkerTrial {
    private static final String NEXT =
        ". Its Python needs the package kafka-codecs: install it on every machine, or ship it with --archives environment.tar.gz#environment"
        + " and PYSPARK_PYTHON=./environment/bin/python, or name another Python with spark.kafkaLog.python"
        + " (of the driver: spark.kafkaLog.driverPython)";
    private static final String NO_MEMORY = "WorkerMemoryError: ";
    private static final int PATIENCE = 60;

    private WorkerTrial() {
    }

    static String whyNot(String python, String path, String memory, String module, Exception failure) {
        String said = said(python, path, memory, module);
        int refusal = said.indexOf(NO_MEMORY);
        if (refusal >= 0) return said.substring(refusal + NO_MEMORY.length());
        return "kafka-log: no Python worker on " + host() + ", " + python + " in " + new File("").getAbsolutePath() + ": "
            + (said.isEmpty() ? "it ended before it answered (" + failure + ")" : said + NEXT);
    }

    /** The last line of what an import prints; nothing where it succeeds. */
    private static String said(String python, String path, String memory, String module) {
        File printed = null;
        Process process = null;
        try {
            printed = File.createTempFile("kafka-log", ".txt");
            ProcessBuilder trial = new ProcessBuilder(new String[] {python, "-c", "import " + module});
            String given = (String) trial.environment().get("PYTHONPATH");
            String all = sparkPath() + File.pathSeparator + path + (given == null ? "" : File.pathSeparator + given);
            trial.environment().put("PYTHONPATH", all);
            if (memory != null) trial.environment().put("PYSPARK_EXECUTOR_MEMORY_MB", memory);
            trial.redirectErrorStream(true).redirectOutput(printed);
            process = trial.start();
            if (!process.waitFor(PATIENCE, TimeUnit.SECONDS)) {
                return "it does not start in " + PATIENCE + " s";
            }
            if (process.exitValue() == 0) return "";
            String text = new String(java.nio.file.Files.readAllBytes(printed.toPath()), "UTF-8").trim();
            return text.isEmpty() ? "exit code " + process.exitValue() : text.substring(text.lastIndexOf('\n') + 1);
        } catch (IOException e) {
            return e.getMessage();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return "";
        } finally {
            if (process != null) process.destroyForcibly();
            if (printed != null) printed.delete();
        }
    }

    /** Where Spark's own packages are. */
    private static String sparkPath() {
        try {
            Object utils = org.apache.spark.api.python.PythonUtils$.MODULE$;
            MethodType type = MethodType.methodType(String.class);
            MethodHandle method = MethodHandles.publicLookup().findVirtual(utils.getClass(), "sparkPythonPath", type);
            return (String) method.invokeWithArguments(new Object[] {utils});
        } catch (Throwable e) {
            return "";
        }
    }

    private static String host() {
        try {
            return InetAddress.getLocalHost().getHostName();
        } catch (IOException e) {
            return "this machine";
        }
    }
}
