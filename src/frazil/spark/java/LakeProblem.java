package frazil;

import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.trees.Origin;

/** A statement that a lake cannot carry out, with a condition and an SQLSTATE for handlers in scripts. */
public class LakeProblem extends AnalysisException {
  private final String text;
  private final String condition;
  private final String state;

  public LakeProblem(String message, String condition, String state, Origin origin) {
    super(
        Spark.placed(message, origin),
        scala.Option.empty(),
        scala.Option.empty(),
        scala.Option.empty(),
        scala.Option.apply(condition),
        (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty(),
        new org.apache.spark.QueryContext[0]);
    this.text = message;
    this.condition = condition;
    this.state = state;
  }

  /** Returns the error at a place in the query; Spark's implementation would need a template of the message. */
  public AnalysisException withPosition(Origin origin) {
    if (!text.equals(message())) return this;
    LakeProblem placed = new LakeProblem(text, condition, state, origin);
    placed.setStackTrace(getStackTrace());
    return placed;
  }

  public String getCondition() {
    return condition;
  }

  public String getSqlState() {
    return state;
  }
}
