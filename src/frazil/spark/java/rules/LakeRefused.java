package frazil.rules;

import frazil.Door;
import java.util.ArrayList;
import java.util.Arrays;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/** A statement that a lake refuses; the error is raised when Spark runs it. */
public class LakeRefused extends LakeCommand {
  private final Throwable problem;

  public LakeRefused(Throwable problem) {
    super("statement", null, null, new ArrayList(), new StructType());
    this.problem = problem;
  }

  public Seq run(org.apache.spark.sql.SparkSession session) {
    Door.raise(problem);
    return null;
  }

  public Seq otherCopyArgs() {
    return Door.seq(Arrays.asList(new Object[] {problem}));
  }
}
