package frazil;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.sources.StreamSourceProvider;
import org.apache.spark.sql.types.StructType;

/** Makes sources of streams: one for each query that is started. */
public class LakeStreams implements StreamSourceProvider {
  private static final String TOLD = "frazil-stream";

  /** The plan of a table as a stream, for queries to be started from. */
  static LogicalPlan relation(LakeTable table, boolean checked) {
    Map told = table.told();
    told.put("stream", table.stream());
    if (!checked) told.put("stream", Door.read("stream-check", told));
    told.put("columns", table.schema().json());
    return Spark.stream(SparkSession.active(), LakeStreams.class.getName(), TOLD, Door.text(told));
  }

  public scala.Tuple2 sourceSchema(
      SQLContext context, scala.Option schema, String provider, scala.collection.immutable.Map given) {
    Map told = told(given);
    return new scala.Tuple2(told.get("shown"), StructType.fromJson((String) told.get("columns")));
  }

  public Source createSource(
      SQLContext context, String place, scala.Option schema, String provider, scala.collection.immutable.Map given) {
    Map told = told(given);
    Configuration settings = SparkSession.active().sessionState().newHadoopConf();
    Path begun = new Path(place, "offsets/0");
    Path about = new Path(place, "table");
    String offset = read(begun, settings);
    String table = read(about, settings);
    told.put("place", place);
    told.put("begun", offset);
    told.put("table", table);
    Map found = (Map) Door.read("stream-open", told);
    if (table == null) write(about, (String) found.get("table"), settings);
    if (offset == null) write(begun, (String) found.get("begun"), settings);
    told.put("key", found.get("key"));
    return new LakeStream(told, found);
  }

  private static Map told(scala.collection.immutable.Map given) {
    return (Map) Door.parse((String) given.apply(TOLD));
  }

  private static String read(Path path, Configuration settings) {
    try {
      FileSystem files = path.getFileSystem(settings);
      if (!files.exists(path)) return null;
      FSDataInputStream in = files.open(path);
      try {
        byte[] found = new byte[(int) files.getFileStatus(path).getLen()];
        in.readFully(0, found);
        return new String(found, StandardCharsets.UTF_8);
      } finally {
        in.close();
      }
    } catch (java.io.IOException e) {
      throw new java.io.UncheckedIOException("Cannot read " + path + " of a stream's checkpoint", e);
    }
  }

  /** Write a file that is there whole or not at all. */
  private static void write(Path path, String text, Configuration settings) {
    try {
      FileSystem files = path.getFileSystem(settings);
      Path unfinished = new Path(path.getParent(), "." + path.getName() + "." + UUID.randomUUID());
      FSDataOutputStream out = files.create(unfinished, true);
      try {
        out.write(text.getBytes(StandardCharsets.UTF_8));
      } finally {
        out.close();
      }
      if (!files.rename(unfinished, path)) {
        files.delete(unfinished, false);
        throw new java.io.IOException("another query has written it");
      }
    } catch (java.io.IOException e) {
      throw new java.io.UncheckedIOException("Cannot write " + path + " of a stream's checkpoint", e);
    }
  }
}
