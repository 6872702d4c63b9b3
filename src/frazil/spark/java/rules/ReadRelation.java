package frazil.rules;

import frazil.Spark;
import frazil.catalog.LakeChanges;
import frazil.catalog.LakeTable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/** Replaces the relation that Spark made for a name by Python's plan of the table. */
public class ReadRelation extends scala.runtime.AbstractPartialFunction {
  private final Set targets;

  public ReadRelation(Set targets) {
    this.targets = targets;
  }

  public boolean isDefinedAt(Object node) {
    return isTwice(node) || isRead(node) || isLoose(node);
  }

  /** Whether a table has its name twice: Spark's alias around ours. */
  private static boolean isTwice(Object node) {
    if (!(node instanceof SubqueryAlias) || node instanceof HiddenColumns) return false;
    SubqueryAlias alias = (SubqueryAlias) node;
    return alias.child() instanceof HiddenColumns
        && ((HiddenColumns) alias.child()).identifier().equals(alias.identifier());
  }

  /** Whether a node is the target of a row change that accepts any schema: Spark would not resolve its columns. */
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
    HashMap options = new HashMap(relation.options().asCaseSensitiveMap());
    int settings = SparkSession.active().sessionState().conf().getAllConfs().hashCode();
    Offer offer = new Offer(table, options, settings, relation.metadataOutput(), null);
    LogicalPlan plan = Bind.under(offer.read(new ArrayList()), relation.output());
    return relation.metadataOutput().isEmpty() ? plan : new HiddenColumns(table.alias(), plan, offer);
  }
}
