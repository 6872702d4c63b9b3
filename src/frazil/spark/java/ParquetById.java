package frazil;

import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * Spark's Parquet reader for relations whose columns may not show their field ids: they are put on what is asked of files,
 * so that these are read by id. Where columns show them, Spark still loses those of columns that it asks a part of.
 */
public class ParquetById extends ParquetFileFormat {
  private final StructType known;
  private boolean hasPlainFacts = false;

  public ParquetById(StructType known) {
    this.known = known;
  }

  ParquetById withPlainFacts() {
    ParquetById made = new ParquetById(known);
    made.hasPlainFacts = true;
    return made;
  }

  public Map fileConstantMetadataExtractors() {
    Map all = super.fileConstantMetadataExtractors();
    return hasPlainFacts ? PlainFacts.extractors(all) : all;
  }

  /** Spark's own reader is what travels, so that it must be another object than this. */
  public scala.Function1 buildReaderWithPartitionValues(
      SparkSession session,
      StructType dataSchema,
      StructType partitionSchema,
      StructType requiredSchema,
      Seq filters,
      Map options,
      Configuration conf) {
    return new ParquetFileFormat()
        .buildReaderWithPartitionValues(
            session,
            known,
            partitionSchema,
            (StructType) told(requiredSchema, known),
            filters,
            options,
            conf);
  }

  /** What is asked for, which may be some parts of a column only, with what is known of each field by its name. */
  private static DataType told(DataType asked, DataType known) {
    if (asked instanceof StructType && known instanceof StructType) {
      StructField[] fields = ((StructType) asked).fields();
      StructField[] made = new StructField[fields.length];
      for (int i = 0; i < fields.length; i++) {
        made[i] = fields[i];
        StructField[] all = ((StructType) known).fields();
        for (int j = 0; j < all.length; j++)
          if (all[j].name().equals(fields[i].name()))
            made[i] = new StructField(fields[i].name(), told(fields[i].dataType(), all[j].dataType()),
                fields[i].nullable(), all[j].metadata());
      }
      return new StructType(made);
    }
    if (asked instanceof ArrayType && known instanceof ArrayType)
      return new ArrayType(told(((ArrayType) asked).elementType(), ((ArrayType) known).elementType()),
          ((ArrayType) asked).containsNull());
    if (asked instanceof MapType && known instanceof MapType)
      return new MapType(told(((MapType) asked).keyType(), ((MapType) known).keyType()),
          told(((MapType) asked).valueType(), ((MapType) known).valueType()), ((MapType) asked).valueContainsNull());
    return asked;
  }
}
