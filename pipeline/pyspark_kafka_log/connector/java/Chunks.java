package pyspark_kafka_log;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.util.HashMap;
import java.util.Map;

/** One answer of a worker: pieces with their lengths, 0 at the end, -1 before what went wrong, -2 before the metrics of a task. */
class Chunks extends InputStream {
    private final DataInputStream in;
    private int left;
    private boolean ended;
    private Map told = new HashMap();

    Chunks(DataInputStream in) {
        this.in = in;
    }

    /** A metric of the task, as far as it has said so. */
    long told(String name) {
        Object value = told.get(name);
        return value == null ? 0 : ((Number) value).longValue();
    }

    boolean ended() {
        return ended;
    }

    boolean atEnd() throws IOException {
        return !fill();
    }

    private boolean fill() throws IOException {
        if (ended) return false;
        while (left == 0) {
            left = in.readInt(); // a worker that ends in the middle is an error, never an end
            if (left == 0) {
                ended = true;
                return false;
            }
            if (left < 0) {
                byte[] message = new byte[in.readInt()];
                in.readFully(message);
                if (left == -2) {
                    left = 0;
                    told = (Map) new ObjectMapper().readValue(message, HashMap.class);
                    continue;
                }
                ended = true;
                left = 0;
                throw new PythonError(new String(message, "UTF-8"));
            }
        }
        return true;
    }

    public int read() throws IOException {
        if (!fill()) return -1;
        left--;
        return in.readUnsignedByte();
    }

    public int read(byte[] to, int at, int n) throws IOException {
        if (n == 0) return 0;
        if (!fill()) return -1;
        int got = in.read(to, at, Math.min(n, left));
        if (got < 0) throw new EOFException();
        left -= got;
        return got;
    }

    void drain() throws IOException {
        while (fill()) {
            in.skipBytes(left);
            left = 0;
        }
    }
}
