package frazil;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A lake under a name, as Spark's catalogs are. What it holds, Python says. */
public class LakeCatalog implements TableCatalog, SupportsNamespaces, FunctionCatalog, ProcedureCatalog {
  private String name = "";
  private String lake = "";

  public void initialize(String given, CaseInsensitiveStringMap options) {
    name = given;
    String id = (String) options.get("lake-id");
    lake = id == null ? given : id;
  }

  public String name() {
    return name;
  }

  public String lake() {
    return lake;
  }

  /** A question about this lake. */
  public Map told() {
    LinkedHashMap told = new LinkedHashMap();
    told.put("catalog", name);
    told.put("lake", lake);
    return told;
  }

  public Map told(String[] namespace) {
    Map told = told();
    told.put("namespace", Door.names(namespace));
    return told;
  }

  public Map told(Identifier table) {
    Map told = told();
    ArrayList parts = new ArrayList(Door.names(table.namespace()));
    parts.add(table.name());
    told.put("name", parts);
    return told;
  }

  public Set capabilities() {
    HashSet found = new HashSet();
    found.add(TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE);
    return found;
  }

  // Tables

  public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
    List found = (List) Door.read("list-tables", told(namespace));
    if (found == null) throw new NoSuchNamespaceException(namespace);
    Identifier[] tables = new Identifier[found.size()];
    for (int i = 0; i < tables.length; i++) tables[i] = Identifier.of(namespace, (String) found.get(i));
    return tables;
  }

  public Table loadTable(Identifier table) throws NoSuchTableException {
    return load(table, told(table));
  }

  public Table loadTable(Identifier table, Set privileges) throws NoSuchTableException {
    Map told = told(table);
    told.put("writes", Boolean.TRUE);
    return load(table, told);
  }

  public Table loadTable(Identifier table, String version) throws NoSuchTableException {
    Map told = told(table);
    told.put("version", version);
    return load(table, told);
  }

  public Table loadTable(Identifier table, long micros) throws NoSuchTableException {
    Map told = told(table);
    told.put("micros", new Long(micros));
    return load(table, told);
  }

  /** A table of which more is asked than its name; null where there is none. */
  LakeTable find(Identifier table, Map asked) {
    Map told = told(table);
    told.putAll(asked);
    Map found = (Map) Door.read("load", told);
    return found == null ? null : new LakeTable(this, table, found);
  }

  private Table load(Identifier table, Map told) throws NoSuchTableException {
    Map found = (Map) Door.read("load", told);
    if (found == null) throw new NoSuchTableException(table);
    return new LakeTable(this, table, found);
  }

  public boolean tableExists(Identifier table) {
    return Door.read("table-exists", told(table)) != null;
  }

  public void invalidateTable(Identifier table) {}

  public Table createTable(Identifier table, StructType schema, Transform[] partitions, Map properties) {
    Map told = told(table);
    told.put("schema", schema.json());
    told.put("partitions", LakeWrites.partitions(partitions));
    told.put("properties", properties);
    told.put("creates", Boolean.TRUE);
    Door.ask("create", told);
    try {
      return loadTable(table);
    } catch (NoSuchTableException e) {
      Door.raise(e);
      return null;
    }
  }

  public Table createTable(
      Identifier table,
      org.apache.spark.sql.connector.catalog.Column[] columns,
      Transform[] partitions,
      Map properties) {
    return createTable(table, LakeWrites.columns(columns), partitions, properties);
  }

  public Table alterTable(Identifier table, TableChange[] changes) {
    Map told = told(table);
    told.put("changes", LakeWrites.changes(changes));
    Door.ask("alter", told);
    try {
      return loadTable(table);
    } catch (NoSuchTableException e) {
      Door.raise(e);
      return null;
    }
  }

  public boolean dropTable(Identifier table) {
    return Door.read("drop", told(table)) != null;
  }

  public boolean purgeTable(Identifier table) {
    Map told = told(table);
    told.put("purge", Boolean.TRUE);
    return Door.read("drop", told) != null;
  }

  public void renameTable(Identifier table, Identifier other) {
    Map told = told(table);
    told.put("to", told(other).get("name"));
    Door.ask("rename", told);
  }

  // Functions

  public Identifier[] listFunctions(String[] namespace) {
    List found = (List) Door.read("functions", told(namespace));
    Identifier[] made = new Identifier[found.size()];
    for (int i = 0; i < made.length; i++) made[i] = Identifier.of(namespace, (String) found.get(i));
    return made;
  }

  public UnboundFunction loadFunction(Identifier function) throws NoSuchFunctionException {
    Map told = told(function.namespace());
    told.put("function", function.name());
    Map found = (Map) Door.read("find-function", told);
    if (found == null) throw new NoSuchFunctionException(function);
    told.putAll(found);
    return new LakeFunction(told, null, null);
  }

  // Procedures

  public Identifier[] listProcedures(String[] namespace) {
    List found = (List) Door.read("procedures", told(namespace));
    String[] place = namespace.length == 0 ? new String[] {"system"} : namespace;
    Identifier[] made = new Identifier[found.size()];
    for (int i = 0; i < made.length; i++) made[i] = Identifier.of(place, (String) found.get(i));
    return made;
  }

  public UnboundProcedure loadProcedure(Identifier procedure) {
    return new LakeProcedure(this, (Map) Door.read("procedure", told(procedure)));
  }

  // Namespaces

  public String[][] listNamespaces() {
    return namespaces((List) Door.read("list-namespaces", told(new String[0])));
  }

  public String[][] listNamespaces(String[] namespace) throws NoSuchNamespaceException {
    List found = (List) Door.read("list-namespaces", told(namespace));
    if (found == null) throw new NoSuchNamespaceException(namespace);
    return namespaces(found);
  }

  private static String[][] namespaces(List found) {
    String[][] made = new String[found.size()][];
    for (int i = 0; i < made.length; i++) made[i] = (String[]) ((List) found.get(i)).toArray(new String[0]);
    return made;
  }

  public boolean namespaceExists(String[] namespace) {
    return namespace.length == 0 || Door.read("namespace", told(namespace)) != null;
  }

  public Map loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
    Object found = Door.read("namespace", told(namespace));
    if (found == null) throw new NoSuchNamespaceException(namespace);
    return (Map) found;
  }

  public void createNamespace(String[] namespace, Map properties) {
    Map told = told(namespace);
    told.put("properties", properties);
    Door.ask("create-namespace", told);
  }

  public void alterNamespace(String[] namespace, NamespaceChange[] changes) {
    Map told = told(namespace);
    HashMap set = new HashMap();
    ArrayList removed = new ArrayList();
    for (int i = 0; i < changes.length; i++) {
      if (changes[i] instanceof NamespaceChange.SetProperty) {
        NamespaceChange.SetProperty one = (NamespaceChange.SetProperty) changes[i];
        set.put(one.property(), one.value());
      } else if (changes[i] instanceof NamespaceChange.RemoveProperty) {
        removed.add(((NamespaceChange.RemoveProperty) changes[i]).property());
      }
    }
    told.put("set", set);
    told.put("removed", removed);
    Door.ask("alter-namespace", told);
  }

  public boolean dropNamespace(String[] namespace, boolean cascade) {
    Map told = told(namespace);
    told.put("cascade", Boolean.valueOf(cascade));
    return Door.read("drop-namespace", told) != null;
  }

  public String[] defaultNamespace() {
    return new String[0];
  }

  public String toString() {
    return "LakeCatalog(" + name + ")";
  }
}
