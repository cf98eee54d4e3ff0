import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.storage.internals.log.UnifiedLog;

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;

/** Parses the directories that are named on standard input, one a line, as a broker does that starts. */
public final class DirectoryNames {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(answer(new File(line)));
        }
    }

    private static String answer(File directory) {
        try {
            TopicPartition parsed = UnifiedLog.parseTopicPartitionName(directory);
            return "taken " + parsed.topic() + " " + parsed.partition();
        } catch (Exception refused) {
            return "refused " + refused.getMessage().lines().findFirst().orElse("");
        }
    }
}
