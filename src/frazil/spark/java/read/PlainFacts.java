package frazil.read;

import frazil.Door;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.execution.datasources.FileFormat$;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import scala.Function1;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * The `_metadata` columns of a split as planned rather than as read: the path without the suffix for errors, and the length
 * although the file is read to its end. Spark takes them from the split unless its reader overrides them, so executors
 * need none of frazil's classes.
 */
public class PlainFacts {
  private static final String[] NAMES = {"file_path", "file_block_length"};

  /** Returns a reader that takes these columns from the splits. */
  static FileFormat reader(FileFormat found) {
    if (found instanceof ParquetById) return ((ParquetById) found).withPlainFacts();
    if (found instanceof OrcByPart) return ((OrcByPart) found).withPlainFacts();
    return found;
  }

  /** Returns Spark's extractors of metadata columns, without those of these columns. */
  static Map extractors(Map all) {
    for (int i = 0; i < NAMES.length; i++) all = (Map) all.removed(NAMES[i]);
    return all;
  }

  static boolean areAsked(Seq columns) {
    for (Object one : Door.list(columns))
      for (int i = 0; i < NAMES.length; i++) if (((AttributeReference) one).name().equals(NAMES[i])) return true;
    return false;
  }

  /** Returns the metadata columns of a split as Spark has them for a file without the suffix. */
  public static Map of(PartitionedFile file) {
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
