package frazil.catalog;

import frazil.Request;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** A function of a lake, with its argument types once it is bound. Spark's own expressions compute it. */
public class LakeFunction implements UnboundFunction, ScalarFunction {
  /** Whether a function was ever bound; if not, plans are not searched for calls. */
  public static volatile boolean used = false;

  private final String name;
  private final String description;
  private final StructType argumentTypes;
  private final DataType result;

  public LakeFunction(String name, String description, StructType argumentTypes, DataType result) {
    this.name = name;
    this.description = description;
    this.argumentTypes = argumentTypes;
    this.result = result;
  }

  public String name() {
    return name;
  }

  public String description() {
    return description;
  }

  public BoundFunction bind(StructType types) {
    used = true;
    Request request = new Request("function-type").with("function", name).with("types", types.json());
    return new LakeFunction(name, description, types, DataType.fromJson((String) request.ask()));
  }

  public DataType[] inputTypes() {
    StructField[] fields = argumentTypes.fields();
    DataType[] types = new DataType[fields.length];
    for (int i = 0; i < types.length; i++) types[i] = fields[i].dataType();
    return types;
  }

  public DataType resultType() {
    return result;
  }

  /** Never called: an analyser rule replaces calls by Spark's own expressions. */
  public Object produceResult(InternalRow row) {
    throw new UnsupportedOperationException("Cannot call " + name() + ": frazil's rules are not in this session");
  }

  public String canonicalName() {
    return "frazil." + name();
  }

  /** Returns a call as Spark's own expression. */
  public Expression over(List arguments) {
    return (Expression)
        new Request("function").with("function", name).with("types", argumentTypes.json()).ask(arguments);
  }
}
