package frazil.read;

import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;

/** Replaces Spark's scan by one of whole files. */
public class ReplaceScan extends scala.runtime.AbstractPartialFunction {
  public boolean isDefinedAt(Object node) {
    return node instanceof FileSourceScanExec && !(node instanceof ScanToEnd);
  }

  public Object applyOrElse(Object node, scala.Function1 other) {
    if (!isDefinedAt(node)) return other.apply(node);
    FileSourceScanExec scan = (FileSourceScanExec) node;
    HadoopFsRelation files = scan.relation();
    HadoopFsRelation whole =
        new HadoopFsRelation(
            ((PlannedFiles) files.location()).readToEnd(),
            files.partitionSchema(),
            files.dataSchema(),
            files.bucketSpec(),
            PlainFacts.reader(files.fileFormat()),
            files.options(),
            files.sparkSession());
    return new ScanToEnd(whole, $PARTS);
  }
}
