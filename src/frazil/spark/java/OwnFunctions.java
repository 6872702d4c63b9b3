package frazil;

import org.apache.spark.sql.catalyst.expressions.ApplyFunctionExpression;

/** Puts Spark's own expressions in the place of calls of lakes' functions. */
public class OwnFunctions extends scala.runtime.AbstractPartialFunction {
  public boolean isDefinedAt(Object node) {
    return node instanceof ApplyFunctionExpression
        && ((ApplyFunctionExpression) node).function() instanceof LakeFunction;
  }

  public Object applyOrElse(Object node, scala.Function1 other) {
    if (!isDefinedAt(node)) return other.apply(node);
    ApplyFunctionExpression call = (ApplyFunctionExpression) node;
    return ((LakeFunction) call.function()).over(Door.list(call.children()));
  }
}
