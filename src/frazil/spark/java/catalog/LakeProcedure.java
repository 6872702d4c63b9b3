package frazil.catalog;

import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** A procedure of a lake. Spark binds and evaluates its arguments, Python runs it. */
public class LakeProcedure implements UnboundProcedure {
  private final LakeCatalog catalog;
  private final Map declaration;
  private final List declared;

  public LakeProcedure(LakeCatalog catalog, Map declaration) {
    this.catalog = catalog;
    this.declaration = declaration;
    this.declared = (List) declaration.get("parameters");
  }

  public String name() {
    return (String) declaration.get("name");
  }

  public String description() {
    return (String) declaration.get("doc");
  }

  /** Accepts arguments of any convertible type; values are converted when the procedure is called. */
  public BoundProcedure bind(StructType input) {
    DataType[] types = new DataType[declared.size()];
    for (int i = 0; i < types.length; i++) types[i] = BoundCall.type((Map) declared.get(i));
    StructField[] fields = input.fields();
    for (int i = 0; i < fields.length; i++) {
      int at = fields[i].metadata().contains("BY_NAME") ? place(fields[i].name()) : i;
      DataType kind = fields[i].dataType();
      if (at < 0 || at >= types.length || kind instanceof NullType) continue;
      if (Cast$.MODULE$.canAnsiCast(kind, types[at])) types[at] = kind;
    }
    return new BoundCall(catalog, declaration, types);
  }

  private int place(String name) {
    for (int i = 0; i < declared.size(); i++)
      if (name.equalsIgnoreCase((String) ((Map) declared.get(i)).get("name"))) return i;
    return -1;
  }
}
