package frazil.stream;

import frazil.Door;
import frazil.Request;
import frazil.Spark;
import frazil.catalog.LakeTable;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
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

/** Makes the sources of streams, one for each query that is started. */
public class LakeStreams implements StreamSourceProvider {
  /** The option that holds a named stream as JSON. */
  private static final String OPTION = "frazil-stream";

  /** Returns the plan of a table as a stream, from which queries are started. */
  public static LogicalPlan relation(LakeTable table, boolean checked) {
    LinkedHashMap named = new LinkedHashMap();
    named.put("catalog", table.catalog().name());
    named.put("lake", table.catalog().lake());
    named.put("name", table.stream().get("name"));
    named.put("label", table.name());
    named.put("columns", table.schema().json());
    named.put("stream", checked ? table.stream() : check(table));
    return Spark.stream(SparkSession.active(), LakeStreams.class.getName(), OPTION, Door.text(named));
  }

  private static Object check(LakeTable table) {
    return table.catalog().ofLake("stream-check").with("stream", table.stream()).read();
  }

  static Request ofNamed(String verb, Map named) {
    return new Request(verb).with("catalog", named.get("catalog")).with("lake", named.get("lake"));
  }

  public scala.Tuple2 sourceSchema(
      SQLContext context, scala.Option schema, String provider, scala.collection.immutable.Map options) {
    Map named = named(options);
    return new scala.Tuple2(named.get("label"), StructType.fromJson((String) named.get("columns")));
  }

  public Source createSource(
      SQLContext context, String place, scala.Option schema, String provider, scala.collection.immutable.Map options) {
    Map named = named(options);
    Configuration settings = SparkSession.active().sessionState().newHadoopConf();
    Path begun = new Path(place, "offsets/0");
    Path about = new Path(place, "table");
    String offset = read(begun, settings);
    String table = read(about, settings);
    Request request =
        ofNamed("stream-open", named)
            .with("stream", named.get("stream"))
            .with("checkpoint", place)
            .with("begun", offset)
            .with("table", table);
    Map opened = (Map) request.read();
    if (table == null) write(about, (String) opened.get("table"), settings);
    if (offset == null) write(begun, (String) opened.get("begun"), settings);
    return new LakeStream(named, opened);
  }

  private static Map named(scala.collection.immutable.Map options) {
    return (Map) Door.parse((String) options.apply(OPTION));
  }

  private static String read(Path path, Configuration settings) {
    try {
      FileSystem files = path.getFileSystem(settings);
      if (!files.exists(path)) return null;
      FSDataInputStream in = files.open(path);
      try {
        byte[] bytes = new byte[(int) files.getFileStatus(path).getLen()];
        in.readFully(0, bytes);
        return new String(bytes, StandardCharsets.UTF_8);
      } finally {
        in.close();
      }
    } catch (java.io.IOException e) {
      throw new java.io.UncheckedIOException("Cannot read " + path + " of a stream's checkpoint", e);
    }
  }

  /** Write a file atomically. */
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
