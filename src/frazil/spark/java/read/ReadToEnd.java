package frazil.read;

import java.util.ArrayList;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.UnaryNode;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** The strategy that plans scans of whole files (`ScanToEnd`) for relations over `PlannedFiles`. */
public class ReadToEnd extends SparkStrategy {
  public Seq apply(LogicalPlan plan) {
    if (!isOwn(plan)) return CollectionConverters.asScala(new ArrayList()).toList();
    ArrayList found = new ArrayList();
    Seq planned = org.apache.spark.sql.execution.datasources.FileSourceStrategy$.MODULE$.apply(plan);
    for (Object one : CollectionConverters.asJava(planned))
      found.add(((TreeNode) one).transformDown(new ReplaceScan()));
    return CollectionConverters.asScala(found).toList();
  }

  private static boolean isOwn(LogicalPlan plan) {
    Object node = plan;
    while (node instanceof Project
        || node instanceof Filter)
      node = ((UnaryNode) node).child();
    if (!(node instanceof LogicalRelation)) return false;
    Object relation = ((LogicalRelation) node).relation();
    return relation instanceof HadoopFsRelation
        && ((HadoopFsRelation) relation).location() instanceof PlannedFiles;
  }
}
