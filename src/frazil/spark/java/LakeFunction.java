package frazil;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** A function of a lake, with the types it is called with once they are known. Spark's own expressions do the work. */
public class LakeFunction implements UnboundFunction, ScalarFunction {
  /** Whether any call was ever made: where not, plans are not searched for some. */
  static volatile boolean used = false;

  private final Map told;
  private final StructType given;
  private final DataType result;

  public LakeFunction(Map told, StructType given, DataType result) {
    this.told = told;
    this.given = given;
    this.result = result;
  }

  public String name() {
    return (String) told.get("function");
  }

  public String description() {
    return (String) told.get("description");
  }

  public BoundFunction bind(StructType types) {
    used = true;
    HashMap asked = new HashMap(told);
    asked.put("types", types.json());
    String answer = (String) Door.ask("function-type", asked);
    return new LakeFunction(told, types, DataType.fromJson(answer));
  }

  public DataType[] inputTypes() {
    StructField[] fields = given.fields();
    DataType[] types = new DataType[fields.length];
    for (int i = 0; i < types.length; i++) types[i] = fields[i].dataType();
    return types;
  }

  public DataType resultType() {
    return result;
  }

  /** Never called: the rules of the analysis put Spark's own expressions in the place of calls. */
  public Object produceResult(InternalRow row) {
    throw new UnsupportedOperationException("Cannot call " + name() + ": frazil's rules are not in this session");
  }

  public String canonicalName() {
    return "frazil." + name();
  }

  /** What a call of it is in Spark's own expressions. */
  Expression over(List arguments) {
    HashMap asked = new HashMap(told);
    asked.put("types", given.json());
    return (Expression) Door.ask("function", asked, arguments);
  }
}
