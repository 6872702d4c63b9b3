package frazil.rules;

import frazil.catalog.LakeTable;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.collection.immutable.Seq;

/** The metadata columns that a read of a table offers; one object, which Spark may compare. */
public class Offer {
  public final LakeTable table;
  public final Seq hidden;

  /** The names of the hidden columns that the plan has values for; null if the plan lacks the columns. */
  public final Set shown;

  private final Map options;
  private final int settings;

  public Offer(LakeTable table, Map options, int settings, Seq hidden, Set shown) {
    this.table = table;
    this.options = options;
    this.settings = settings;
    this.hidden = hidden;
    this.shown = shown;
  }

  public Offer of(Seq columns, Set names) {
    return new Offer(table, options, settings, columns, names);
  }

  /** Returns the table's plan: its own columns, followed by the hidden columns of the given names. */
  public LogicalPlan read(List names) {
    return (LogicalPlan)
        table
            .ofTable("read")
            .with("options", options)
            .with("hidden", names)
            .with("settings", new Integer(settings))
            .ask();
  }
}
