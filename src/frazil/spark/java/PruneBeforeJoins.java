package frazil;

import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/**
 * A rule of the optimiser that `attach` adds to a session: it plans filtered relations a little earlier, so that Spark
 * chooses joins by what is left of a table, and so that `explain` shows how many files are.
 */
public class PruneBeforeJoins extends Rule {
  public TreeNode apply(TreeNode plan) {
    return plan.transformDown(new PruneFilteredRelation());
  }
}
