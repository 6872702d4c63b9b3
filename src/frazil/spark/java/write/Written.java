package frazil.write;

import frazil.Door;
import frazil.Spark;
import frazil.stream.SinkState;
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
import org.apache.spark.sql.types.DataType$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Metadata;

/** The steps of a write, one call each: small batches would spend more time in Python's calls than on their rows. */
public class Written {
  /** Returns the rows in a session with its own settings; batches of a sink share one while settings are equal. */
  public static Dataset apart(Dataset rows, String settings, boolean sharesObservations) throws Exception {
    SparkSession session = (SparkSession) rows.sparkSession();
    SinkState sink = SinkState.current();
    Object asked = sink == null ? null : Arrays.asList(new Object[] {settings, session.conf().getAll()});
    SparkSession own = sink == null ? null : sink.session(asked);
    if (own == null) {
      own = cloned(session, settings, sharesObservations);
      if (sink != null) sink.keep(asked, own);
    }
    return in(own, rows.queryExecution().analyzed());
  }

  private static Dataset in(SparkSession session, LogicalPlan plan) {
    return org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(session, plan);
  }

  /** Clones a session with its own settings; interrupting either interrupts both. */
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

  /** Lets queries of a clone complete the observations of its session. */
  private static void share(SparkSession session, SparkSession own) throws Exception {
    Object manager = Spark.get(session, "observationManager");
    java.lang.reflect.Field waiting = manager.getClass().getDeclaredField("observations");
    waiting.setAccessible(true);
    waiting.set(Spark.get(own, "observationManager"), waiting.get(manager));
  }

  /** Selects columns by their quoted names, each with its new name, type (or none) and metadata. */
  public static Dataset columns(Dataset rows, String columns) {
    List requested = (List) Door.parse(columns);
    LogicalPlan plan = rows.queryExecution().analyzed();
    // A projection would copy the rows of a stream's batch, which are computed already, one by one.
    LogicalPlan described = plan instanceof LogicalRDD ? described((LogicalRDD) plan, requested) : null;
    if (described != null) return in((SparkSession) rows.sparkSession(), described);
    Column[] selected = new Column[requested.size()];
    for (int i = 0; i < selected.length; i++) {
      Map one = (Map) requested.get(i);
      Column column = new Column((String) one.get("quoted"));
      if (one.get("type") != null) column = column.cast(DataType.fromJson((String) one.get("type")));
      selected[i] = column.as((String) one.get("name"), Metadata.fromJson((String) one.get("metadata")));
    }
    return (Dataset) rows.select(selected);
  }

  /** Describes rows that are computed already; returns null if their columns are not the wanted ones. */
  private static LogicalPlan described(LogicalRDD plan, List requested) {
    if (plan.output().size() != requested.size()) return null;
    ArrayList output = new ArrayList();
    for (int i = 0; i < requested.size(); i++) {
      Attribute column = (Attribute) plan.output().apply(i);
      Map one = (Map) requested.get(i);
      String asked = (String) one.get("type");
      DataType type = asked == null ? column.dataType() : DataType.fromJson(asked);
      if (!column.name().equals(one.get("name"))) return null;
      if (!DataType$.MODULE$.equalsIgnoreCompatibleNullability(column.dataType(), type)) return null;
      output.add(column.withDataType(type).withMetadata(Metadata.fromJson((String) one.get("metadata"))));
    }
    return (LogicalPlan) Spark.with(plan, new int[] {0}, new Object[] {Door.seq(output)});
  }

  /** Returns whether Spark has a file system for a location. */
  public static boolean reaches(Dataset rows, String location, String options) {
    Configuration settings = ((SparkSession) rows.sparkSession()).sessionState().newHadoopConf();
    for (Object one : ((Map) Door.parse(options)).entrySet())
      settings.set((String) ((Map.Entry) one).getKey(), (String) ((Map.Entry) one).getValue());
    try {
      return new Path(location).getFileSystem(settings) != null;
    } catch (Throwable e) {
      // Whatever the reason, frazil's own storage writes there.
      return false;
    }
  }

  public static void parquet(Dataset rows, String options, String partition, String folder) {
    LogicalPlan plan = rows.queryExecution().analyzed();
    SinkState sink = SinkState.current();
    if (sink != null && plan instanceof LogicalRDD && sink.isBinary(((LogicalRDD) plan).rdd()))
      rows = in((SparkSession) rows.sparkSession(), ComputedRows.of((LogicalRDD) plan));
    DataFrameWriter writer = rows.write().mode(SaveMode.Append).options((Map) Door.parse(options));
    if (partition != null) writer = writer.partitionBy(new String[] {partition});
    writer.format(ParquetFiles.class.getName()).save(folder);
  }
}
