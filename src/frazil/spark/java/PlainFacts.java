package frazil;

import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileFormat$;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import scala.Function1;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * What `_metadata` says of a part of a file as it is planned, and not as it is read: its path without the mark that is for
 * errors, and its length though it is read to its end. Spark takes them from the part itself where its reader does not
 * know better, so that executors need no class of ours.
 */
public class PlainFacts {
  private static final String[] NAMES = {"file_path", "file_block_length"};

  /** A reader that leaves these facts to the parts. */
  static FileFormat reader(FileFormat found) {
    if (found instanceof ParquetById) return ((ParquetById) found).withPlainFacts();
    if (found instanceof OrcByPart) return ((OrcByPart) found).withPlainFacts();
    return found;
  }

  /** Spark's ways to know facts, without these. */
  static Map extractors(Map all) {
    for (int i = 0; i < NAMES.length; i++) all = (Map) all.removed(NAMES[i]);
    return all;
  }

  static boolean areAsked(Seq columns) {
    for (Object one : Door.list(columns))
      for (int i = 0; i < NAMES.length; i++) if (((AttributeReference) one).name().equals(NAMES[i])) return true;
    return false;
  }

  /** The facts of a part, as Spark would have them of a file without a mark. */
  static Map of(PartitionedFile file) {
    String path = file.filePath().urlEncoded();
    int mark = path.indexOf('#');
    PartitionedFile plain =
        new PartitionedFile(
            file.partitionValues(),
            mark < 0 ? file.filePath() : SparkPath.fromUrlString(path.substring(0, mark)),
            file.start(),
            file.length(),
            file.locations(),
            file.modificationTime(),
            file.fileSize(),
            file.otherConstantMetadataColumnValues());
    Map known = file.otherConstantMetadataColumnValues();
    Map ways = FileFormat$.MODULE$.BASE_METADATA_EXTRACTORS();
    for (int i = 0; i < NAMES.length; i++)
      known = (Map) known.updated(NAMES[i], ((Function1) ways.apply(NAMES[i])).apply(plain));
    return known;
  }
}
