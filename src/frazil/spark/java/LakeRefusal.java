package frazil;

import org.apache.spark.SparkThrowable;

/** What a lake does not do. */
public class LakeRefusal extends UnsupportedOperationException implements SparkThrowable {
  private final String condition;
  private final String state;

  public LakeRefusal(String message, String condition, String state) {
    super(message);
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
