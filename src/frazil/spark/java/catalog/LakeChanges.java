package frazil.catalog;

import frazil.Spark;
import org.apache.spark.sql.connector.catalog.Table;

/** The changed rows of a table; Spark before 4.2 has no interface for them. */
public class LakeChanges {
  private final LakeTable table;

  public LakeChanges(LakeTable table) {
    this.table = table;
  }

  public LakeTable table() {
    return table;
  }

  /** Returns the lake's table behind a relation's table: itself, or the one whose changes it holds; else null. */
  public static LakeTable of(Table table) {
    if (table instanceof LakeTable) return (LakeTable) table;
    if (!table.getClass().getName().endsWith(".ChangelogTable")) return null;
    Object changes = Spark.get(table, "changelog");
    return changes instanceof LakeChanges ? ((LakeChanges) changes).table() : null;
  }
}
