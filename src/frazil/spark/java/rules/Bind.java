package frazil.rules;

import frazil.Door;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.Dataset;
import scala.collection.immutable.Seq;

/** Gives columns the ids of others, so that expressions over the others apply to them. */
public class Bind {
  /** Returns a plan whose columns have the ids of others, by position. */
  public static LogicalPlan under(LogicalPlan plan, Seq target) {
    ArrayList columns = new ArrayList();
    List output = Door.list(plan.output());
    int at = 0;
    for (Object one : Door.list(target)) columns.add(alias((Attribute) output.get(at++), (Attribute) one));
    return new Project(Door.seq(columns), plan);
  }

  /** Returns a frame whose columns have the ids of others of the same names; the rest are unchanged. */
  public static Dataset named(Dataset frame, Seq target) {
    HashMap ids = new HashMap();
    for (Object one : Door.list(target)) ids.put(((Attribute) one).name(), one);
    LogicalPlan plan = frame.queryExecution().analyzed();
    ArrayList columns = new ArrayList();
    for (Object one : Door.list(plan.output())) {
      Attribute column = (Attribute) one;
      Object as = ids.get(column.name());
      columns.add(as == null ? (Object) column : alias(column, (Attribute) as));
    }
    return org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(
        frame.sparkSession(), new Project(Door.seq(columns), plan));
  }

  public static Object alias(Expression value, Attribute as) {
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
