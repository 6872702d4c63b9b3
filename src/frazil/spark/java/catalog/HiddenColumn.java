package frazil.catalog;

import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;

/** A metadata column of a lake's table. */
public class HiddenColumn implements MetadataColumn {
  private final StructField field;

  public HiddenColumn(StructField field) {
    this.field = field;
  }

  public String name() {
    return field.name();
  }

  public DataType dataType() {
    return field.dataType();
  }

  public boolean isNullable() {
    return true;
  }
}
