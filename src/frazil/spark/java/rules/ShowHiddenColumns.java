package frazil.rules;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.AliasIdentifier;
import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** An analyser rule that runs last: adds to each table the metadata columns that the query uses, and no others. */
public class ShowHiddenColumns extends org.apache.spark.sql.catalyst.rules.Rule {
  public TreeNode apply(TreeNode plan) {
    if (!isAsked(plan)) return plan;
    Map used = new IdentityHashMap();
    visit((LogicalPlan) plan, ids((LogicalPlan) plan, new HashSet()), used);
    return (TreeNode) rewritten(plan, used);
  }

  /** Returns whether a query names a hidden column. */
  private static boolean isAsked(TreeNode plan) {
    if (plan instanceof HiddenColumns) return ((HiddenColumns) plan).isAsked();
    for (Object one : CollectionConverters.asJava(plan.children())) if (isAsked((TreeNode) one)) return true;
    for (Object one : CollectionConverters.asJava(plan.innerChildren()))
      if (one instanceof LogicalPlan && isAsked((TreeNode) one)) return true;
    return false;
  }

  /** Collects the hidden columns of each table that a plan uses, given those of its own columns that are used. */
  private static void visit(LogicalPlan plan, Set wanted, Map used) {
    if (plan instanceof HiddenColumns && !((HiddenColumns) plan).isAsked()) return;
    if (plan instanceof HiddenColumns) {
      Set names = (Set) used.get(plan);
      if (names == null) used.put(plan, names = new HashSet());
      for (Object one : CollectionConverters.asJava(((HiddenColumns) plan).hidden()))
        if (wanted.contains(HiddenColumns.id(one))) names.add(((Attribute) one).name());
      return;
    }
    Set below = new HashSet();
    if (plan instanceof Project) {
      for (Object one : CollectionConverters.asJava(((Project) plan).projectList()))
        if (wanted.contains(HiddenColumns.id(one))) uses((Expression) one, below, used);
    } else {
      below.addAll(wanted);
      for (Object one : CollectionConverters.asJava(plan.expressions())) uses((Expression) one, below, used);
    }
    boolean isWhole = isWhole(plan);
    for (Object one : CollectionConverters.asJava(plan.children())) {
      if (isWhole) ids((LogicalPlan) one, below);
      visit((LogicalPlan) one, below, used);
    }
    for (Object one : CollectionConverters.asJava(plan.innerChildren()))
      if (one instanceof LogicalPlan && !plan.subqueries().contains(one))
        visit((LogicalPlan) one, ids((LogicalPlan) one, new HashSet()), used);
  }

  /** Returns whether all columns below a plan are used: they are compared, written, combined, or a subquery's result. */
  private static boolean isWhole(LogicalPlan plan) {
    if (plan instanceof SubqueryAlias) return !(((SubqueryAlias) plan).child() instanceof SubqueryAlias);
    if (plan instanceof Distinct || plan instanceof Command) return true;
    return plan.children().size() > 1 && !(plan instanceof Join);
  }

  private static Set ids(LogicalPlan plan, Set into) {
    for (Object one : CollectionConverters.asJava(plan.output())) into.add(HiddenColumns.id(one));
    return into;
  }

  /** Collects the columns that an expression uses, also in its subqueries. */
  private static void uses(Expression expression, Set below, Map used) {
    if (expression instanceof AttributeReference) below.add(((AttributeReference) expression).exprId());
    if (expression instanceof PlanExpression) {
      Object plan = ((PlanExpression) expression).plan();
      if (plan instanceof LogicalPlan) {
        visit((LogicalPlan) plan, ids((LogicalPlan) plan, new HashSet()), used);
        outer((LogicalPlan) plan, below);
      }
    }
    for (Object one : CollectionConverters.asJava(expression.children())) uses((Expression) one, below, used);
  }

  /** Collects the columns of the outer query that a subquery uses. */
  private static void outer(TreeNode node, Set below) {
    if (node instanceof OuterReference) below.add(((OuterReference) node).exprId());
    for (Object one : CollectionConverters.asJava(node.children())) outer((TreeNode) one, below);
    if (node instanceof LogicalPlan)
      for (Object one : CollectionConverters.asJava(((LogicalPlan) node).expressions())) outer((TreeNode) one, below);
    if (node instanceof PlanExpression) outer((TreeNode) ((PlanExpression) node).plan(), below);
  }

  private static Object rewritten(Object o, Map used) {
    if (o instanceof HiddenColumns) return used.containsKey(o) ? ((HiddenColumns) o).show((Set) used.get(o)) : o;
    if (o instanceof LogicalPlan && !isAsked((TreeNode) o)) return o;
    if (o instanceof Seq) {
      ArrayList parts = new ArrayList();
      boolean changed = false;
      for (Object one : CollectionConverters.asJava((Seq) o)) {
        Object other = rewritten(one, used);
        changed |= other != one;
        parts.add(other);
      }
      return changed ? HiddenColumns.list(parts) : o;
    }
    boolean isPair = o instanceof scala.Tuple2;
    if (!(o instanceof TreeNode) && !(o instanceof scala.Some) && !isPair) return o;
    scala.Product product = (scala.Product) o;
    Object[] parts = new Object[product.productArity()];
    boolean changed = false;
    for (int i = 0; i < parts.length; i++) {
      parts[i] = rewritten(product.productElement(i), used);
      changed |= parts[i] != product.productElement(i);
    }
    if (!changed) return o;
    if (o instanceof scala.Some) return new scala.Some(parts[0]);
    return isPair ? (Object) new scala.Tuple2(parts[0], parts[1]) : ((TreeNode) o).makeCopy(parts);
  }
}
