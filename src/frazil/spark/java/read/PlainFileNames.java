package frazil.read;

import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/** An optimiser rule: `input_file_name()` returns the file's name without the suffix for errors. */
public class PlainFileNames extends Rule {
  public TreeNode apply(TreeNode plan) {
    return ((QueryPlan) plan).transformAllExpressions(new CutFileName());
  }
}
