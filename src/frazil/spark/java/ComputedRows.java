package frazil;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.RDDScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * A scan of rows that another plan computes, as they are. Spark's own copies each into a row of its binary format, which
 * those of a batch have already.
 */
public class ComputedRows extends RDDScanExec {
  /** Spark makes copies of plans by their arguments. */
  public ComputedRows(
      Seq output, RDD rdd, String name, Partitioning outputPartitioning, Seq outputOrdering, Option stream) {
    super(output, rdd, name, outputPartitioning, outputOrdering, stream);
  }

  /** Whether a plan's rows are in Spark's binary format: what Spark generates as one piece of code gives no others. */
  static boolean isBinary(SparkPlan plan) {
    return plan instanceof WholeStageCodegenExec;
  }

  /** A plan that takes computed rows as they are. Spark's planner has a strategy for stages that were planned before. */
  static LogicalPlan of(LogicalRDD rows) {
    Option none = Option.empty();
    return new LogicalQueryStage(
        rows,
        new ComputedRows(
            rows.output(), rows.rdd(), "Computed", rows.outputPartitioning(), rows.outputOrdering(), none));
  }

  public RDD doExecute() {
    return rdd();
  }

  public boolean supportCodegen() {
    return false;
  }
}
