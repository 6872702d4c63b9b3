package frazil;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.collection.immutable.Seq;

/** The metadata columns that a table offers; one object, which Spark may compare. */
public class Offer {
  final Map told;
  final Seq hidden;

  /** The names of the hidden columns that the plan has values for; null where it does not have the columns. */
  final Set shown;

  public Offer(Map told, Seq hidden, Set shown) {
    this.told = told;
    this.hidden = hidden;
    this.shown = shown;
  }

  /** The plan of the table: its own columns, and then those hidden ones that are asked for. */
  LogicalPlan read(List asked) {
    LinkedHashMap question = new LinkedHashMap(told);
    question.put("hidden", asked);
    return (LogicalPlan) Door.ask("read", question);
  }
}
