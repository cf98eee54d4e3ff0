import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;

import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.RecordBatch;

/**
 * For each path on standard input: reads the headers of the segment's batches as a broker does, from the file, no checksum
 * verified, and prints "batches nanoseconds", of the thread's processor time.
 */
public final class HeaderBench {
    private static long sink;

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        String line;
        while ((line = in.readLine()) != null) {
            long start = clock.getCurrentThreadCpuTime();
            long batches = read(new File(line));
            System.out.println(batches + " " + (clock.getCurrentThreadCpuTime() - start));
            System.out.flush();
        }
        if (sink == 42) {
            System.err.println("never");
        }
    }

    private static long read(File file) throws Exception {
        long count = 0;
        try (FileRecords records = FileRecords.open(file, false)) {
            for (RecordBatch batch : records.batches()) {
                count++;
                sink += batch.baseOffset() + batch.lastOffset() + batch.nextOffset() + batch.sizeInBytes() + batch.magic();
                sink += batch.checksum() + batch.maxTimestamp() + batch.producerId() + batch.producerEpoch();
                sink += batch.baseSequence() + batch.lastSequence() + batch.partitionLeaderEpoch();
                sink += batch.compressionType().id + batch.timestampType().id;
                Integer own = batch.countOrNull();
                sink += own == null ? 0 : own;
                sink += (batch.isTransactional() ? 1 : 0) + (batch.isControlBatch() ? 1 : 0);
                sink += batch.deleteHorizonMs().orElse(0L);
            }
        }
        return count;
    }
}
