package frazil.rules;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.AliasIdentifier;
import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** A table under its name, with metadata columns that `*` omits and that any query may name. */
public class HiddenColumns extends SubqueryAlias implements ExposesMetadataColumns, MultiInstanceRelation {
  private final Offer offer;
  private final Seq hidden;
  private final Set shown;

  public HiddenColumns(AliasIdentifier name, LogicalPlan child, Offer offer) {
    super(name, child);
    this.offer = offer;
    this.hidden = offer.hidden;
    this.shown = offer.shown;
  }

  /** The key of the table that is read. */
  public Object key() { return offer.table.key(); }

  public boolean isAsked() { return shown != null; }
  public Seq hidden() { return hidden; }

  public Seq metadataOutput() {
    ArrayList attributes = new ArrayList();
    for (Object one : CollectionConverters.asJava(hidden))
      attributes.add(((Attribute) one).withQualifier((Seq) identifier().qualifier().appended(identifier().name())));
    return list(attributes);
  }

  public LogicalPlan withMetadataColumns() {
    return shown != null ? this : filled(child(), child().output(), new HashSet());
  }

  /** Returns this table with values for some hidden columns, under the ids that the query uses. */
  public HiddenColumns show(Set names) {
    HashSet all = new HashSet(shown);
    if (!all.addAll(names)) return this;
    ArrayList asked = new ArrayList();
    for (Object one : CollectionConverters.asJava(hidden))
      if (all.contains(((Attribute) one).name())) asked.add(((Attribute) one).name());
    LogicalPlan answer = offer.read(asked);
    Seq known = child().output();
    return filled(answer, (Seq) known.take(known.size() - hidden.size()), all);
  }

  /** Adds the remaining hidden columns, as nulls, to a plan with the table's own columns and the named ones. */
  private HiddenColumns filled(LogicalPlan plan, Seq own, Set names) {
    Seq output = plan.output();
    ArrayList columns = new ArrayList();
    int at = 0;
    for (Object one : CollectionConverters.asJava(own)) {
      Attribute known = (Attribute) one;
      Attribute found = (Attribute) output.apply(at++);
      columns.add(found.exprId().equals(known.exprId()) ? (Object) found : alias(found, known));
    }
    for (Object one : CollectionConverters.asJava(hidden)) {
      Attribute known = (Attribute) one;
      Expression value = names.contains(known.name())
          ? (Expression) output.apply(at++) : (Expression) Literal$.MODULE$.create(null, known.dataType());
      columns.add(alias(value, known));
    }
    return new HiddenColumns(identifier(), new Project(list(columns), plan), offer.of(hidden, names));
  }

  private static Alias alias(Expression value, Attribute as) {
    return new Alias(value, as.name(), as.exprId(), list(new ArrayList()), scala.Option.empty(), list(new ArrayList()));
  }

  /** Another instance of the table in a query: every column, hidden or not, gets a new id. */
  public LogicalPlan newInstance() {
    ArrayList columns = new ArrayList();
    for (Object one : CollectionConverters.asJava(child().output()))
      columns.add(alias((Attribute) one, ((Attribute) one).newInstance()));
    return withNewChildInternal(new Project(list(columns), child()));
  }

  /** If Spark gives the child's columns new ids, because the table occurs twice, hidden ones get new ids too. */
  public SubqueryAlias withNewChildInternal(LogicalPlan other) {
    Seq output = other.output();
    if (shown != null)
      return new HiddenColumns(identifier(), other, offer.of((Seq) output.takeRight(hidden.size()), shown));
    Seq known = child().output();
    boolean isSame = known.isEmpty() || id(known.head()).equals(id(output.head()));
    return new HiddenColumns(identifier(), other, isSame ? offer : offer.of(renewed(), null));
  }

  private Seq renewed() {
    ArrayList others = new ArrayList();
    for (Object one : CollectionConverters.asJava(hidden)) others.add(((Attribute) one).newInstance());
    return list(others);
  }

  public Seq otherCopyArgs() { return list(Arrays.asList(new Object[] {offer})); }

  public static ExprId id(Object column) { return ((NamedExpression) column).exprId(); }

  public static Seq list(List items) { return CollectionConverters.asScala(items).toList(); }
}
