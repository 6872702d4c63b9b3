package frazil;

import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/** A rule of the optimiser: `input_file_name()` is the file's name, without the mark that paths have for errors. */
public class PlainFileNames extends Rule {
  public TreeNode apply(TreeNode plan) {
    return ((QueryPlan) plan).transformAllExpressions(new CutFileName());
  }
}
