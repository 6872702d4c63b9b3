package frazil.catalog;

import frazil.Door;
import frazil.Request;
import frazil.rules.LakeWrites;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.AliasIdentifier;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table, a view or a metadata table of a lake in one state, which Python keeps under `key`. Rules replace it. */
public class LakeTable implements Table, SupportsRead, SupportsWrite, SupportsMetadataColumns {
  private final LakeCatalog catalog;
  private final Identifier identifier;
  private final Map facts;
  private final StructType schema;
  private final StructType hidden;

  public LakeTable(LakeCatalog catalog, Identifier identifier, Map facts) {
    this.catalog = catalog;
    this.identifier = identifier;
    this.facts = facts;
    this.schema = (StructType) StructType.fromJson((String) facts.get("schema"));
    this.hidden = (StructType) StructType.fromJson((String) facts.get("hidden"));
  }

  /** Whether what is written may change the schema. */
  public boolean evolves() {
    return Boolean.TRUE.equals(facts.get("evolves"));
  }

  /** The stream that Python named, which it is sent again later; null if this is not a stream. */
  public Map stream() {
    return (Map) facts.get("stream");
  }

  /** The table's UUID; null if this is not a table. */
  public String uuid() {
    return (String) facts.get("uuid");
  }

  public Request ofTable(String verb) {
    return catalog.ofName(verb, identifier).with("key", key());
  }

  /** The full name, by its steps. */
  public List fullName() {
    return catalog.fullName(identifier);
  }

  public LakeCatalog catalog() {
    return catalog;
  }

  public String key() {
    return (String) facts.get("key");
  }

  public Identifier identifier() {
    return identifier;
  }

  public String name() {
    return (String) facts.get("name");
  }

  /** The name under which queries qualify its columns. */
  public AliasIdentifier alias() {
    ArrayList around = new ArrayList();
    around.add(catalog.name());
    around.addAll(Door.names(identifier.namespace()));
    return new AliasIdentifier(identifier.name(), Door.seq(around));
  }

  public StructType schema() {
    return schema;
  }

  public Map properties() {
    return (Map) facts.get("properties");
  }

  public Transform[] partitioning() {
    List terms = (List) facts.get("partitions");
    Transform[] transforms = new Transform[terms.size()];
    for (int i = 0; i < transforms.length; i++) transforms[i] = LakeWrites.transform((Map) terms.get(i));
    return transforms;
  }

  public boolean takesAnySchema() {
    return Boolean.TRUE.equals(facts.get("any-schema"));
  }

  /** The same table with columns that Spark resolves: a change of rows names them. */
  public LakeTable withoutAnySchema() {
    HashMap other = new HashMap(facts);
    other.put("any-schema", Boolean.FALSE);
    return new LakeTable(catalog, identifier, other);
  }

  public Set capabilities() {
    HashSet all = known();
    if (takesAnySchema()) all.add(TableCapability.ACCEPT_ANY_SCHEMA);
    return all;
  }

  private static HashSet known() {
    return new HashSet(
        Arrays.asList(
            new Object[] {
              TableCapability.BATCH_READ,
              TableCapability.MICRO_BATCH_READ,
              TableCapability.BATCH_WRITE,
              TableCapability.STREAMING_WRITE,
              TableCapability.TRUNCATE,
              TableCapability.OVERWRITE_BY_FILTER,
              TableCapability.OVERWRITE_DYNAMIC
            }));
  }

  public MetadataColumn[] metadataColumns() {
    StructField[] fields = hidden.fields();
    MetadataColumn[] columns = new MetadataColumn[fields.length];
    for (int i = 0; i < columns.length; i++) columns[i] = new HiddenColumn(fields[i]);
    return columns;
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    throw new UnsupportedOperationException("Cannot read " + name() + ": frazil's rules are not in this session");
  }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    throw new UnsupportedOperationException("Cannot write to " + name() + ": frazil's rules are not in this session");
  }

  public String toString() {
    return name();
  }

  public boolean equals(Object other) {
    return other instanceof LakeTable
        && ((LakeTable) other).key().equals(key())
        && ((LakeTable) other).takesAnySchema() == takesAnySchema();
  }

  public int hashCode() {
    return key().hashCode();
  }
}
