package frazil;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsCatalogOptions;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** What `format("iceberg")` means: the table of a lake that a name or a path leads to. Catalogs do the rest. */
public class LakeSource implements SupportsCatalogOptions {
  public String extractCatalog(CaseInsensitiveStringMap options) {
    return (String) found(options).get("catalog");
  }

  public Identifier extractIdentifier(CaseInsensitiveStringMap options) {
    Map found = found(options);
    String[] namespace = (String[]) ((List) found.get("namespace")).toArray(new String[0]);
    return Identifier.of(namespace, (String) found.get("name"));
  }

  private static Map found(CaseInsensitiveStringMap options) {
    Map told = LakeNames.told();
    told.put("options", new LinkedHashMap(options.asCaseSensitiveMap()));
    return (Map) Door.read("source", told);
  }

  public Optional extractTimeTravelVersion(CaseInsensitiveStringMap options) {
    return Optional.ofNullable(options.get("versionAsOf"));
  }

  public Optional extractTimeTravelTimestamp(CaseInsensitiveStringMap options) {
    return Optional.ofNullable(options.get("timestampAsOf"));
  }

  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return null;
  }

  public Table getTable(StructType schema, Transform[] partitions, Map properties) {
    throw new UnsupportedOperationException("Cannot use a table of a lake as a stream: read it as a table, write to it with foreachBatch");
  }
}
