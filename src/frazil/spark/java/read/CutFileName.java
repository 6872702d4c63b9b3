package frazil.read;

import org.apache.spark.sql.catalyst.expressions.InputFileName;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.SubstringIndex;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;

/** Removes the suffix after `#` from the name of the file that is read; a `#` in the name itself is encoded as `%23`. */
public class CutFileName extends scala.runtime.AbstractPartialFunction {
  private static final TreeNodeTag CUT = new TreeNodeTag("frazil.cut");

  public boolean isDefinedAt(Object node) {
    return node instanceof InputFileName && ((InputFileName) node).getTagValue(CUT).isEmpty();
  }

  public Object applyOrElse(Object node, scala.Function1 other) {
    if (!isDefinedAt(node)) return other.apply(node);
    InputFileName name = new InputFileName();
    name.setTagValue(CUT, Boolean.TRUE);
    return new SubstringIndex(name, Literal$.MODULE$.apply("#"), Literal$.MODULE$.apply(new Integer(1)));
  }
}
