package frazil.read;

import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/** Spark's ORC reader, with some metadata columns taken from splits (`PlainFacts`). */
public class OrcByPart extends OrcFileFormat {
  private boolean hasPlainFacts = false;

  OrcByPart withPlainFacts() {
    OrcByPart made = new OrcByPart();
    made.hasPlainFacts = true;
    return made;
  }

  public Map fileConstantMetadataExtractors() {
    Map all = super.fileConstantMetadataExtractors();
    return hasPlainFacts ? PlainFacts.extractors(all) : all;
  }

  /** Executors receive Spark's own reader, which must be another object than this. */
  public scala.Function1 buildReaderWithPartitionValues(
      SparkSession session,
      StructType dataSchema,
      StructType partitionSchema,
      StructType requiredSchema,
      Seq filters,
      Map options,
      Configuration conf) {
    return new OrcFileFormat()
        .buildReaderWithPartitionValues(
            session, dataSchema, partitionSchema, requiredSchema, filters, options, conf);
  }
}
