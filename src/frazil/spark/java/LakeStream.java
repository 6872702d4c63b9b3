package frazil;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
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

/** The source of one running query: Spark asks how far it may read and for the rows of a batch, Python answers. */
public class LakeStream implements Source, SupportsTriggerAvailableNow, ReportsSourceMetrics {
  private final Map told;
  private final Map limits;
  private final StructType schema;
  private final boolean guards;
  private Map advanced = null;

  public LakeStream(Map told, Map found) {
    this.told = told;
    this.limits = (Map) found.get("limits");
    this.guards = Boolean.TRUE.equals(found.get("guards"));
    this.schema = (StructType) StructType.fromJson((String) told.get("columns"));
  }

  public StructType schema() {
    return schema;
  }

  private Map question() {
    LinkedHashMap asked = new LinkedHashMap();
    asked.put("catalog", told.get("catalog"));
    asked.put("lake", told.get("lake"));
    asked.put("name", told.get("name"));
    asked.put("key", told.get("key"));
    return asked;
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
    ArrayList found = new ArrayList();
    if (limits.get("files") != null) found.add(ReadLimit.maxFiles(((Number) limits.get("files")).intValue()));
    if (limits.get("rows") != null) found.add(ReadLimit.maxRows(((Number) limits.get("rows")).longValue()));
    if (limits.get("bytes") != null) found.add(ReadLimit.maxBytes(((Number) limits.get("bytes")).longValue()));
    if (found.isEmpty()) return ReadLimit.allAvailable();
    if (found.size() == 1) return (ReadLimit) found.get(0);
    return ReadLimit.compositeLimit((ReadLimit[]) found.toArray(new ReadLimit[0]));
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
    Map asked = question();
    HashMap most = new HashMap();
    limits(limit, most);
    asked.put("limits", most);
    asked.put("start", text(start));
    advanced = (Map) Door.read("stream-advance", asked);
    return place(advanced.get("offset"));
  }

  public org.apache.spark.sql.connector.read.streaming.Offset reportLatestOffset() {
    return place(advanced == null ? Door.read("stream-latest", question()) : advanced.get("latest"));
  }

  public void prepareForTriggerAvailableNow() {
    Door.ask("stream-end", question());
  }

  public Map metrics(Optional latest) {
    String read = text(latest.orElse(null));
    if (advanced != null && java.util.Objects.equals(read, advanced.get("offset"))) return (Map) advanced.get("lag");
    Map asked = question();
    asked.put("start", read);
    return (Map) Door.read("stream-lag", asked);
  }

  public Dataset getBatch(scala.Option start, org.apache.spark.sql.execution.streaming.Offset end) {
    Map asked = question();
    asked.put("start", start.isDefined() ? text(start.get()) : null);
    asked.put("end", text(end));
    Object answer = Door.ask("stream-batch", asked);
    return StreamedRows.of((org.apache.spark.sql.classic.Dataset) answer);
  }

  public void commit(org.apache.spark.sql.execution.streaming.Offset end) {
    if (!guards) return;
    Map asked = question();
    asked.put("end", text(end));
    Door.ask("stream-commit", asked);
  }

  public void stop() {
    Door.ask("stream-stop", question());
  }

  public String toString() {
    return "frazil[" + told.get("shown") + "]";
  }
}
