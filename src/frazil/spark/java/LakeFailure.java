package frazil;

import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.execution.QueryExecutionException;

/** A failure while a lake was read or changed. */
public class LakeFailure extends QueryExecutionException implements SparkThrowable {
  private final String condition;
  private final String state;

  public LakeFailure(String message, String condition, String state, Origin origin) {
    super(Spark.placed(message, origin), null);
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
