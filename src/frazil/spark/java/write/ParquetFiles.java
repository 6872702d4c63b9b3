package frazil.write;

import java.lang.reflect.Field;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapreduce.Job;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Map;

/**
 * Spark's Parquet writer, whose tasks receive Hadoop's settings without the source of each. Hadoop compresses the sources of
 * a thousand settings, and each task decompresses them: some milliseconds before its first row.
 */
public class ParquetFiles extends ParquetFileFormat {
  public OutputWriterFactory prepareWrite(SparkSession session, Job job, Map options, StructType dataSchema) {
    OutputWriterFactory factory = super.prepareWrite(session, job, options, dataSchema);
    forgetSources(job.getConfiguration());
    return factory;
  }

  private static void forgetSources(Configuration settings) {
    try {
      Field sources = Configuration.class.getDeclaredField("updatingResource");
      sources.setAccessible(true);
      sources.set(settings, null);
    } catch (ReflectiveOperationException e) {
      // A Hadoop that stores them elsewhere writes the same files, more slowly.
      return;
    }
  }
}
