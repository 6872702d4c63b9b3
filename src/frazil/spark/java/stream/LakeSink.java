package frazil.stream;

import frazil.Door;
import frazil.Request;
import frazil.Spark;
import frazil.catalog.LakeTable;
import frazil.write.ComputedRows;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.streaming.WriteToStream;
import org.apache.spark.sql.catalyst.streaming.WriteToStreamStatement;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.streaming.Sink;

/** The sink of a stream: Spark hands over the rows of each batch, Python commits them exactly once. */
public class LakeSink implements Sink {
  private static final String QUERY = "sql.streaming.queryId";
  private final LakeTable table;
  private final String mode;
  private final String checkpoint;
  private final SinkState state = new SinkState();

  LakeSink(LakeTable table, String mode, String checkpoint) {
    this.table = table;
    this.mode = mode.toLowerCase();
    this.checkpoint = checkpoint;
  }

  private static Request ofSink(String verb, LakeTable table) {
    return table.catalog().ofName(verb, table.identifier()).with("uuid", table.uuid());
  }

  /** Replaces a lake's table by this sink in a stream that writes to it. */
  public static LogicalPlan of(WriteToStream plan) {
    if (!(plan.sink() instanceof LakeTable)) return plan;
    LakeTable table = (LakeTable) plan.sink();
    LakeSink sink = new LakeSink(table, plan.outputMode().toString(), plan.resolvedCheckpointLocation());
    ofSink("sink-open", table)
        .with("columns", plan.inputQuery().schema().json())
        // A sink named by its format has its options now; a table of a catalog gets them with the first batch.
        .with("options", table.stream() == null ? null : table.stream().get("options"))
        .ask();
    for (int i = 0; i < plan.productArity(); i++)
      if ("sink".equals(plan.productElementName(i)))
        return (LogicalPlan) Spark.with(plan, new int[] {i}, new Object[] {sink});
    throw new UnsupportedOperationException("This Spark has no sinks of streams");
  }

  public static void check(WriteToStreamStatement plan) {
    if (plan.sink() instanceof LakeTable && Spark.isContinuous(plan))
      Door.fail(
          "Cannot stream to " + plan.sink() + " with a continuous trigger: tables are written in batches",
          "unsupported",
          "FRAZIL_UNSUPPORTED",
          "0A000");
  }

  public void addBatch(long batch, Dataset data) {
    org.apache.spark.sql.classic.Dataset rows = (org.apache.spark.sql.classic.Dataset) data;
    SparkSession session = (SparkSession) rows.sparkSession();
    RDD computed = rows.queryExecution().toRdd();
    Request request =
        ofSink("sink-batch", table)
            .with("mode", mode)
            .with("batch", new Long(batch))
            .with("query", session.sparkContext().getLocalProperty(QUERY))
            .with("input", BatchInput.digest(checkpoint, batch, session.sessionState().newHadoopConf()))
            .with("options", options(rows.queryExecution().logical()));
    ArrayList handed = new ArrayList();
    handed.add(session.internalCreateDataFrame(computed, rows.schema(), false));
    state.begin(ComputedRows.isBinary(rows.queryExecution().executedPlan()) ? computed : null);
    try {
      request.ask(handed);
    } finally {
      state.end();
    }
  }

  /** The options that the query was started with. */
  private static Map options(LogicalPlan plan) {
    return new HashMap(Door.map(Spark.get(plan, "writeOptions")));
  }

  public String toString() {
    return "frazil[" + table.name() + "]";
  }
}
