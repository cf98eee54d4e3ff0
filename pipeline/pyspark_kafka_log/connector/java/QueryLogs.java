package pyspark_kafka_log;

import java.nio.ByteBuffer;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import scala.Option;

/**
 * What the scans of one query have found of logs. Each is planned with what those before it have found, so that all read the same, however logs grow.
 * A query is known by its tracker, which Spark has for each plan that it makes, of subqueries too, and which goes when the plan does: an execution's id
 * is not there yet where a plan is made for explain, or kept from an earlier action.
 */
class QueryLogs {
    private static final Map OF_QUERIES = new WeakHashMap();
    private byte[] found;

    /** Those of the query that this thread plans; of one scan alone where it plans none. */
    static QueryLogs ofThisQuery() {
        Option tracker = QueryPlanningTracker.get();
        if (tracker.isEmpty()) return new QueryLogs();
        synchronized (OF_QUERIES) {
            QueryLogs logs = (QueryLogs) OF_QUERIES.get(tracker.get());
            if (logs == null) {
                logs = new QueryLogs();
                OF_QUERIES.put(tracker.get(), logs);
            }
            return logs;
        }
    }

    /** What a scan reads. */
    synchronized LogPlan planned(Map request) {
        PythonWorker worker = PythonWorker.onDriver();
        try {
            ByteBuffer answer = worker.bytes(request, found);
            byte[] now = new byte[answer.getInt()];
            answer.get(now);
            found = now;
            return new LogPlan(answer);
        } finally {
            worker.release();
        }
    }
}
