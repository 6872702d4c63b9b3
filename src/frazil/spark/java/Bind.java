package frazil;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import scala.collection.immutable.Seq;

/** Columns under the ids of others, so that expressions over those are expressions over these. */
public class Bind {
  /** A plan whose columns, place by place, have the ids of others. */
  public static LogicalPlan under(LogicalPlan plan, Seq known) {
    ArrayList columns = new ArrayList();
    List found = Door.list(plan.output());
    int at = 0;
    for (Object one : Door.list(known)) columns.add(alias((Attribute) found.get(at++), (Attribute) one));
    return new Project(Door.seq(columns), plan);
  }

  /** A frame of whose columns those have the ids of others that are named as they are; the rest stay. */
  public static Dataset named(Dataset frame, Seq known) {
    HashMap ids = new HashMap();
    for (Object one : Door.list(known)) ids.put(((Attribute) one).name(), one);
    LogicalPlan plan = frame.queryExecution().analyzed();
    ArrayList columns = new ArrayList();
    for (Object one : Door.list(plan.output())) {
      Attribute found = (Attribute) one;
      Object as = ids.get(found.name());
      columns.add(as == null ? (Object) found : alias(found, (Attribute) as));
    }
    return org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(
        frame.sparkSession(), new Project(Door.seq(columns), plan));
  }

  static Object alias(Expression value, Attribute as) {
    if (value instanceof Attribute && ((Attribute) value).exprId().equals(as.exprId())) return value;
    return new Alias(
        value,
        as.name(),
        as.exprId(),
        Door.seq(new ArrayList()),
        scala.Option.empty(),
        Door.seq(new ArrayList()));
  }
}
