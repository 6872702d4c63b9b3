package frazil;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InputFileName;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.SubstringIndex;

/** The name of a file without what stands behind it for errors; in the path itself that sign is written otherwise. */
public class OwnFileName extends scala.runtime.AbstractPartialFunction {
  public boolean isDefinedAt(Object node) {
    return node instanceof InputFileName;
  }

  public Object applyOrElse(Object node, scala.Function1 other) {
    if (!isDefinedAt(node)) return other.apply(node);
    return new SubstringIndex(
        (Expression) node, (Expression) Literal$.MODULE$.apply("#"), (Expression) Literal$.MODULE$.apply(new Integer(1)));
  }
}
