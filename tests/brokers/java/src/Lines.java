import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;

/** Requests on standard input, JSON lines on standard output: a JSON line for each JSON line, or the rows of each file that is named. */
final class Lines {
    static final ObjectMapper JSON = new ObjectMapper();

    private Lines() { }

    interface Handler {
        /** Answers one request; an exception becomes an {@code error} answer. */
        void handle(JsonNode request, ObjectNode answer) throws Exception;
    }

    static void serve(Handler handler) throws IOException {
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                handler.handle(JSON.readTree(line), answer);
            } catch (Exception e) {
                e.printStackTrace();
                Throwable cause = e.getCause();
                answer.removeAll();
                answer.put("error", cause == null ? e.toString() : e + ", from " + cause);
            }
            out.println(JSON.writeValueAsString(answer));
        }
    }

    interface Reader {
        /** Prints the rows of one file. */
        void read(File file, Rows out) throws Exception;
    }

    /** Rows as JSON lines. */
    record Rows(PrintStream out) {
        void print(ObjectNode row) throws IOException {
            out.println(JSON.writeValueAsString(row));
        }
    }

    /** Reads each file that is named, one path a line; its rows are written out before the next path is waited for. */
    static void files(Reader reader) throws Exception {
        FileOutputStream raw = new FileOutputStream(FileDescriptor.out);
        PrintStream out = new PrintStream(new BufferedOutputStream(raw, 1 << 16), false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String path = in.readLine(); path != null; path = in.readLine()) {
            reader.read(new File(path), new Rows(out));
            out.flush();
        }
    }

    static ObjectNode row(String type) {
        return JSON.createObjectNode().put("type", type);
    }

    /** A record without its headers. */
    static ObjectNode record(long offset, long timestamp, int sequence, ByteBuffer key, ByteBuffer value) {
        return row("record").put("offset", offset).put("timestamp", timestamp).put("sequence", sequence)
            .put("key", array(key)).put("value", array(value));
    }

    private static byte[] array(ByteBuffer buffer) {
        if (buffer == null) {
            return null;
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }

    static byte[] bytes(JsonNode node) {
        return node == null || node.isNull() ? null : Base64.getDecoder().decode(node.asText());
    }

    static Map<String, String> strings(JsonNode node) {
        Map<String, String> map = new HashMap<>();
        for (Iterator<String> names = node.fieldNames(); names.hasNext(); ) {
            String name = names.next();
            map.put(name, node.get(name).asText());
        }
        return map;
    }
}
