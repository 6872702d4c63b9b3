package frazil;

import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The target of a MERGE that evolves its schema, until the columns of the source are known. */
public class EvolvingTarget extends OneRowRelation {
  final LakeTable table;
  final CaseInsensitiveStringMap options;

  public EvolvingTarget(LakeTable table, CaseInsensitiveStringMap options) {
    this.table = table;
    this.options = options;
  }

  public boolean resolved() {
    return false;
  }

  /** What is wrong with the source is to be said, and not that this waits for it. */
  public boolean analyzed() {
    return true;
  }

  public boolean canEqual(Object other) {
    return other == this;
  }

  public boolean equals(Object other) {
    return other == this;
  }

  public int hashCode() {
    return System.identityHashCode(this);
  }

  public String toString() {
    return "EvolvingTarget " + table.name();
  }
}
