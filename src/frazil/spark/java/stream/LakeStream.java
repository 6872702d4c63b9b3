package frazil.stream;

import frazil.Request;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.connector.read.streaming.CompositeReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReadMaxBytes;
import org.apache.spark.sql.connector.read.streaming.ReadMaxFiles;
import org.apache.spark.sql.connector.read.streaming.ReadMaxRows;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.types.StructType;

/** The source of one running query; Python decides how far a batch reads and returns its rows. */
public class LakeStream implements Source, SupportsTriggerAvailableNow, ReportsSourceMetrics {
  private final Map named;
  private final Object key;
  private final Map limits;
  private final StructType schema;
  private final boolean guards;
  private Map advanced = null;

  /** `named` is what LakeStreams keeps of the stream, `opened` the answer to stream-open. */
  public LakeStream(Map named, Map opened) {
    this.named = named;
    this.key = opened.get("key");
    this.limits = (Map) opened.get("limits");
    this.guards = Boolean.TRUE.equals(opened.get("guards"));
    this.schema = (StructType) StructType.fromJson((String) named.get("columns"));
  }

  public StructType schema() {
    return schema;
  }

  private Request ofStream(String verb) {
    return LakeStreams.ofNamed(verb, named).with("name", named.get("name")).with("key", key);
  }

  private static String text(Object offset) {
    return offset == null ? null : ((org.apache.spark.sql.connector.read.streaming.Offset) offset).json();
  }

  private static StreamPlace place(Object json) {
    return json == null ? null : new StreamPlace((String) json);
  }

  public scala.Option getOffset() {
    return scala.Option.apply(latestOffset(null, ReadLimit.allAvailable()));
  }

  public ReadLimit getDefaultReadLimit() {
    ArrayList rows = new ArrayList();
    if (limits.get("files") != null) rows.add(ReadLimit.maxFiles(((Number) limits.get("files")).intValue()));
    if (limits.get("rows") != null) rows.add(ReadLimit.maxRows(((Number) limits.get("rows")).longValue()));
    if (limits.get("bytes") != null) rows.add(ReadLimit.maxBytes(((Number) limits.get("bytes")).longValue()));
    if (rows.isEmpty()) return ReadLimit.allAvailable();
    if (rows.size() == 1) return (ReadLimit) rows.get(0);
    return ReadLimit.compositeLimit((ReadLimit[]) rows.toArray(new ReadLimit[0]));
  }

  private static void limits(ReadLimit limit, Map into) {
    if (limit instanceof ReadMaxFiles) into.put("files", new Long(((ReadMaxFiles) limit).maxFiles()));
    else if (limit instanceof ReadMaxRows) into.put("rows", new Long(((ReadMaxRows) limit).maxRows()));
    else if (limit instanceof ReadMaxBytes) into.put("bytes", new Long(((ReadMaxBytes) limit).maxBytes()));
    else if (limit instanceof CompositeReadLimit) {
      ReadLimit[] parts = ((CompositeReadLimit) limit).getReadLimits();
      for (int i = 0; i < parts.length; i++) limits(parts[i], into);
    }
  }

  public org.apache.spark.sql.connector.read.streaming.Offset latestOffset(
      org.apache.spark.sql.connector.read.streaming.Offset start, ReadLimit limit) {
    HashMap most = new HashMap();
    limits(limit, most);
    advanced = (Map) ofStream("stream-advance").with("limits", most).with("start", text(start)).read();
    return place(advanced.get("offset"));
  }

  public org.apache.spark.sql.connector.read.streaming.Offset reportLatestOffset() {
    return place(advanced == null ? ofStream("stream-latest").read() : advanced.get("latest"));
  }

  public void prepareForTriggerAvailableNow() {
    ofStream("stream-end").ask();
  }

  public Map metrics(Optional latest) {
    String read = text(latest.orElse(null));
    if (advanced != null && java.util.Objects.equals(read, advanced.get("offset"))) return (Map) advanced.get("lag");
    return (Map) ofStream("stream-lag").with("start", read).read();
  }

  public Dataset getBatch(scala.Option start, org.apache.spark.sql.execution.streaming.Offset end) {
    String from = start.isDefined() ? text(start.get()) : null;
    Object rows = ofStream("stream-batch").with("start", from).with("end", text(end)).ask();
    return StreamedRows.of((org.apache.spark.sql.classic.Dataset) rows);
  }

  public void commit(org.apache.spark.sql.execution.streaming.Offset end) {
    if (guards) ofStream("stream-commit").with("end", text(end)).ask();
  }

  public void stop() {
    ofStream("stream-stop").ask();
  }

  public String toString() {
    return "frazil[" + named.get("label") + "]";
  }
}
