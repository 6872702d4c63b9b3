package frazil;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.FileScanRDD;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import scala.collection.immutable.Map;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A scan that reads every file to its end, whatever its manifest says of its size.
 *
 * <p>Spark cuts files by the sizes it is told, and reads no row group that starts behind the last part. A size that is too
 * small would hide rows, and to ask for each file's is a request for each. So the last part of a file has no end.
 * Executors open a file before they read it, and find its footer where it is. A size that is wrong then costs time alone:
 * parts that hold nothing, or a last one that holds much.
 *
 * <p>Executors see none of this: parts are Spark's own, and a scan that travels becomes one of Spark's. What is written
 * between dollar signs here is filled in before this is compiled: every Spark adds parts to a scan (`java_classes.py`).
 */
public class ScanToEnd extends FileSourceScanExec {
  private static final long END = 1L << 62;
  private transient RDD whole;

  public ScanToEnd($PARAMETERS) {
    super($NAMES);
  }

  public synchronized RDD inputRDD() {
    if (whole == null) {
      FileScanRDD found = (FileScanRDD) super.inputRDD();
      boolean tells = PlainFacts.areAsked(fileConstantMetadataColumns());
      for (Object one : CollectionConverters.asJava(found.filePartitions())) {
        PartitionedFile[] files = ((FilePartition) one).files();
        for (int i = 0; i < files.length; i++) files[i] = toEnd(files[i], tells);
      }
      whole = found;
    }
    return whole;
  }

  private static PartitionedFile toEnd(PartitionedFile file, boolean tells) {
    boolean isLast = file.start() + file.length() >= file.fileSize();
    if (!isLast && !tells) return file;
    return new PartitionedFile(
        file.partitionValues(),
        file.filePath(),
        file.start(),
        isLast ? END - file.start() : file.length(),
        file.locations(),
        file.modificationTime(),
        file.fileSize(),
        tells ? PlainFacts.of(file) : file.otherConstantMetadataColumnValues());
  }

  /** What travels with a task is a scan that executors know. Janino hides a private method from Java. */
  public Object writeReplace() {
    FileSourceScanExec scan = this;
    return new FileSourceScanExec(scan.relation(), $PARTS);
  }
}
