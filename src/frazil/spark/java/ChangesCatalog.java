// Needs org.apache.spark.sql.connector.catalog.Changelog
package frazil;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.ChangelogContext;
import org.apache.spark.sql.connector.catalog.ChangelogRange;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A lake in a Spark that knows changes of rows. */
public class ChangesCatalog extends LakeCatalog {
  public Changelog loadChangelog(Identifier table, ChangelogContext context, CaseInsensitiveStringMap options)
      throws NoSuchTableException {
    HashMap asked = new HashMap();
    asked.put("options", new HashMap(options.asCaseSensitiveMap()));
    asked.put("changes", told(context));
    LakeTable found = find(table, asked);
    if (found == null) throw new NoSuchTableException(table);
    return new LakeChangelog(found);
  }

  private static Map told(ChangelogContext context) {
    LinkedHashMap told = new LinkedHashMap();
    ChangelogRange range = context.range();
    if (range instanceof ChangelogRange.VersionRange) {
      ChangelogRange.VersionRange versions = (ChangelogRange.VersionRange) range;
      told.put("start-version", versions.startingVersion());
      told.put("end-version", versions.endingVersion().orElse(null));
    } else if (range instanceof ChangelogRange.TimestampRange) {
      ChangelogRange.TimestampRange times = (ChangelogRange.TimestampRange) range;
      told.put("start-us", new Long(times.startingTimestamp()));
      told.put("end-us", times.endingTimestamp().orElse(null));
    }
    if (!(range instanceof ChangelogRange.UnboundedRange)) {
      told.put("has-start", Boolean.valueOf(range.startingBoundInclusive()));
      told.put("has-end", Boolean.valueOf(range.endingBoundInclusive()));
    }
    told.put("deduplication", context.deduplicationMode().value());
    told.put("updates", Boolean.valueOf(context.computeUpdates()));
    return told;
  }
}
