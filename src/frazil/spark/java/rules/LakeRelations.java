package frazil.rules;

import frazil.Door;
import frazil.catalog.LakeChanges;
import frazil.catalog.LakeFunction;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/** An analyser rule: replaces the tables of lakes that a query reads by Python's plans, under the query's ids. */
public class LakeRelations extends org.apache.spark.sql.catalyst.rules.Rule {
  public TreeNode apply(TreeNode plan) {
    if (plan instanceof MergeIntoTable) plan = EarlyTables.evolved((MergeIntoTable) plan);
    plan = LakeWrites.aligned((LogicalPlan) plan);
    if (LakeFunction.used) plan = ((LogicalPlan) plan).resolveExpressions(new OwnFunctions());
    if (streams(plan)) plan = ((LogicalPlan) plan).resolveOperatorsUp(new StreamRelation());
    if (!reads(plan)) return plan;
    Set targets = Collections.newSetFromMap(new IdentityHashMap());
    targets((LogicalPlan) plan, targets);
    return ((LogicalPlan) plan).resolveOperatorsUp(new ReadRelation(targets));
  }

  private static boolean reads(TreeNode plan) {
    if (plan instanceof DataSourceV2Relation) return LakeChanges.of(((DataSourceV2Relation) plan).table()) != null;
    for (Object one : Door.list(plan.children())) if (reads((TreeNode) one)) return true;
    return false;
  }

  private static boolean streams(TreeNode plan) {
    if (StreamRelation.table(plan) != null) return true;
    for (Object one : Door.list(plan.children())) if (streams((TreeNode) one)) return true;
    return false;
  }

  /** Collects the tables that a plan changes, which are not replaced. */
  private static void targets(LogicalPlan plan, Set into) {
    LogicalPlan target = null;
    if (plan instanceof DeleteFromTable) target = ((DeleteFromTable) plan).table();
    else if (plan instanceof UpdateTable) target = ((UpdateTable) plan).table();
    else if (plan instanceof MergeIntoTable) target = ((MergeIntoTable) plan).targetTable();
    if (target != null) into.add(relation(target));
    for (Object one : Door.list(plan.children())) targets((LogicalPlan) one, into);
  }

  /** Returns the relation below a target's aliases. */
  public static LogicalPlan relation(LogicalPlan plan) {
    while (plan instanceof SubqueryAlias) plan = ((SubqueryAlias) plan).child();
    return plan;
  }
}
