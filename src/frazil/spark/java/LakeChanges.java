package frazil;

import org.apache.spark.sql.connector.catalog.Table;

/** A table's changes of rows, wherever this Spark has a name for them. */
public class LakeChanges {
  private final LakeTable table;

  public LakeChanges(LakeTable table) {
    this.table = table;
  }

  public LakeTable table() {
    return table;
  }

  /** The lake's table that a relation is of: itself, or that whose changes it has. */
  static LakeTable of(Table table) {
    if (table instanceof LakeTable) return (LakeTable) table;
    if (!table.getClass().getName().endsWith(".ChangelogTable")) return null;
    Object changes = Spark.get(table, "changelog");
    return changes instanceof LakeChanges ? ((LakeChanges) changes).table() : null;
  }
}
