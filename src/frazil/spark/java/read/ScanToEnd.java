package frazil.read;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.FileScanRDD;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import scala.collection.immutable.Map;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A scan that reads every file to its end, whatever size its manifest gives.
 *
 * <p>Spark splits files by their sizes, and reads no row group that starts after the last split. A size that is too small
 * would lose rows, and looking up the sizes takes one request per file. So the last split of a file has no end. Executors
 * find the footer when they open the file. A wrong size then only costs time: splits are empty, or the last one is large.
 *
 * <p>Executors see none of this: splits are Spark's own, and a serialised scan becomes Spark's. The names with a dollar
 * sign are filled in before compilation, since new Spark versions add parameters to a scan (`java_classes.py`).
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

  /** Serialises as a scan that executors know. Java does not see a private method that Janino compiled. */
  public Object writeReplace() {
    FileSourceScanExec scan = this;
    return new FileSourceScanExec(scan.relation(), $PARTS);
  }
}
