import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;

/**
 * Runs another main class and ends the JVM when standard input closes.
 *
 * <p>The parent holds the other end of the pipe. It closes it for a clean stop on every system, and the system closes it
 * when the parent dies, so no broker outlives the program that started it.
 */
public final class Guard {
    private static final long STOP_LIMIT_MS = 45_000;

    private Guard() { }

    public static void main(String[] args) throws Throwable {
        daemon("guard", () -> {
            drain(System.in);
            daemon("guard-halt", Guard::haltLater);
            System.exit(0);
        });
        Class<?> main = Class.forName(args[0]);
        String[] rest = Arrays.copyOfRange(args, 1, args.length);
        try {
            main.getMethod("main", String[].class).invoke(null, (Object) rest);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }

    private static void daemon(String name, Runnable body) {
        Thread thread = new Thread(body, name);
        thread.setDaemon(true);
        thread.start();
    }

    private static void drain(InputStream in) {
        try {
            while (in.read() >= 0) {
                // What is written to us says nothing: only the end counts.
            }
        } catch (IOException e) {
            // A broken pipe is an end as well.
        }
    }

    private static void haltLater() {
        try {
            Thread.sleep(STOP_LIMIT_MS);
        } catch (InterruptedException e) {
            return;
        }
        System.err.println("guard: no clean stop within " + STOP_LIMIT_MS + " ms");
        Runtime.getRuntime().halt(3);
    }
}
