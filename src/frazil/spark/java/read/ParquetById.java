package frazil.read;

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
 * Spark's Parquet reader, which adds field ids to the requested schema so that columns are read by id. Relations may have to
 * hide the ids from users, and Spark drops those of columns of which it reads only some fields.
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

  /** Executors receive Spark's own reader, which must be another object than this. */
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
            (StructType) withIds(requiredSchema, known),
            filters,
            options,
            conf);
  }

  /** Adds the metadata of known fields, matched by name, to a requested type, which may have only some of the fields. */
  private static DataType withIds(DataType asked, DataType known) {
    if (asked instanceof StructType && known instanceof StructType) {
      StructField[] fields = ((StructType) asked).fields();
      StructField[] made = new StructField[fields.length];
      for (int i = 0; i < fields.length; i++) {
        made[i] = fields[i];
        StructField[] all = ((StructType) known).fields();
        for (int j = 0; j < all.length; j++)
          if (all[j].name().equals(fields[i].name()))
            made[i] = new StructField(fields[i].name(), withIds(fields[i].dataType(), all[j].dataType()),
                fields[i].nullable(), all[j].metadata());
      }
      return new StructType(made);
    }
    if (asked instanceof ArrayType && known instanceof ArrayType)
      return new ArrayType(withIds(((ArrayType) asked).elementType(), ((ArrayType) known).elementType()),
          ((ArrayType) asked).containsNull());
    if (asked instanceof MapType && known instanceof MapType)
      return new MapType(withIds(((MapType) asked).keyType(), ((MapType) known).keyType()),
          withIds(((MapType) asked).valueType(), ((MapType) known).valueType()), ((MapType) asked).valueContainsNull());
    return asked;
  }
}
