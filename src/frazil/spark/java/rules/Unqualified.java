package frazil.rules;

import frazil.Door;
import java.util.ArrayList;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;

/** Removes the qualifiers of columns. */
public class Unqualified extends scala.runtime.AbstractPartialFunction {
  public boolean isDefinedAt(Object node) {
    return node instanceof AttributeReference;
  }

  public Object applyOrElse(Object node, scala.Function1 other) {
    if (!isDefinedAt(node)) return other.apply(node);
    return ((AttributeReference) node).withQualifier(Door.seq(new ArrayList()));
  }
}
