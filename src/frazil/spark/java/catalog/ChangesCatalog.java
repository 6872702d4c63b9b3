// Needs org.apache.spark.sql.connector.catalog.Changelog
package frazil.catalog;

import frazil.Request;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.ChangelogContext;
import org.apache.spark.sql.connector.catalog.ChangelogRange;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A lake in a Spark with row-level change feeds. */
public class ChangesCatalog extends LakeCatalog {
  public Changelog loadChangelog(Identifier table, ChangelogContext context, CaseInsensitiveStringMap options)
      throws NoSuchTableException {
    Request request =
        ofName("load", table)
            .with("options", new HashMap(options.asCaseSensitiveMap()))
            .with("changes", changes(context));
    return new LakeChangelog(load(table, request));
  }

  private static Map changes(ChangelogContext context) {
    LinkedHashMap window = new LinkedHashMap();
    ChangelogRange range = context.range();
    if (range instanceof ChangelogRange.VersionRange) {
      ChangelogRange.VersionRange versions = (ChangelogRange.VersionRange) range;
      window.put("start-version", versions.startingVersion());
      window.put("end-version", versions.endingVersion().orElse(null));
    } else if (range instanceof ChangelogRange.TimestampRange) {
      ChangelogRange.TimestampRange times = (ChangelogRange.TimestampRange) range;
      window.put("start-us", new Long(times.startingTimestamp()));
      window.put("end-us", times.endingTimestamp().orElse(null));
    }
    if (!(range instanceof ChangelogRange.UnboundedRange)) {
      window.put("has-start", Boolean.valueOf(range.startingBoundInclusive()));
      window.put("has-end", Boolean.valueOf(range.endingBoundInclusive()));
    }
    window.put("deduplication", context.deduplicationMode().value());
    window.put("updates", Boolean.valueOf(context.computeUpdates()));
    return window;
  }
}
