package frazil.write;

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
 * A scan of rows that another plan computes. Spark's own scan copies each into its binary format, which the rows of a batch
 * already have.
 */
public class ComputedRows extends RDDScanExec {
  /** Spark copies plans by their constructor arguments. */
  public ComputedRows(
      Seq output, RDD rdd, String name, Partitioning outputPartitioning, Seq outputOrdering, Option stream) {
    super(output, rdd, name, outputPartitioning, outputOrdering, stream);
  }

  /** Returns whether a plan's rows are in Spark's binary format, as those of whole-stage code generation are. */
  public static boolean isBinary(SparkPlan plan) {
    return plan instanceof WholeStageCodegenExec;
  }

  /** Returns a plan of the computed rows; Spark's planner accepts stages that were planned before. */
  public static LogicalPlan of(LogicalRDD rows) {
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
