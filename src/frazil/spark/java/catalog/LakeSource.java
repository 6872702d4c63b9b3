package frazil.catalog;

import frazil.Door;
import frazil.Request;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsCatalogOptions;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The source `format("iceberg")`: finds the table of a lake by a name or a path, and leaves the rest to its catalog. */
public class LakeSource implements SupportsCatalogOptions {
  public String extractCatalog(CaseInsensitiveStringMap options) {
    return (String) found(options).get("catalog");
  }

  public Identifier extractIdentifier(CaseInsensitiveStringMap options) {
    Map name = found(options);
    String[] namespace = (String[]) ((List) name.get("namespace")).toArray(new String[0]);
    return Identifier.of(namespace, (String) name.get("name"));
  }

  private static Map found(CaseInsensitiveStringMap options) {
    return (Map) Request.inPlace("source").with("options", new HashMap(options.asCaseSensitiveMap())).read();
  }

  public Optional extractTimeTravelVersion(CaseInsensitiveStringMap options) {
    return Optional.ofNullable(options.get("versionAsOf"));
  }

  public Optional extractTimeTravelTimestamp(CaseInsensitiveStringMap options) {
    return Optional.ofNullable(options.get("timestampAsOf"));
  }

  /** Called for streams, before the table itself; also for sinks, so options are checked later. */
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return find(options).schema();
  }

  public Table getTable(StructType schema, Transform[] partitions, Map properties) {
    return find(new CaseInsensitiveStringMap(properties));
  }

  private LakeTable find(CaseInsensitiveStringMap options) {
    CatalogManager catalogs = SparkSession.active().sessionState().catalogManager();
    Identifier name = extractIdentifier(options);
    LakeCatalog catalog = (LakeCatalog) catalogs.catalog(extractCatalog(options));
    LakeTable table = catalog.find(name, new HashMap(options.asCaseSensitiveMap()), "stream-by-format");
    if (table == null)
      Door.fail("Cannot find " + options.get("path") + ": there is no such table", "analysis", "TABLE_OR_VIEW_NOT_FOUND", "42P01");
    return table;
  }
}
