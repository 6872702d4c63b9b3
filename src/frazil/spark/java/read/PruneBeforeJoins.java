package frazil.read;

import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/**
 * An optimiser rule that `attach` adds to a session: plans filtered relations earlier, so that Spark chooses joins by the
 * size of the remaining files and `explain` shows their number.
 */
public class PruneBeforeJoins extends Rule {
  public TreeNode apply(TreeNode plan) {
    return plan.transformDown(new PruneFilteredRelation());
  }
}
