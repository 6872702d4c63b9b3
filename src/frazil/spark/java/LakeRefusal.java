package frazil;

import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.catalyst.trees.Origin;

/** An operation that lakes do not support. */
public class LakeRefusal extends UnsupportedOperationException implements SparkThrowable {
  private final String condition;
  private final String state;

  public LakeRefusal(String message, String condition, String state, Origin origin) {
    super(Spark.placed(message, origin));
    this.condition = condition;
    this.state = state;
  }

  public String getCondition() {
    return condition;
  }

  public String getSqlState() {
    return state;
  }
}
