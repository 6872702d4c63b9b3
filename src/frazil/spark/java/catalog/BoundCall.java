package frazil.catalog;

import frazil.Request;
import frazil.Waited;
import frazil.write.CachedRows;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.TimestampType;

/** A call of a procedure with typed arguments. */
public class BoundCall implements BoundProcedure {
  private final LakeCatalog catalog;
  private final Map declaration;
  private final List declared;
  private final DataType[] argumentTypes;

  BoundCall(LakeCatalog catalog, Map declaration, DataType[] argumentTypes) {
    this.catalog = catalog;
    this.declaration = declaration;
    this.declared = (List) declaration.get("parameters");
    this.argumentTypes = argumentTypes;
  }

  public String name() {
    return (String) declaration.get("name");
  }

  public String description() {
    return (String) declaration.get("doc");
  }

  public boolean isDeterministic() {
    return false;
  }

  public static DataType type(Map parameter) {
    return DataType.fromDDL((String) parameter.get("type"));
  }

  public ProcedureParameter[] parameters() {
    ProcedureParameter[] parameters = new ProcedureParameter[declared.size()];
    for (int i = 0; i < parameters.length; i++) {
      Map one = (Map) declared.get(i);
      ProcedureParameter.Builder builder =
          ProcedureParameter.in((String) one.get("name"), argumentTypes[i]);
      builder.comment((String) one.get("doc"));
      if (!Boolean.TRUE.equals(one.get("required"))) builder.defaultValue("NULL");
      parameters[i] = builder.build();
    }
    return parameters;
  }

  public Iterator call(InternalRow input) {
    LinkedHashMap values = new LinkedHashMap();
    for (int i = 0; i < argumentTypes.length; i++)
      if (!input.isNullAt(i)) values.put(((Map) declared.get(i)).get("name"), value(input.get(i, argumentTypes[i]), i));
    SparkSession session = SparkSession.active();
    Object table = CachedRows.any(session) ? ofCall("called-table", values).read() : null;
    CachedRows cachedRows = new CachedRows(session, (List) table);
    Dataset answer = (Dataset) Waited.ask(ofCall("call", values), Collections.EMPTY_LIST);
    cachedRows.renew();
    InternalRow[] rows = answer.queryExecution().executedPlan().executeCollect();
    return Collections.singletonList(new LakeRows(answer.schema(), rows)).iterator();
  }

  private Request ofCall(String verb, Map values) {
    return Request.ofText(verb, name())
        .with("catalog", catalog.name())
        .with("lake", catalog.lake())
        .with("values", values);
  }

  private Object value(Object value, int at) {
    DataType type = type((Map) declared.get(at));
    if (argumentTypes[at].equals(type)) return plain(value, type);
    scala.Option zone = scala.Option.apply(SparkSession.active().sessionState().conf().sessionLocalTimeZone());
    Cast cast = Cast$.MODULE$.apply((Expression) new Literal(value, argumentTypes[at]), type, zone, true);
    return plain(cast.eval(null), type);
  }

  /** A value as JSON; a timestamp is milliseconds. */
  private static Object plain(Object value, DataType type) {
    if (value == null || value instanceof Boolean) return value;
    if (type instanceof TimestampType) return new Long(Math.floorDiv(((Long) value).longValue(), 1000L));
    if (value instanceof Number) return value;
    if (value instanceof ArrayData) return list((ArrayData) value, ((ArrayType) type).elementType());
    if (value instanceof MapData) {
      List keys = list(((MapData) value).keyArray(), ((MapType) type).keyType());
      List values = list(((MapData) value).valueArray(), ((MapType) type).valueType());
      LinkedHashMap entries = new LinkedHashMap();
      for (int i = 0; i < keys.size(); i++) entries.put(keys.get(i), values.get(i));
      return entries;
    }
    return String.valueOf(value);
  }

  private static List list(ArrayData values, DataType type) {
    ArrayList items = new ArrayList();
    for (int i = 0; i < values.numElements(); i++)
      items.add(values.isNullAt(i) ? null : plain(values.get(i, type), type));
    return items;
  }
}
