package frazil.write;

import java.util.List;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CacheManager;
import org.apache.spark.sql.execution.CachedData;
import org.apache.spark.storage.StorageLevel;

/** The cache entry of a table that a command changes: the old state is dropped from Spark's cache, the new one cached. */
public class CachedRows {
  private final SparkSession session;
  private final String name;
  private Dataset old;
  private StorageLevel level;

  /** Looks up a table by its full name, or nothing if the name is null or Spark's cache is empty. */
  public CachedRows(SparkSession session, List parts) {
    this.session = session;
    this.name = parts == null ? null : text(parts);
    if (name == null || !any(session)) return;
    try {
      old = (Dataset) session.table(name);
    } catch (Exception e) {
      // A table that cannot be read is not cached.
      return;
    }
    scala.Option entry = caches().lookupCachedData(old);
    if (entry.isDefined()) level = ((CachedData) entry.get()).cachedRepresentation().cacheBuilder().storageLevel();
  }

  /** Renew the entry after the change; cached queries over the old state are dropped too. */
  public void renew() {
    if (old == null) return;
    caches().uncacheQuery(old, true);
    if (level == null) return;
    Dataset now;
    try {
      now = (Dataset) session.table(name);
    } catch (Exception e) {
      // It was dropped or renamed.
      return;
    }
    caches().cacheQuery(now, scala.Option.apply(name), level);
  }

  public static boolean any(SparkSession session) {
    return !session.sharedState().cacheManager().isEmpty();
  }

  private CacheManager caches() {
    return session.sharedState().cacheManager();
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
