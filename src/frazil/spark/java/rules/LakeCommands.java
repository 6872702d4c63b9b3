package frazil.rules;

import frazil.Door;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import scala.collection.immutable.Seq;

/** The commands of one statement, run in order. Spark 4.0 cannot collect a union of commands that return rows. */
public class LakeCommands extends LakeCommand {
  private final List commands;

  public LakeCommands(List commands) {
    super("commands", null, null, plans(commands), ((LakeCommand) commands.get(0)).columns());
    this.commands = commands;
  }

  private static List plans(List commands) {
    ArrayList plans = new ArrayList();
    for (Object one : commands) plans.addAll(((LakeCommand) one).plans());
    return plans;
  }

  public Seq run(org.apache.spark.sql.SparkSession session) {
    ArrayList rows = new ArrayList();
    for (Object one : commands) rows.addAll(Door.list(((LakeCommand) one).run(session)));
    return Door.seq(rows);
  }

  public Seq otherCopyArgs() {
    return Door.seq(Arrays.asList(new Object[] {commands}));
  }
}
