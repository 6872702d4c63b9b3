package frazil;

import java.util.Iterator;
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

  /** The table that a command changes; nothing is looked up where nothing is kept. */
  public CachedRows(SparkSession session, Map told) {
    this.session = session;
    this.name = name(told);
    if (name == null || caches().isEmpty()) return;
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
    if (level != null) caches().cacheQuery((Dataset) session.table(name), scala.Option.apply(name), level);
  }

  private CacheManager caches() {
    return session.sharedState().cacheManager();
  }

  private static String name(Map told) {
    if (!(told.get("name") instanceof List) || !told.containsKey("catalog")) return null;
    StringBuilder text = new StringBuilder(quoted((String) told.get("catalog")));
    Iterator parts = ((List) told.get("name")).iterator();
    while (parts.hasNext()) text.append('.').append(quoted((String) parts.next()));
    return text.toString();
  }

  private static String quoted(String part) {
    return "`" + part.replace("`", "``") + "`";
  }
}
