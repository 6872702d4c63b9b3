package frazil.catalog;

import frazil.Door;
import frazil.Request;
import frazil.rules.LakeWrites;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
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

/** A lake as a Spark catalog; Python knows what it holds. */
public class LakeCatalog implements TableCatalog, SupportsNamespaces, FunctionCatalog, ProcedureCatalog {
  private String name = "";
  private String lake = "";

  public void initialize(String catalogName, CaseInsensitiveStringMap options) {
    name = catalogName;
    String id = (String) options.get("lake-id");
    lake = id == null ? catalogName : id;
  }

  public String name() {
    return name;
  }

  public String lake() {
    return lake;
  }

  public Request ofLake(String verb) {
    return new Request(verb).with("catalog", name).with("lake", lake);
  }

  Request ofNamespace(String verb, String[] namespace) {
    return ofLake(verb).with("namespace", Door.names(namespace));
  }

  public Request ofName(String verb, Identifier table) {
    return ofLake(verb).with("name", name(table));
  }

  private static List name(Identifier table) {
    ArrayList steps = new ArrayList(Door.names(table.namespace()));
    steps.add(table.name());
    return steps;
  }

  /** The full name of a table, with the catalog's name. */
  public List fullName(Identifier table) {
    List steps = name(table);
    steps.add(0, name);
    return steps;
  }

  public Set capabilities() {
    HashSet all = new HashSet();
    all.add(TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE);
    return all;
  }

  // Tables

  public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
    List names = (List) ofNamespace("list-tables", namespace).read();
    if (names == null) throw new NoSuchNamespaceException(namespace);
    Identifier[] tables = new Identifier[names.size()];
    for (int i = 0; i < tables.length; i++) tables[i] = Identifier.of(namespace, (String) names.get(i));
    return tables;
  }

  public Table loadTable(Identifier table) throws NoSuchTableException {
    return load(table, ofName("load", table));
  }

  public Table loadTable(Identifier table, Set privileges) throws NoSuchTableException {
    return load(table, ofName("load", table).with("purpose", "write"));
  }

  public Table loadTable(Identifier table, String version) throws NoSuchTableException {
    return load(table, ofName("load", table).with("version", version));
  }

  public Table loadTable(Identifier table, long micros) throws NoSuchTableException {
    return load(table, ofName("load", table).with("micros", new Long(micros)));
  }

  /** Load a table for a purpose that requests.py lists; return null if there is none. */
  public LakeTable find(Identifier table, Map options, String purpose) {
    return find(table, ofName("load", table).with("options", options).with("purpose", purpose));
  }

  private LakeTable find(Identifier table, Request request) {
    Map loaded = (Map) request.read();
    return loaded == null ? null : new LakeTable(this, table, loaded);
  }

  LakeTable load(Identifier table, Request request) throws NoSuchTableException {
    LakeTable loaded = find(table, request);
    if (loaded == null) throw new NoSuchTableException(table);
    return loaded;
  }

  public boolean tableExists(Identifier table) {
    return ofName("table-exists", table).read() != null;
  }

  public void invalidateTable(Identifier table) {}

  public Table createTable(Identifier table, StructType schema, Transform[] partitions, Map properties) {
    ofName("create", table)
        .with("schema", schema.json())
        .with("partitions", LakeWrites.partitions(partitions))
        .with("properties", properties)
        .ask();
    return reloaded(table);
  }

  public Table createTable(
      Identifier table,
      org.apache.spark.sql.connector.catalog.Column[] columns,
      Transform[] partitions,
      Map properties) {
    return createTable(table, LakeWrites.columns(columns), partitions, properties);
  }

  public Table alterTable(Identifier table, TableChange[] changes) {
    ofName("alter", table).with("changes", LakeWrites.changes(changes)).ask();
    return reloaded(table);
  }

  private Table reloaded(Identifier table) {
    try {
      return loadTable(table);
    } catch (NoSuchTableException e) {
      Door.raise(e);
      return null;
    }
  }

  public boolean dropTable(Identifier table) {
    return ofName("drop", table).read() != null;
  }

  public boolean purgeTable(Identifier table) {
    return ofName("drop", table).with("purge", Boolean.TRUE).read() != null;
  }

  public void renameTable(Identifier table, Identifier other) {
    ofName("rename", table).with("to", name(other)).ask();
  }

  // Functions

  public Identifier[] listFunctions(String[] namespace) {
    List names = (List) ofNamespace("functions", namespace).read();
    Identifier[] functions = new Identifier[names.size()];
    for (int i = 0; i < functions.length; i++) functions[i] = Identifier.of(namespace, (String) names.get(i));
    return functions;
  }

  public UnboundFunction loadFunction(Identifier function) throws NoSuchFunctionException {
    Map declaration = (Map) ofNamespace("find-function", function.namespace()).with("function", function.name()).read();
    if (declaration == null) throw new NoSuchFunctionException(function);
    return new LakeFunction((String) declaration.get("function"), (String) declaration.get("description"), null, null);
  }

  // Procedures

  public Identifier[] listProcedures(String[] namespace) {
    List names = (List) ofNamespace("procedures", namespace).read();
    String[] place = namespace.length == 0 ? new String[] {"system"} : namespace;
    Identifier[] procedures = new Identifier[names.size()];
    for (int i = 0; i < procedures.length; i++) procedures[i] = Identifier.of(place, (String) names.get(i));
    return procedures;
  }

  public UnboundProcedure loadProcedure(Identifier procedure) {
    return new LakeProcedure(this, (Map) ofName("procedure", procedure).read());
  }

  // Namespaces

  public String[][] listNamespaces() {
    return namespaces((List) ofNamespace("list-namespaces", new String[0]).read());
  }

  public String[][] listNamespaces(String[] namespace) throws NoSuchNamespaceException {
    List names = (List) ofNamespace("list-namespaces", namespace).read();
    if (names == null) throw new NoSuchNamespaceException(namespace);
    return namespaces(names);
  }

  private static String[][] namespaces(List names) {
    String[][] namespaces = new String[names.size()][];
    for (int i = 0; i < namespaces.length; i++) namespaces[i] = (String[]) ((List) names.get(i)).toArray(new String[0]);
    return namespaces;
  }

  public boolean namespaceExists(String[] namespace) {
    return namespace.length == 0 || ofNamespace("namespace", namespace).read() != null;
  }

  public Map loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
    Object properties = ofNamespace("namespace", namespace).read();
    if (properties == null) throw new NoSuchNamespaceException(namespace);
    return (Map) properties;
  }

  public void createNamespace(String[] namespace, Map properties) {
    ofNamespace("create-namespace", namespace).with("properties", properties).ask();
  }

  public void alterNamespace(String[] namespace, NamespaceChange[] changes) {
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
    ofNamespace("alter-namespace", namespace).with("set", set).with("removed", removed).ask();
  }

  public boolean dropNamespace(String[] namespace, boolean cascade) {
    return ofNamespace("drop-namespace", namespace).with("cascade", Boolean.valueOf(cascade)).read() != null;
  }

  public String[] defaultNamespace() {
    return new String[0];
  }

  public String toString() {
    return "LakeCatalog(" + name + ")";
  }
}
