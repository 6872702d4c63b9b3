package frazil.rules;

import frazil.catalog.LakeTable;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The target of a MERGE that evolves its schema, until the columns of the source are known. */
public class EvolvingTarget extends OneRowRelation {
  public final LakeTable table;
  public final CaseInsensitiveStringMap options;

  public EvolvingTarget(LakeTable table, CaseInsensitiveStringMap options) {
    this.table = table;
    this.options = options;
  }

  public boolean resolved() {
    return false;
  }

  /** Lets Spark report errors in the source rather than this unresolved node. */
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
