package frazil.rules;

import frazil.Door;
import frazil.Request;
import frazil.Waited;
import frazil.write.CachedRows;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.command.ResetCommand;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/** A command that Python carries out: a change of rows, the creation of a table, a statement. */
public class LakeCommand extends ResetCommand {
  private final String title;
  private final Request request;
  private final List target;
  private final List objects;
  private final List plans;
  private final StructType columns;
  private final Seq output;

  /**
   * `title` names the command in plans; `target` is the full name of the table that changes, or null; `objects` are handed to Python, plans among them as
   * Datasets; `columns` are those of the command's rows.
   */
  public LakeCommand(String title, Request request, List target, List objects, StructType columns) {
    super(scala.Option.empty());
    this.title = title;
    this.request = request;
    this.target = target;
    this.objects = objects;
    this.columns = columns;
    this.output = org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes(columns);
    ArrayList inner = new ArrayList();
    for (Object one : objects) if (one instanceof LogicalPlan) inner.add(one);
    this.plans = inner;
  }

  public StructType columns() {
    return columns;
  }

  public List plans() {
    return plans;
  }

  public Seq run(org.apache.spark.sql.SparkSession session) {
    ArrayList handed = new ArrayList();
    for (Object one : objects)
      handed.add(
          one instanceof LogicalPlan
              ? (Object)
                  org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(
                      (org.apache.spark.sql.classic.SparkSession) session, (LogicalPlan) one)
              : one);
    CachedRows cachedRows = new CachedRows((org.apache.spark.sql.classic.SparkSession) session, target);
    Object answer = Waited.ask(request, handed);
    cachedRows.renew();
    if (answer instanceof String) return counts((String) answer);
    if (!(answer instanceof Dataset)) return Door.seq(new ArrayList());
    return Door.seq(Arrays.asList((Object[]) ((Dataset) answer).collect()));
  }

  /** The counts of changed rows, as one row. */
  private static Seq counts(String answer) {
    ArrayList values = new ArrayList();
    for (Object one : (List) Door.parse(answer)) values.add(one == null ? null : new Long(((Number) one).longValue()));
    return Door.seq(
        Arrays.asList(new Object[] {org.apache.spark.sql.RowFactory.create(values.toArray())}));
  }

  public Seq output() {
    return output;
  }

  public Seq innerChildren() {
    return Door.seq(plans);
  }

  public String nodeName() {
    return "Lake " + title;
  }

  public String simpleString(int maxFields) {
    return nodeName() + (target == null ? "" : " " + String.join(".", target));
  }

  public Seq otherCopyArgs() {
    return Door.seq(Arrays.asList(new Object[] {title, request, target, objects, columns}));
  }

  public int productArity() {
    return 0;
  }

  public Object productElement(int at) {
    throw new IndexOutOfBoundsException();
  }

  public boolean canEqual(Object other) {
    return other == this;
  }

  public boolean equals(Object other) {
    return other == this;
  }

  public int hashCode() {
    return System.identityHashCode(this);
  }
}
