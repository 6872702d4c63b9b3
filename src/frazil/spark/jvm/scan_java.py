"""Java for scans that read every file to its end, whatever its manifest says of its size.

Spark cuts files by the sizes it is told, and reads no row group that starts behind the last part. A size that is too
small would hide rows, and to ask for each file's is a request for each. So the last part of a file has no end:
`ScanToEnd` is Spark's own scan of files, in which the parts are what Spark made of the sizes that manifests record, but
for that. Executors open a file before they read it, and find its footer where it is. A size that is wrong then costs
time alone: parts that hold nothing, or a last one that holds much.

`ReadToEnd` is the strategy that plans such scans, for relations over `PlannedFiles` and no others. It stands in every
session that has read a lake.

Executors see none of this: parts are Spark's own, and a scan that travels becomes one of Spark's.
"""

from __future__ import annotations

from collections.abc import Sequence

STRATEGY_NAME = "ReadToEnd"
SCAN_NAME = "ScanToEnd"
SCAN = "org.apache.spark.sql.execution.FileSourceScanExec"
_BOXES = {"boolean": "Boolean", "int": "Integer", "long": "Long"}

_SOURCE = r"""
public class ReadToEnd extends org.apache.spark.sql.execution.SparkStrategy {
  public Seq apply(org.apache.spark.sql.catalyst.plans.logical.LogicalPlan plan) {
    if (!isOwn(plan)) return CollectionConverters.asScala(new ArrayList()).toList();
    ArrayList found = new ArrayList();
    Seq planned = org.apache.spark.sql.execution.datasources.FileSourceStrategy$.MODULE$.apply(plan);
    for (Object one : CollectionConverters.asJava(planned))
      found.add(((org.apache.spark.sql.catalyst.trees.TreeNode) one).transformDown(new ReplaceScan()));
    return CollectionConverters.asScala(found).toList();
  }

  private static boolean isOwn(org.apache.spark.sql.catalyst.plans.logical.LogicalPlan plan) {
    Object node = plan;
    while (node instanceof org.apache.spark.sql.catalyst.plans.logical.Project
        || node instanceof org.apache.spark.sql.catalyst.plans.logical.Filter)
      node = ((org.apache.spark.sql.catalyst.plans.logical.UnaryNode) node).child();
    if (!(node instanceof org.apache.spark.sql.execution.datasources.LogicalRelation)) return false;
    Object relation = ((org.apache.spark.sql.execution.datasources.LogicalRelation) node).relation();
    return relation instanceof org.apache.spark.sql.execution.datasources.HadoopFsRelation
        && ((org.apache.spark.sql.execution.datasources.HadoopFsRelation) relation).location() instanceof PlannedFiles;
  }
}

class ReplaceScan extends scala.runtime.AbstractPartialFunction {
  public boolean isDefinedAt(Object node) {
    return node instanceof org.apache.spark.sql.execution.FileSourceScanExec && !(node instanceof ScanToEnd);
  }

  public Object applyOrElse(Object node, scala.Function1 other) {
    if (!isDefinedAt(node)) return other.apply(node);
    org.apache.spark.sql.execution.FileSourceScanExec scan =
        (org.apache.spark.sql.execution.FileSourceScanExec) node;
    org.apache.spark.sql.execution.datasources.HadoopFsRelation files = scan.relation();
    org.apache.spark.sql.execution.datasources.HadoopFsRelation whole =
        new org.apache.spark.sql.execution.datasources.HadoopFsRelation(
            ((PlannedFiles) files.location()).readToEnd(), files.partitionSchema(), files.dataSchema(),
            files.bucketSpec(), files.fileFormat(), files.options(), files.sparkSession());
    return new ScanToEnd(whole, $PARTS);
  }
}

public class ScanToEnd extends org.apache.spark.sql.execution.FileSourceScanExec {
  private static final long END = 1L << 62;
  private transient org.apache.spark.rdd.RDD whole;

  public ScanToEnd($PARAMETERS) {
    super($NAMES);
  }

  public synchronized org.apache.spark.rdd.RDD inputRDD() {
    if (whole == null) {
      org.apache.spark.sql.execution.datasources.FileScanRDD found =
          (org.apache.spark.sql.execution.datasources.FileScanRDD) super.inputRDD();
      for (Object one : CollectionConverters.asJava(found.filePartitions())) {
        org.apache.spark.sql.execution.datasources.PartitionedFile[] files =
            ((org.apache.spark.sql.execution.datasources.FilePartition) one).files();
        for (int i = 0; i < files.length; i++) files[i] = toEnd(files[i]);
      }
      whole = found;
    }
    return whole;
  }

  private static org.apache.spark.sql.execution.datasources.PartitionedFile toEnd(
      org.apache.spark.sql.execution.datasources.PartitionedFile file) {
    if (file.start() + file.length() < file.fileSize()) return file;
    return new org.apache.spark.sql.execution.datasources.PartitionedFile(
        file.partitionValues(), file.filePath(), file.start(), END - file.start(), file.locations(),
        file.modificationTime(), file.fileSize(), file.otherConstantMetadataColumnValues());
  }

  /** What travels with a task is a scan that executors know. Janino hides a private method from Java. */
  public Object writeReplace() {
    org.apache.spark.sql.execution.FileSourceScanExec scan = this;
    return new org.apache.spark.sql.execution.FileSourceScanExec(scan.relation(), $PARTS);
  }
}
"""


def scan_source(types: Sequence[str]) -> str:
    """Return the source for a Spark whose scan is made of parts of these types; the first one is the relation."""
    names = [f"part{at}" for at in range(len(types))]
    parts = [_part(at, kind) for at, kind in enumerate(types) if at]
    return (
        _SOURCE.replace("$PARAMETERS", ", ".join(f"{kind} {name}" for kind, name in zip(types, names, strict=True)))
        .replace("$NAMES", ", ".join(names))
        .replace("$PARTS", ", ".join(parts))
    )


def _part(at: int, kind: str) -> str:
    box = _BOXES.get(kind)
    value = f"(({box or kind}) scan.productElement({at}))"
    return value if box is None else f"{value}.{kind}Value()"
