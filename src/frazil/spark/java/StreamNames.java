package frazil;

import java.util.HashMap;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;

/** Puts a lake's table as a stream in the place of its name: options decide which columns it has. */
public class StreamNames extends scala.runtime.AbstractPartialFunction {
  public boolean isDefinedAt(Object node) {
    return node instanceof UnresolvedRelation && ((UnresolvedRelation) node).isStreaming();
  }

  public Object applyOrElse(Object node, scala.Function1 other) {
    if (!isDefinedAt(node)) return other.apply(node);
    UnresolvedRelation name = (UnresolvedRelation) node;
    HashMap asked = new HashMap();
    asked.put("options", new HashMap(name.options().asCaseSensitiveMap()));
    asked.put("streams", Boolean.TRUE);
    LakeTable table = EarlyTables.find(name, asked);
    if (table == null) return name;
    return new SubqueryAlias(table.alias(), LakeStreams.relation(table, true));
  }
}
