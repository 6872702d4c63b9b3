package frazil.read;

import frazil.Door;
import frazil.stream.StreamedRows;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation$;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** Makes a relation over files that Python plans in one call, since calls from Python are slow. */
public class PlannedRelation {
  /** Returns the rows in `session`; settings that are not options of the relation are looked up in `settings`. */
  public static Dataset rows(SparkSession session, SparkSession settings, Function planner, String facts)
      throws Exception {
    Map given = (Map) Door.parse(facts);
    StructType constants = type(given, "constants");
    PlannedFiles files =
        new PlannedFiles(
            planner,
            (String) given.get("word"),
            (String) given.get("key"),
            (String) given.get("root"),
            constants,
            (String) given.get("table"),
            (String) given.get("size_bytes"),
            (String) given.get("rows"),
            (String) given.get("columns"));
    FileFormat reader =
        "orc".equals(given.get("format")) ? (FileFormat) new OrcByPart() : new ParquetById(type(given, "known"));
    HadoopFsRelation relation =
        new HadoopFsRelation(
            files,
            constants,
            type(given, "data"),
            scala.Option.empty(),
            reader,
            org.apache.spark.api.python.PythonUtils.toScalaMap((Map) given.get("options")),
            settings);
    LogicalPlan plan = LogicalRelation$.MODULE$.apply(relation, files.table());
    if (Boolean.TRUE.equals(given.get("streams"))) plan = StreamedRows.streaming((LogicalRelation) plan);
    if (given.get("select") != null) {
      ArrayList columns = new ArrayList();
      for (Object text : (List) given.get("select"))
        columns.add(session.sessionState().sqlParser().parseExpression((String) text));
      plan = new Project(Door.seq(columns), plan);
    }
    return org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(session, plan);
  }

  /** Selects columns by their SQL, a list as JSON. */
  public static Dataset select(Dataset rows, String texts) {
    return (Dataset) rows.selectExpr(Door.seq((List) Door.parse(texts)));
  }

  /** Returns whether a session still has these settings. */
  public static boolean hasSettings(SparkSession session, Object settings) {
    return session.sessionState().conf().getAllConfs().equals(settings);
  }

  private static StructType type(Map given, String name) {
    String json = (String) given.get(name);
    return json == null ? null : (StructType) DataType.fromJson(json);
  }
}
