import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;

/** Requests as JSON lines on standard input, one answer line each on standard output. */
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
