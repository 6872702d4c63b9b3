package frazil;

import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.trees.Origin;

/** What was asked of a lake cannot be done; for handlers in scripts it has a condition and a state. */
public class LakeProblem extends AnalysisException {
  private final String condition;
  private final String state;

  public LakeProblem(String message, String condition, String state) {
    this(message, condition, state, scala.Option.empty(), scala.Option.empty());
  }

  private LakeProblem(String message, String condition, String state, scala.Option line, scala.Option position) {
    super(
        message,
        line,
        position,
        scala.Option.empty(),
        scala.Option.apply(condition),
        (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty(),
        new org.apache.spark.QueryContext[0]);
    this.condition = condition;
    this.state = state;
  }

  /** The same where the query says it; without Spark's excerpt, which would ask for a template of the message. */
  public AnalysisException withPosition(Origin origin) {
    LakeProblem placed = new LakeProblem(message(), condition, state, origin.line(), origin.startPosition());
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
