package frazil;

import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.trees.Origin;

/** What was asked of a lake cannot be done; for handlers in scripts it has a condition and a state. */
public class LakeProblem extends AnalysisException {
  private final String said;
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
    this.said = message;
    this.condition = condition;
    this.state = state;
  }

  /** The same where the query says it; Spark's own way would ask for a template of the message. */
  public AnalysisException withPosition(Origin origin) {
    if (!said.equals(message())) return this;
    LakeProblem placed = new LakeProblem(said, condition, state, origin);
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
