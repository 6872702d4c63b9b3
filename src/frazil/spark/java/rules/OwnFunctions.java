package frazil.rules;

import frazil.Door;
import frazil.catalog.LakeFunction;
import org.apache.spark.sql.catalyst.expressions.ApplyFunctionExpression;

/** Replaces calls of lakes' functions by Spark's own expressions. */
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
