package frazil.rules;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Locale;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/** Finds the nodes that make a plan more than a query, before and after names are resolved. */
public class Refused {
  private static final Set COMMANDS =
      new HashSet(
          Arrays.asList(
              new Object[] {
                "Command", "Call", "ExecutableDuringAnalysis", "ParsedStatement", "CompoundPlanStatement", "CompoundBody", "SingleStatement",
                "InsertIntoDir", "UnresolvedExecuteImmediate", "ExecuteImmediateQuery", "ExecuteImmediateCommands"
              }));

  /** External programs, Java methods, and names computed during analysis, which may refer to either. */
  private static final Set CODE =
      new HashSet(
          Arrays.asList(
              new Object[] {
                "ScriptTransformation", "CallMethodViaReflection", "TryReflect", "PlanWithUnresolvedIdentifier",
                "ExpressionWithUnresolvedIdentifier"
              }));

  private static final Set FUNCTIONS =
      new HashSet(
          Arrays.asList(new Object[] {"reflect", "java_method", "try_reflect", "from_protobuf", "to_protobuf"}));

  /** Returns the first such node as `command <kind>` or `code <kind>`; null if there is none. */
  public static String find(Object node, boolean isTrusted) {
    if (node instanceof TreeNode) {
      for (Class one = node.getClass(); one != null; one = one.getSuperclass())
        if (isA(one, COMMANDS)) return "command " + ((TreeNode) node).nodeName();
      String code = isTrusted ? null : code((TreeNode) node);
      if (code != null) return "code " + code;
    }
    scala.collection.Iterator parts = null;
    if (node instanceof scala.collection.Iterable) parts = ((scala.collection.Iterable) node).iterator();
    else if (node instanceof TreeNode
        || node instanceof scala.Some
        || node instanceof scala.Tuple2
        || node instanceof scala.Tuple3) parts = ((scala.Product) node).productIterator();
    while (parts != null && parts.hasNext()) {
      String part = find(parts.next(), isTrusted);
      if (part != null) return part;
    }
    return null;
  }

  private static String code(TreeNode node) {
    if (CODE.contains(node.getClass().getSimpleName()))
      return node.nodeName().endsWith("UnresolvedIdentifier") ? "IDENTIFIER()" : node.nodeName();
    if (node instanceof LogicalRelation && isOfFiles((LogicalRelation) node))
      return ((HadoopFsRelation) ((LogicalRelation) node).relation()).location().rootPaths().mkString(" ");
    if (!(node instanceof UnresolvedFunction)) return null;
    String name = ((String) ((UnresolvedFunction) node).nameParts().last()).toLowerCase(Locale.ROOT);
    return FUNCTIONS.contains(name) ? name : null;
  }

  /** Returns whether a relation reads files that the query names by path, not a table's. */
  private static boolean isOfFiles(LogicalRelation node) {
    return node.relation() instanceof HadoopFsRelation && node.catalogTable().isEmpty();
  }

  private static boolean isA(Class kind, Set names) {
    if (names.contains(kind.getSimpleName())) return true;
    Class[] above = kind.getInterfaces();
    for (int i = 0; i < above.length; i++) if (isA(above[i], names)) return true;
    return false;
  }
}
