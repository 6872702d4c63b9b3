package frazil;

import java.util.HashMap;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;

/** Puts a table in the state that options of a read name in the place of its name. */
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
    HashMap asked = new HashMap();
    asked.put("options", new HashMap(name.options().asCaseSensitiveMap()));
    LakeTable table = EarlyTables.find(name, asked);
    return table == null ? name : (Object) new SubqueryAlias(table.alias(), Spark.relation(table, name.options()));
  }
}
