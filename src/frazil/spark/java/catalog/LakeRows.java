package frazil.catalog;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.types.StructType;

/** The rows that a procedure returns. */
public class LakeRows implements LocalScan {
  private final StructType columns;
  private final InternalRow[] rows;

  LakeRows(StructType columns, InternalRow[] rows) {
    this.columns = columns;
    this.rows = rows;
  }

  public StructType readSchema() {
    return columns;
  }

  public InternalRow[] rows() {
    return rows;
  }
}
