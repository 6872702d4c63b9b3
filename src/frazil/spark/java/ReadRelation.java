package frazil;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/** Puts Python's plan of a table in the place of the relation that Spark made of its name. */
public class ReadRelation extends scala.runtime.AbstractPartialFunction {
  private final Set targets;

  public ReadRelation(Set targets) {
    this.targets = targets;
  }

  public boolean isDefinedAt(Object node) {
    return isTwice(node) || isRead(node) || isLoose(node);
  }

  /** Whether a table is under its name twice: Spark's alias around ours. */
  private static boolean isTwice(Object node) {
    if (!(node instanceof SubqueryAlias) || node instanceof HiddenColumns) return false;
    SubqueryAlias alias = (SubqueryAlias) node;
    return alias.child() instanceof HiddenColumns
        && ((HiddenColumns) alias.child()).identifier().equals(alias.identifier());
  }

  /** Whether rows of a table are changed that takes any schema: Spark would look up no column of such a target. */
  private boolean isLoose(Object node) {
    if (!(node instanceof DataSourceV2Relation) || !targets.contains(node)) return false;
    Object table = ((DataSourceV2Relation) node).table();
    return table instanceof LakeTable && ((LakeTable) table).takesAnySchema() && !((LakeTable) table).evolves();
  }

  private boolean isRead(Object node) {
    return node instanceof DataSourceV2Relation
        && LakeChanges.of(((DataSourceV2Relation) node).table()) != null
        && !targets.contains(node);
  }

  public Object applyOrElse(Object node, scala.Function1 other) {
    if (isTwice(node)) return ((SubqueryAlias) node).child();
    if (isLoose(node)) {
      LakeTable strict = ((LakeTable) ((DataSourceV2Relation) node).table()).withoutAnySchema();
      return Spark.with((DataSourceV2Relation) node, new int[] {0}, new Object[] {strict});
    }
    if (!isRead(node)) return other.apply(node);
    DataSourceV2Relation relation = (DataSourceV2Relation) node;
    LakeTable table = LakeChanges.of(relation.table());
    Map told = table.told();
    told.put("options", new HashMap(relation.options().asCaseSensitiveMap()));
    told.put("hidden", new ArrayList());
    told.put(
        "settings",
        new Integer(
            org.apache.spark.sql.classic.SparkSession.active().sessionState().conf().getAllConfs().hashCode()));
    LogicalPlan plan = Bind.under((LogicalPlan) Door.ask("read", told), relation.output());
    if (relation.metadataOutput().isEmpty()) return plan;
    return new HiddenColumns(table.alias(), plan, new Offer(told, relation.metadataOutput(), null));
  }
}
