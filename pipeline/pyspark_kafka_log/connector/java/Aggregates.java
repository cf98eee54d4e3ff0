package pyspark_kafka_log;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;

/** Aggregates of a query as Python is told of them. */
class Aggregates {
    private Aggregates() {}

    /** The functions as [name, column]; null where there is one that Python is not asked about. */
    static List functions(Aggregation asked) {
        List out = new ArrayList();
        AggregateFunc[] all = asked.aggregateExpressions();
        for (int i = 0; i < all.length; i++) {
            String[] told = told(all[i]);
            if (told == null || told[1] == null) return null;
            out.add(told);
        }
        return out;
    }

    /** The columns by which rows are put together; null where there is something else. */
    static List groups(Aggregation asked) {
        List out = new ArrayList();
        Expression[] all = asked.groupByExpressions();
        for (int i = 0; i < all.length; i++) {
            String name = column(all[i]);
            if (name == null) return null;
            out.add(name);
        }
        return out;
    }

    private static String[] told(AggregateFunc function) {
        if (function instanceof CountStar) return new String[] {"count", "*"};
        if (function instanceof Count) {
            Count count = (Count) function;
            return count.isDistinct() ? null : new String[] {"count", column(count.column())};
        }
        if (function instanceof Min) return new String[] {"min", column(((Min) function).column())};
        if (function instanceof Max) return new String[] {"max", column(((Max) function).column())};
        return null;
    }

    private static String column(Expression expression) {
        if (!(expression instanceof NamedReference)) return null;
        String[] names = ((NamedReference) expression).fieldNames();
        return names.length == 1 ? names[0] : null;
    }
}
