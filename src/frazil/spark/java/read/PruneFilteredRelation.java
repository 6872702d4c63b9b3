package frazil.read;

import java.util.ArrayList;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/** Plans one of frazil's relations under the filter above it. */
public class PruneFilteredRelation extends scala.runtime.AbstractPartialFunction {
  private static LogicalRelation relation(Object node) {
    if (!(node instanceof Filter)) return null;
    Object child = ((Filter) node).child();
    if (!(child instanceof LogicalRelation)) return null;
    LogicalRelation found =
        (LogicalRelation) child;
    if (!(found.relation() instanceof HadoopFsRelation)) return null;
    Object files = ((HadoopFsRelation) found.relation()).location();
    return files instanceof PlannedFiles && !((PlannedFiles) files).isPruned() ? found : null;
  }

  public boolean isDefinedAt(Object node) { return relation(node) != null; }

  public Object applyOrElse(Object node, scala.Function1 other) {
    LogicalRelation found = relation(node);
    if (found == null) return other.apply(node);
    Filter filter =
        (Filter) node;
    HadoopFsRelation files =
        (HadoopFsRelation) found.relation();
    ArrayList conjuncts = new ArrayList();
    split(filter.condition(), conjuncts);
    PlannedFiles left = ((PlannedFiles) files.location()).pruned(conjuncts);
    Object pruned = new HadoopFsRelation(
        left, files.partitionSchema(), files.dataSchema(),
        files.bucketSpec(), files.fileFormat(), files.options(), files.sparkSession());
    Object[] parts = new Object[found.productArity()];
    for (int i = 0; i < parts.length; i++) parts[i] = i == 0 ? pruned : found.productElement(i);
    try {
      for (int i = 0; i < parts.length; i++)
        if ("catalogTable".equals(found.productElementName(i))) parts[i] = new scala.Some(left.table());
    } catch (ReflectiveOperationException e) {
      throw new IllegalArgumentException("Cannot describe planned files: " + e);
    }
    TreeNode relation = found.makeCopy(parts);
    return new Filter(
        filter.condition(), (LogicalPlan) relation);
  }

  private static void split(Expression condition, ArrayList into) {
    if (condition instanceof And) {
      split(((And) condition).left(), into);
      split(((And) condition).right(), into);
    } else {
      into.add(condition);
    }
  }
}
