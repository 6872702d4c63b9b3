package frazil.rules;

import frazil.catalog.LakeTable;
import frazil.stream.LakeStreams;
import java.util.HashMap;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;

/** Replaces a name by the lake's table as a stream, whose columns depend on the options. */
public class StreamNames extends scala.runtime.AbstractPartialFunction {
  public boolean isDefinedAt(Object node) {
    return node instanceof UnresolvedRelation && ((UnresolvedRelation) node).isStreaming();
  }

  public Object applyOrElse(Object node, scala.Function1 other) {
    if (!isDefinedAt(node)) return other.apply(node);
    UnresolvedRelation name = (UnresolvedRelation) node;
    LakeTable table = EarlyTables.find(name, new HashMap(name.options().asCaseSensitiveMap()), "stream");
    if (table == null) return name;
    return new SubqueryAlias(table.alias(), LakeStreams.relation(table, true));
  }
}
