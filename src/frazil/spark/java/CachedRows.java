package frazil;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CacheManager;
import org.apache.spark.sql.execution.CachedData;
import org.apache.spark.storage.StorageLevel;

/** A table that Spark keeps in memory, while it is changed: what is kept of the old state goes, the new one is kept. */
public class CachedRows {
  private final SparkSession session;
  private final String name;
  private Dataset old;
  private StorageLevel level;

  /** The table that a command changes, by the parts of its name; nothing is looked up where nothing is kept. */
  public CachedRows(SparkSession session, List parts) {
    this.session = session;
    this.name = parts == null ? null : text(parts);
    if (name == null || !any(session)) return;
    try {
      old = (Dataset) session.table(name);
    } catch (Exception e) {
      // What cannot be read is not kept.
      return;
    }
    scala.Option kept = caches().lookupCachedData(old);
    if (kept.isDefined()) level = ((CachedData) kept.get()).cachedRepresentation().cacheBuilder().storageLevel();
  }

  /** After the change: queries over the old state are dropped too, and are computed when they are asked for. */
  public void renew() {
    if (old == null) return;
    caches().uncacheQuery(old, true);
    if (level == null) return;
    Dataset now;
    try {
      now = (Dataset) session.table(name);
    } catch (Exception e) {
      // It is gone, or has another name.
      return;
    }
    caches().cacheQuery(now, scala.Option.apply(name), level);
  }

  static boolean any(SparkSession session) {
    return !session.sharedState().cacheManager().isEmpty();
  }

  private CacheManager caches() {
    return session.sharedState().cacheManager();
  }

  /** The parts of the name that a question is about; null where it is about none. */
  static List parts(Map told) {
    if (!(told.get("name") instanceof List) || !told.containsKey("catalog")) return null;
    ArrayList parts = new ArrayList();
    parts.add(told.get("catalog"));
    parts.addAll((List) told.get("name"));
    return parts;
  }

  private static String text(List parts) {
    StringBuilder text = new StringBuilder();
    for (Object one : parts) text.append(text.length() == 0 ? "" : ".").append(quoted((String) one));
    return text.toString();
  }

  private static String quoted(String part) {
    return "`" + part.replace("`", "``") + "`";
  }
}
