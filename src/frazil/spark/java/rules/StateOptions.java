package frazil.rules;

import frazil.Spark;
import frazil.catalog.LakeTable;
import java.util.HashMap;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;

/** Replaces a name by the table in the state that the read's options name. */
public class StateOptions extends scala.runtime.AbstractPartialFunction {
  private static final String[] KEYS = {"snapshot-id", "as-of-timestamp", "branch", "tag", "readChangeFeed"};

  public boolean isDefinedAt(Object node) {
    if (!(node instanceof UnresolvedRelation)) return false;
    UnresolvedRelation name = (UnresolvedRelation) node;
    if (name.options().isEmpty() || name.isStreaming() || name.options().containsKey(EarlyTables.PRIVILEGES))
      return false;
    for (int i = 0; i < KEYS.length; i++) if (name.options().containsKey(KEYS[i])) return true;
    return false;
  }

  public Object applyOrElse(Object node, scala.Function1 other) {
    if (!isDefinedAt(node)) return other.apply(node);
    UnresolvedRelation name = (UnresolvedRelation) node;
    LakeTable table = EarlyTables.find(name, new HashMap(name.options().asCaseSensitiveMap()), "read");
    return table == null ? name : (Object) new SubqueryAlias(table.alias(), Spark.relation(table, name.options()));
  }
}
