package pyspark_kafka_log;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownFilters;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.sources.EqualTo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.GreaterThan;
import org.apache.spark.sql.sources.GreaterThanOrEqual;
import org.apache.spark.sql.sources.In;
import org.apache.spark.sql.sources.IsNotNull;
import org.apache.spark.sql.sources.LessThan;
import org.apache.spark.sql.sources.LessThanOrEqual;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** What a query wants of a table: columns, filters, a limit, or aggregates; then the tasks that Python plans for it. */
class LogScan
    implements ScanBuilder, SupportsPushDownRequiredColumns, SupportsPushDownFilters, SupportsPushDownLimit, SupportsPushDownAggregates, SupportsReportStatistics, Batch {
    final Map options;
    final StructType table;
    StructType schema;
    Filter[] filters = new Filter[0];
    int limit = -1;
    private List aggregates;
    private List groups;
    private final QueryLogs logs = QueryLogs.ofThisQuery();
    private LogPlan planned;
    private boolean isToBeRead;

    LogScan(StructType schema, Map options) {
        this.table = schema;
        this.schema = schema;
        this.options = options;
    }

    public void pruneColumns(StructType required) {
        schema = required;
        isToBeRead = true;
    }

    /** All filters are told to Python, which leaves out what no row can come from; Spark looks again at each row, but for filters by which whole
     * partitions are chosen. */
    public Filter[] pushFilters(Filter[] given) {
        List known = new ArrayList();
        List left = new ArrayList();
        for (int i = 0; i < given.length; i++) {
            Object[] told = told(given[i]);
            if (told != null) known.add(given[i]);
            if (given[i] instanceof IsNotNull) told = new Object[] {((IsNotNull) given[i]).attribute(), "=", null}; // no partition is null
            if (told == null || !chooses(told)) left.add(given[i]);
        }
        filters = (Filter[]) known.toArray(new Filter[known.size()]);
        return (Filter[]) left.toArray(new Filter[left.size()]);
    }

    /** Whether a filter says which partitions are read. The columns of a view may have the same names. */
    private boolean chooses(Object[] told) {
        if (option(options, "view") != null) return false;
        return "partition".equals(told[0]) || ("topic".equals(told[0]) && ("=".equals(told[1]) || "in".equals(told[1])));
    }

    /** The value of an option, whose name may be in any case; null where it is not given. */
    static Object option(Map options, String name) {
        Object[] names = options.keySet().toArray();
        for (int i = 0; i < names.length; i++) {
            if (name.equalsIgnoreCase((String) names[i])) return options.get(names[i]);
        }
        return null;
    }

    /** Python says whether it can have them, and as which columns. What tasks give Spark puts together. */
    public boolean pushAggregation(Aggregation asked) {
        aggregates = Aggregates.functions(asked);
        groups = Aggregates.groups(asked);
        if (aggregates == null || groups == null) {
            aggregates = null;
            return false;
        }
        PythonWorker worker = PythonWorker.onDriver();
        try {
            String told = worker.text(request("aggregates"), null);
            if (told.isEmpty()) aggregates = null;
            else pruneColumns((StructType) DataType.fromJson(told));
        } finally {
            worker.release();
        }
        return aggregates != null;
    }

    public Filter[] pushedFilters() {
        return filters;
    }

    public boolean pushLimit(int rows) {
        limit = rows;
        return true;
    }

    public boolean isPartiallyPushed() {
        return true; // each task stops at the limit
    }

    public Scan build() {
        return this;
    }

    public StructType readSchema() {
        return schema;
    }

    public Batch toBatch() {
        return this;
    }

    public String description() {
        return "kafka-log " + options.get("path") + " columns " + java.util.Arrays.toString(schema.fieldNames())
            + " filters " + java.util.Arrays.toString(filters) + (limit < 0 ? "" : " limit " + limit)
            + (aggregates == null ? "" : " aggregated by tasks");
    }

    public Scan.ColumnarSupportMode columnarSupportMode() {
        return Scan.ColumnarSupportMode.SUPPORTED;
    }

    public CustomMetric[] supportedCustomMetrics() {
        return new CustomMetric[] {
            new LostBytes(), new LostRanges(), new LostRows(), new UncountedRanges(), new ReadBytes(), new SkippedBatches()
        };
    }

    public MicroBatchStream toMicroBatchStream(String checkpoint) {
        isToBeRead = false; // a stream has no size: its micro-batches are planned by their offsets
        return new LogStream(this, checkpoint);
    }

    public InputPartition[] planInputPartitions() {
        return planned().tasks;
    }

    /** By the plan of the tasks. Spark asks also of streams, and, before it has told filters and columns, of a scan that it does not read then. */
    public Statistics estimateStatistics() {
        return isToBeRead ? LogSize.of(planned(), schema) : LogSize.UNKNOWN;
    }

    /** What is read is planned once: all that runs of this scan reads the same. */
    private synchronized LogPlan planned() {
        if (planned == null) planned = logs.planned(request("plan"));
        return planned;
    }

    /** The tasks that a worker has planned. */
    static InputPartition[] tasks(ByteBuffer answer) {
        InputPartition[] tasks = new InputPartition[answer.getInt()];
        for (int i = 0; i < tasks.length; i++) {
            byte[] task = new byte[answer.getInt()];
            answer.get(task);
            tasks[i] = new LogTask(task);
        }
        return tasks;
    }

    public PartitionReaderFactory createReaderFactory() {
        return readers(request("read"));
    }

    PartitionReaderFactory readers(Map request) {
        return new LogReaders(PythonWorker.json(request), schema.length() == 0, limit, WorkerSettings.ofTasks());
    }

    Map request(String ask) {
        Map request = new HashMap();
        List told = new ArrayList();
        for (int i = 0; i < filters.length; i++) told.add(told(filters[i]));
        request.put("ask", ask);
        request.put("options", options);
        request.put("session", PythonWorker.session());
        request.put("table", table.fieldNames());
        request.put("columns", schema.fieldNames());
        request.put("metadata", FileMetadata.fields(schema));
        request.put("filters", told);
        request.put("parallelism", Integer.valueOf(PythonWorker.parallelism()));
        request.put("aggregates", aggregates);
        request.put("groups", groups);
        request.put("limit", limit < 0 ? null : Integer.valueOf(limit));
        return request;
    }

    /** A filter as [column, operator, value]; null for one that Python is not asked about. */
    private static Object[] told(Filter filter) {
        if (filter instanceof EqualTo) {
            EqualTo f = (EqualTo) filter;
            return told(f.attribute(), "=", f.value());
        }
        if (filter instanceof GreaterThan) {
            GreaterThan f = (GreaterThan) filter;
            return told(f.attribute(), ">", f.value());
        }
        if (filter instanceof GreaterThanOrEqual) {
            GreaterThanOrEqual f = (GreaterThanOrEqual) filter;
            return told(f.attribute(), ">=", f.value());
        }
        if (filter instanceof LessThan) {
            LessThan f = (LessThan) filter;
            return told(f.attribute(), "<", f.value());
        }
        if (filter instanceof LessThanOrEqual) {
            LessThanOrEqual f = (LessThanOrEqual) filter;
            return told(f.attribute(), "<=", f.value());
        }
        if (filter instanceof In) {
            In f = (In) filter;
            Object[] values = f.values();
            Object[] plain = new Object[values.length];
            for (int i = 0; i < values.length; i++) {
                plain[i] = plain(values[i]);
                if (plain[i] == null) return null;
            }
            return new Object[] {f.attribute(), "in", plain};
        }
        return null;
    }

    private static Object[] told(String column, String operator, Object value) {
        Object plain = plain(value);
        return plain == null ? null : new Object[] {column, operator, plain};
    }

    /** A value as JSON has it: times as microseconds since 1970, {"us": n}. */
    private static Object plain(Object value) {
        if (value instanceof String || value instanceof Integer || value instanceof Long) return value;
        java.time.Instant time = null;
        if (value instanceof java.sql.Timestamp) time = ((java.sql.Timestamp) value).toInstant();
        if (value instanceof java.time.Instant) time = (java.time.Instant) value;
        if (time == null) return null;
        Map out = new HashMap();
        // ChronoUnit.MICROS.between counts nanoseconds, which a long holds for three centuries only.
        out.put("us", Long.valueOf(time.getEpochSecond() * 1000000L + time.getNano() / 1000));
        return out;
    }
}
