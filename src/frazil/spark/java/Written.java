package frazil;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.DataFrameWriter;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataType$;
import org.apache.spark.sql.types.Metadata;

/** Steps of a write, each in one call: small batches would wait for Python's calls longer than for their rows. */
public class Written {
  /** What the sink of a stream keeps from batch to batch; set while it has one written. */
  static final ThreadLocal KEPT = new ThreadLocal();

  /** The rows in a session under settings of its own; a sink's batches share one while settings stay the same. */
  public static Dataset apart(Dataset rows, String settings, boolean sharesObservations) throws Exception {
    SparkSession session = (SparkSession) rows.sparkSession();
    Map kept = (Map) KEPT.get();
    Object asked = kept == null ? null : Arrays.asList(new Object[] {settings, session.conf().getAll()});
    if (kept != null && asked.equals(kept.get("settings")))
      return in((SparkSession) kept.get("session"), rows.queryExecution().analyzed());
    SparkSession own = cloned(session, settings, sharesObservations);
    if (kept != null) {
      kept.put("settings", asked);
      kept.put("session", own);
    }
    return in(own, rows.queryExecution().analyzed());
  }

  private static Dataset in(SparkSession session, LogicalPlan plan) {
    return org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(session, plan);
  }

  /** A clone of a session under settings of its own; what interrupts the one does the other. */
  private static SparkSession cloned(SparkSession session, String settings, boolean sharesObservations)
      throws Exception {
    SparkSession own = session.cloneSession();
    if (sharesObservations) share(session, own);
    // The clone has the session's other tags already.
    Object tags = ((ThreadLocal) Spark.get(own, "managedJobTags")).get();
    String tag = (String) Spark.get(session, "sessionJobTag");
    if (tags instanceof Map) ((Map) tags).put("frazil", tag);
    else ((scala.collection.mutable.Map) tags).put("frazil", tag);
    for (Object one : ((Map) Door.parse(settings)).entrySet())
      own.conf().set((String) ((Map.Entry) one).getKey(), (String) ((Map.Entry) one).getValue());
    return own;
  }

  /** Let queries of a clone answer what observations of its session wait for. */
  private static void share(SparkSession session, SparkSession own) throws Exception {
    Object manager = Spark.get(session, "observationManager");
    java.lang.reflect.Field waiting = manager.getClass().getDeclaredField("observations");
    waiting.setAccessible(true);
    waiting.set(Spark.get(own, "observationManager"), waiting.get(manager));
  }

  /** Columns by their quoted names, each with a name, a type or none, and what is known of it or nothing. */
  public static Dataset columns(Dataset rows, String columns) {
    List wanted = (List) Door.parse(columns);
    LogicalPlan plan = rows.queryExecution().analyzed();
    // Rows that are computed already, as those of a stream's batch, would be copied one by one for a projection.
    LogicalPlan described = plan instanceof LogicalRDD ? described((LogicalRDD) plan, wanted) : null;
    if (described != null) return in((SparkSession) rows.sparkSession(), described);
    Column[] made = new Column[wanted.size()];
    for (int i = 0; i < made.length; i++) {
      Map one = (Map) wanted.get(i);
      Column column = new Column((String) one.get("quoted"));
      if (one.get("type") != null) column = column.cast(DataType.fromJson((String) one.get("type")));
      made[i] = column.as((String) one.get("name"), Metadata.fromJson((String) one.get("metadata")));
    }
    return (Dataset) rows.select(made);
  }

  /** Rows that are computed already, with what is known of their columns; null where they are not those wanted. */
  private static LogicalPlan described(LogicalRDD plan, List wanted) {
    if (plan.output().size() != wanted.size()) return null;
    ArrayList output = new ArrayList();
    for (int i = 0; i < wanted.size(); i++) {
      Attribute column = (Attribute) plan.output().apply(i);
      Map one = (Map) wanted.get(i);
      String asked = (String) one.get("type");
      DataType type = asked == null ? column.dataType() : DataType.fromJson(asked);
      if (!column.name().equals(one.get("name"))) return null;
      if (!DataType$.MODULE$.equalsIgnoreCompatibleNullability(column.dataType(), type)) return null;
      output.add(column.withDataType(type).withMetadata(Metadata.fromJson((String) one.get("metadata"))));
    }
    return (LogicalPlan) Spark.with(plan, new int[] {0}, new Object[] {Door.seq(output)});
  }

  /** Whether Spark's own file systems know a location. */
  public static boolean reaches(Dataset rows, String location, String options) {
    Configuration settings = ((SparkSession) rows.sparkSession()).sessionState().newHadoopConf();
    for (Object one : ((Map) Door.parse(options)).entrySet())
      settings.set((String) ((Map.Entry) one).getKey(), (String) ((Map.Entry) one).getValue());
    try {
      return new Path(location).getFileSystem(settings) != null;
    } catch (Throwable e) {
      // Whatever keeps Hadoop from opening the location, our own storage writes there.
      return false;
    }
  }

  public static void parquet(Dataset rows, String options, String partition, String folder) {
    LogicalPlan plan = rows.queryExecution().analyzed();
    Map kept = (Map) KEPT.get();
    if (kept != null && plan instanceof LogicalRDD && ((LogicalRDD) plan).rdd() == kept.get("binary"))
      rows = in((SparkSession) rows.sparkSession(), ComputedRows.of((LogicalRDD) plan));
    DataFrameWriter writer = rows.write().mode(SaveMode.Append).options((Map) Door.parse(options));
    if (partition != null) writer = writer.partitionBy(new String[] {partition});
    writer.format(ParquetFiles.class.getName()).save(folder);
  }
}
