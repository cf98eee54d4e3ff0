package pyspark_kafka_log;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.UnsupportedFileSystemException;

/**
 * Where a query began, in its checkpoint: a file with the name and the contents of the one of Spark's Kafka source.
 * Spark logs only where the first micro-batch ends, so that a restart would begin where the log begins by then.
 */
class InitialOffsets {
    private static final String VERSION = "v1";

    private final Path path;
    private final Configuration configuration;

    InitialOffsets(String checkpoint, Configuration configuration) {
        path = new Path(checkpoint, "0");
        this.configuration = configuration;
    }

    /** The offsets that were written, null where there are none. */
    String read() {
        byte[] bytes;
        try {
            InputStream in = path.getFileSystem(configuration).open(path);
            try {
                bytes = in.readAllBytes();
            } finally {
                in.close();
            }
        } catch (FileNotFoundException e) {
            return null;
        } catch (IOException e) {
            throw new UncheckedIOException("kafka-log: the initial offsets in " + path + " cannot be read: " + e.getMessage(), e);
        }
        String text = new String(bytes, java.nio.charset.StandardCharsets.UTF_8).substring(bytes.length > 0 && bytes[0] == 0 ? 1 : 0);
        if (text.startsWith(VERSION + "\n")) return text.substring(VERSION.length() + 1);
        throw new IllegalStateException(
            "kafka-log: " + path + " does not hold initial offsets of version " + VERSION + ": restore the checkpoint, or begin with a new one");
    }

    /**
     * Write offsets beside their place, and rename the file unless another query with this checkpoint has written its own meanwhile. No
     * part of a file is ever read.
     */
    void write(String json) {
        Path scratch = new Path(path.getParent(), ".0." + UUID.randomUUID() + ".tmp");
        try {
            FileSystem files = path.getFileSystem(configuration);
            files.mkdirs(path.getParent());
            OutputStream out = files.create(scratch, false);
            try {
                out.write(0); // Spark's Kafka source writes this byte first
                out.write((VERSION + "\n" + json).getBytes(java.nio.charset.StandardCharsets.UTF_8));
            } finally {
                out.close();
            }
            try {
                rename(files, scratch);
            } catch (FileAlreadyExistsException e) {
                files.delete(scratch, false); // whoever was first decides
            }
        } catch (IOException e) {
            throw new UncheckedIOException("kafka-log: the initial offsets cannot be written to " + path + ": " + e.getMessage(), e);
        }
    }

    /** As Spark renames its logs: a local FileSystem would replace a file that exists, a FileContext does not. */
    private void rename(FileSystem files, Path scratch) throws IOException {
        try {
            FileContext.getFileContext(path.toUri(), configuration).rename(scratch, path, new Options.Rename[0]);
        } catch (UnsupportedFileSystemException e) {
            if (files.exists(path)) throw new FileAlreadyExistsException(path.toString());
            if (!files.rename(scratch, path)) throw new IOException("it could not be renamed from " + scratch);
        }
    }
}
