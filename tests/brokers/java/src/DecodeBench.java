import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.CloseableIterator;

/**
 * For each path on standard input: reads the segment as a consumer reads a fetch response, in memory, checksums verified,
 * and prints "records nanoseconds". Files are loaded once, so that only the reading counts.
 */
public final class DecodeBench {
    private static long sink;

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Map<String, ByteBuffer> files = new HashMap<>();
        BufferSupplier buffers = BufferSupplier.create();
        String line;
        while ((line = in.readLine()) != null) {
            ByteBuffer data = files.get(line);
            if (data == null) {
                data = ByteBuffer.wrap(Files.readAllBytes(Path.of(line)));
                files.put(line, data);
            }
            long start = System.nanoTime();
            long records = read(data.duplicate(), buffers);
            System.out.println(records + " " + (System.nanoTime() - start));
            System.out.flush();
        }
        if (sink == 42) {
            System.err.println("never");
        }
    }

    private static long read(ByteBuffer data, BufferSupplier buffers) {
        long count = 0;
        for (RecordBatch batch : MemoryRecords.readableRecords(data).batches()) {
            batch.ensureValid();
            try (CloseableIterator<Record> records = batch.streamingIterator(buffers)) {
                while (records.hasNext()) {
                    Record record = records.next();
                    count++;
                    sink += record.offset() + record.timestamp() + record.keySize() + record.valueSize();
                    ByteBuffer value = record.value();
                    if (value != null && value.hasRemaining()) {
                        sink += value.get(value.position());
                    }
                    for (Header header : record.headers()) {
                        sink += header.key().length();
                    }
                }
            }
        }
        return count;
    }
}
