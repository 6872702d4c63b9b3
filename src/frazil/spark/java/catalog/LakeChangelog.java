// Needs org.apache.spark.sql.connector.catalog.Changelog
package frazil.catalog;

import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The changelog that `CHANGES FROM` reads. Its rows are final: Spark need not process them. */
public class LakeChangelog extends LakeChanges implements Changelog {
  public LakeChangelog(LakeTable table) {
    super(table);
  }

  public String name() {
    return table().name();
  }

  public Column[] columns() {
    return table().columns();
  }

  public boolean containsCarryoverRows() {
    return false;
  }

  public boolean containsIntermediateChanges() {
    return false;
  }

  public boolean representsUpdateAsDeleteAndInsert() {
    return false;
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return table().newScanBuilder(options);
  }
}
