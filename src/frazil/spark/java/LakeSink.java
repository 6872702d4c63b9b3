package frazil;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.streaming.WriteToStream;
import org.apache.spark.sql.catalyst.streaming.WriteToStreamStatement;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.streaming.Sink;

/** Where a stream writes to: Spark hands over the rows of each batch, Python commits them, once. */
public class LakeSink implements Sink {
  private static final String QUERY = "sql.streaming.queryId";
  private final Map told;
  private final Map kept = new HashMap();

  LakeSink(LakeTable table, String mode, String checkpoint) {
    told = table.told();
    told.remove("key");
    told.put("uuid", table.uuid());
    told.put("mode", mode.toLowerCase());
    told.put("checkpoint", checkpoint);
  }

  /** A stream that writes to a table of a lake, with a sink of our own in the table's place. */
  static LogicalPlan of(WriteToStream plan) {
    if (!(plan.sink() instanceof LakeTable)) return plan;
    LakeTable table = (LakeTable) plan.sink();
    LakeSink sink = new LakeSink(table, plan.outputMode().toString(), plan.resolvedCheckpointLocation());
    Map asked = new LinkedHashMap(sink.told);
    asked.put("columns", plan.inputQuery().schema().json());
    // Spark shows options to a catalog's table with its first batch, and to a format when it asks for the table.
    asked.put("options", table.stream() == null ? null : table.stream().get("options"));
    Door.ask("sink-open", asked);
    for (int i = 0; i < plan.productArity(); i++)
      if ("sink".equals(plan.productElementName(i)))
        return (LogicalPlan) Spark.with(plan, new int[] {i}, new Object[] {sink});
    throw new UnsupportedOperationException("This Spark has no sinks of streams");
  }

  static void check(WriteToStreamStatement plan) {
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
    Map asked = new LinkedHashMap(told);
    asked.put("batch", new Long(batch));
    asked.put("query", session.sparkContext().getLocalProperty(QUERY));
    String checkpoint = (String) told.get("checkpoint");
    asked.put("input", BatchInput.digest(checkpoint, batch, session.sessionState().newHadoopConf()));
    asked.put("options", options(rows.queryExecution().logical()));
    RDD computed = rows.queryExecution().toRdd();
    kept.put("binary", ComputedRows.isBinary(rows.queryExecution().executedPlan()) ? computed : null);
    ArrayList handed = new ArrayList();
    handed.add(session.internalCreateDataFrame(computed, rows.schema(), false));
    Written.KEPT.set(kept);
    try {
      Door.ask("sink-batch", asked, handed);
    } finally {
      Written.KEPT.remove();
      // What a batch has broadcast can go before the next one comes.
      kept.remove("binary");
    }
  }

  /** The options that the query was started with. */
  private static Map options(LogicalPlan plan) {
    return new HashMap(Door.map(Spark.get(plan, "writeOptions")));
  }

  public String toString() {
    return "frazil[" + told.get("shown") + "]";
  }
}
