import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.StringReader;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Properties;
import java.util.TreeMap;

/** Reads properties, each text in Base64 on a line; writes keys, values and the text that it makes of them, likewise. */
public class ReadProperties {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Properties properties = new Properties();
            try {
                properties.load(new StringReader(text(line)));
            } catch (IllegalArgumentException refused) {
                System.out.println("refused");
                continue;
            }
            StringWriter stored = new StringWriter();
            properties.store(stored, "");
            StringBuilder out = new StringBuilder("read " + base64(stored.toString()));
            for (var entry : new TreeMap<>(properties).entrySet()) {
                out.append(' ').append(base64((String) entry.getKey()));
                out.append(' ').append(base64((String) entry.getValue()));
            }
            System.out.println(out);
        }
    }

    private static String text(String base64) {
        return new String(Base64.getDecoder().decode(base64), StandardCharsets.UTF_8);
    }

    private static String base64(String text) {
        return "=" + Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}
