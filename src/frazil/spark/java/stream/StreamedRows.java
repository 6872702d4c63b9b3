package frazil.stream;

import frazil.Door;
import frazil.Spark;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * Marks the rows of a batch as streaming. If they come from files alone, the relations are marked. If they are joined or
 * grouped, Spark would keep state for that, so a union with an empty stream is marked instead.
 */
public class StreamedRows extends scala.runtime.AbstractPartialFunction {
  public static Dataset of(Dataset rows) {
    SparkSession session = (SparkSession) rows.sparkSession();
    LogicalPlan plan = rows.queryExecution().analyzed();
    if (plan.isStreaming()) return rows;
    LogicalPlan stream;
    if (isOfFiles(plan)) {
      stream = (LogicalPlan) plan.transformDown(new StreamedRows());
    } else {
      Dataset none =
          session.internalCreateDataFrame(
              session.sparkContext().emptyRDD(
                  scala.reflect.ClassTag$.MODULE$.apply(org.apache.spark.sql.catalyst.InternalRow.class)),
              rows.schema(),
              true);
      ArrayList both = new ArrayList();
      both.add(plan);
      both.add(none.queryExecution().analyzed());
      stream = new Union(Door.seq(both), false, false);
    }
    return org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(session, stream);
  }

  private static boolean isOfFiles(LogicalPlan plan) {
    if (plan instanceof LogicalRelation) return true;
    if (!(plan instanceof Project || plan instanceof Filter || plan instanceof Union)) return false;
    for (Object one : Door.list(plan.children())) if (!isOfFiles((LogicalPlan) one)) return false;
    return true;
  }

  public boolean isDefinedAt(Object node) {
    return node instanceof LogicalRelation && !((LogicalRelation) node).isStreaming();
  }

  public Object applyOrElse(Object node, scala.Function1 other) {
    return isDefinedAt(node) ? streaming((LogicalRelation) node) : other.apply(node);
  }

  public static LogicalRelation streaming(LogicalRelation relation) {
    for (int i = 0; i < relation.productArity(); i++)
      if ("isStreaming".equals(relation.productElementName(i)))
        return (LogicalRelation) Spark.with(relation, new int[] {i}, new Object[] {Boolean.TRUE});
    throw new UnsupportedOperationException("This Spark has no relations that stream");
  }
}
