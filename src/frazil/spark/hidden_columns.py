"""Metadata columns of lakes' tables, hidden as Spark hides its own: `*` leaves them out, and any query may name them.

    HiddenColumns(lake.db.t)            a SubqueryAlias that offers `_file`, `_pos` … as `metadataOutput`
      --a query names one-->            Spark's `AddMetadataColumns` asks it for `withMetadataColumns`
      --`ShowHiddenColumns`-->          the frame of the table with just the columns that the query uses

Spark resolves the names: of joined tables, of subqueries, of DataFrames, whatever a column of the table's own is
called. Before a query is analysed, nobody knows which columns it uses, and Spark offers a table all of them or none. So
`withMetadataColumns` gives nulls in their places, and a rule at the end of the analysis asks Python for the frame. That
is what makes `_deleted` right, which shows deleted rows: it is asked for where a query names it, and nowhere else.

What a query uses goes from the top down (`visit`): a column that Spark passes on through a projection, and drops again,
is not used. What a subquery shows is.

The rule joins the session's own with the first such table, and looks at no plan but those that have one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pyspark.sql.types as st
from py4j.protocol import Py4JError
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession

from frazil.errors import FrazilError
from frazil.spark.jvm import compiled_class, moved, to_java
from frazil.spark.patch_session import session_id
from frazil.spark.sql_names import alias_identifier
from frazil.spec.reserved_columns import DELETED, METADATA_COLUMNS, PARTITION_NAME

_SOURCE = r"""
import java.util.*;
import org.apache.spark.sql.catalyst.AliasIdentifier;
import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** What a table offers; one object, which Spark may compare. */
public class Offer {
  final java.util.function.Function frames;
  final Seq hidden;
  /** The names of the hidden columns that the plan has values for; null where it does not have the columns. */
  final Set shown;

  public Offer(java.util.function.Function frames, Seq hidden, Set shown) {
    this.frames = frames;
    this.hidden = hidden;
    this.shown = shown;
  }
}

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

  public boolean isAsked() { return shown != null; }
  public Seq hidden() { return hidden; }

  public Seq metadataOutput() {
    ArrayList found = new ArrayList();
    for (Object one : CollectionConverters.asJava(hidden))
      found.add(((Attribute) one).withQualifier((Seq) identifier().qualifier().appended(identifier().name())));
    return list(found);
  }

  public LogicalPlan withMetadataColumns() {
    return shown != null ? this : filled(child(), child().output(), new HashSet());
  }

  /** This table with values for some hidden columns, under the ids that the query knows. */
  public HiddenColumns show(Set names) {
    HashSet all = new HashSet(shown);
    if (!all.addAll(names)) return this;
    ArrayList asked = new ArrayList();
    for (Object one : CollectionConverters.asJava(hidden))
      if (all.contains(((Attribute) one).name())) asked.add(((Attribute) one).name());
    Object answer = offer.frames.apply(asked);
    if (!(answer instanceof LogicalPlan)) throw new IllegalArgumentException(String.valueOf(answer));
    Seq known = child().output();
    return filled((LogicalPlan) answer, (Seq) known.take(known.size() - hidden.size()), all);
  }

  /** Over a plan that has the table's own columns and then those of the names: all hidden ones too. */
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
    return new HiddenColumns(identifier(), new Project(list(columns), plan), offer(hidden, names));
  }

  private static Alias alias(Expression value, Attribute as) {
    return new Alias(value, as.name(), as.exprId(), list(new ArrayList()), scala.Option.empty(), list(new ArrayList()));
  }

  /** The same table once more in a query: every column, hidden or not, gets another id. */
  public LogicalPlan newInstance() {
    ArrayList columns = new ArrayList();
    for (Object one : CollectionConverters.asJava(child().output()))
      columns.add(alias((Attribute) one, ((Attribute) one).newInstance()));
    return withNewChildInternal(new Project(list(columns), child()));
  }

  /** Where Spark gives the child's columns other ids, the table being there twice, hidden ones get other ids too. */
  public SubqueryAlias withNewChildInternal(LogicalPlan other) {
    Seq output = other.output();
    if (shown != null)
      return new HiddenColumns(identifier(), other, offer((Seq) output.takeRight(hidden.size()), shown));
    Seq known = child().output();
    boolean isSame = known.isEmpty() || id(known.head()).equals(id(output.head()));
    return new HiddenColumns(identifier(), other, isSame ? offer : offer(renewed(), null));
  }

  private Seq renewed() {
    ArrayList others = new ArrayList();
    for (Object one : CollectionConverters.asJava(hidden)) others.add(((Attribute) one).newInstance());
    return list(others);
  }

  public Seq otherCopyArgs() { return list(Arrays.asList(new Object[] {offer})); }

  private Offer offer(Seq columns, Set names) { return new Offer(offer.frames, columns, names); }

  static ExprId id(Object column) { return ((NamedExpression) column).exprId(); }

  static Seq list(List items) { return CollectionConverters.asScala(items).toList(); }
}

public class ShowHiddenColumns extends org.apache.spark.sql.catalyst.rules.Rule {
  public LogicalPlan hide(
      AliasIdentifier name, LogicalPlan child, java.util.function.Function frames, StructType hidden) {
    Seq columns = org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes(hidden);
    return new HiddenColumns(name, child, new Offer(frames, columns, null));
  }

  public TreeNode apply(TreeNode plan) {
    if (!isAsked(plan)) return plan;
    Map used = new IdentityHashMap();
    visit((LogicalPlan) plan, ids((LogicalPlan) plan, new HashSet()), used);
    return (TreeNode) rewritten(plan, used);
  }

  /** Whether a query names a hidden column. */
  private static boolean isAsked(TreeNode plan) {
    if (plan instanceof HiddenColumns) return ((HiddenColumns) plan).isAsked();
    for (Object one : CollectionConverters.asJava(plan.children())) if (isAsked((TreeNode) one)) return true;
    for (Object one : CollectionConverters.asJava(plan.innerChildren()))
      if (one instanceof LogicalPlan && isAsked((TreeNode) one)) return true;
    return false;
  }

  /** Notes which hidden columns of which tables are used under a plan of which some columns are. */
  private static void visit(LogicalPlan plan, Set wanted, Map used) {
    if (plan instanceof HiddenColumns && !((HiddenColumns) plan).isAsked()) return;
    if (plan instanceof HiddenColumns) {
      Set names = (Set) used.get(plan);
      if (names == null) used.put(plan, names = new HashSet());
      for (Object one : CollectionConverters.asJava(((HiddenColumns) plan).hidden()))
        if (wanted.contains(HiddenColumns.id(one))) names.add(((Attribute) one).name());
      return;
    }
    Set below = new HashSet();
    if (plan instanceof Project) {
      for (Object one : CollectionConverters.asJava(((Project) plan).projectList()))
        if (wanted.contains(HiddenColumns.id(one))) uses((Expression) one, below, used);
    } else {
      below.addAll(wanted);
      for (Object one : CollectionConverters.asJava(plan.expressions())) uses((Expression) one, below, used);
    }
    boolean isWhole = isWhole(plan);
    for (Object one : CollectionConverters.asJava(plan.children())) {
      if (isWhole) ids((LogicalPlan) one, below);
      visit((LogicalPlan) one, below, used);
    }
    for (Object one : CollectionConverters.asJava(plan.innerChildren()))
      if (one instanceof LogicalPlan && !plan.subqueries().contains(one))
        visit((LogicalPlan) one, ids((LogicalPlan) one, new HashSet()), used);
  }

  /** Whether all that is below a plan counts: what a subquery shows, what is compared, written or put together. */
  private static boolean isWhole(LogicalPlan plan) {
    if (plan instanceof SubqueryAlias) return !(((SubqueryAlias) plan).child() instanceof SubqueryAlias);
    if (plan instanceof Distinct || plan instanceof Command) return true;
    return plan.children().size() > 1 && !(plan instanceof Join);
  }

  private static Set ids(LogicalPlan plan, Set into) {
    for (Object one : CollectionConverters.asJava(plan.output())) into.add(HiddenColumns.id(one));
    return into;
  }

  /** Notes what an expression uses, in its subqueries too. */
  private static void uses(Expression expression, Set below, Map used) {
    if (expression instanceof AttributeReference) below.add(((AttributeReference) expression).exprId());
    if (expression instanceof PlanExpression) {
      Object plan = ((PlanExpression) expression).plan();
      if (plan instanceof LogicalPlan) {
        visit((LogicalPlan) plan, ids((LogicalPlan) plan, new HashSet()), used);
        outer((LogicalPlan) plan, below);
      }
    }
    for (Object one : CollectionConverters.asJava(expression.children())) uses((Expression) one, below, used);
  }

  /** Notes which columns of the query around it a subquery uses. */
  private static void outer(TreeNode node, Set below) {
    if (node instanceof OuterReference) below.add(((OuterReference) node).exprId());
    for (Object one : CollectionConverters.asJava(node.children())) outer((TreeNode) one, below);
    if (node instanceof LogicalPlan)
      for (Object one : CollectionConverters.asJava(((LogicalPlan) node).expressions())) outer((TreeNode) one, below);
    if (node instanceof PlanExpression) outer((TreeNode) ((PlanExpression) node).plan(), below);
  }

  private static Object rewritten(Object o, Map used) {
    if (o instanceof HiddenColumns) return used.containsKey(o) ? ((HiddenColumns) o).show((Set) used.get(o)) : o;
    if (o instanceof LogicalPlan && !isAsked((TreeNode) o)) return o;
    if (o instanceof Seq) {
      ArrayList parts = new ArrayList();
      boolean changed = false;
      for (Object one : CollectionConverters.asJava((Seq) o)) {
        Object other = rewritten(one, used);
        changed |= other != one;
        parts.add(other);
      }
      return changed ? HiddenColumns.list(parts) : o;
    }
    boolean isPair = o instanceof scala.Tuple2;
    if (!(o instanceof TreeNode) && !(o instanceof scala.Some) && !isPair) return o;
    scala.Product product = (scala.Product) o;
    Object[] parts = new Object[product.productArity()];
    boolean changed = false;
    for (int i = 0; i < parts.length; i++) {
      parts[i] = rewritten(product.productElement(i), used);
      changed |= parts[i] != product.productElement(i);
    }
    if (!changed) return o;
    if (o instanceof scala.Some) return new scala.Some(parts[0]);
    return isPair ? (Object) new scala.Tuple2(parts[0], parts[1]) : ((TreeNode) o).makeCopy(parts);
  }
}
"""

_RULES = "postHocResolutionRules"
"""Rules that Spark runs once when all names are resolved; a session's analyser has them in a field of its own."""

_rules: dict[str, Any] = {}
_lock = threading.Lock()


class _Frames:
    """Gives Java the plan of a table's frame with some hidden columns; an error goes back as text."""

    class Java:
        implements = ("java.util.function.Function",)

    def __init__(self, frame_with: Callable[[list[str]], DataFrame]) -> None:
        self._frame_with = frame_with

    def apply(self, names: Any) -> Any:
        try:
            return self._frame_with(list(names))._jdf.queryExecution().analyzed()
        except FrazilError as error:
            return str(error)
        except Exception as error:
            # Nothing may be raised into Py4J: it would lose the message.
            return f"Cannot read metadata columns: {type(error).__name__}: {error}"


def hide_columns(
    spark: SparkSession,
    frame: DataFrame,
    name: Sequence[str],
    hidden: st.StructType,
    frame_with: Callable[[list[str]], DataFrame],
) -> Any:
    """Return the plan of a table under its name, with columns that `*` leaves out and that any query may name.

    `frame_with` gives the table's own columns as `frame` has them, and then those hidden ones that are asked for.
    """
    ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
    plan = frame._jdf.queryExecution().analyzed()
    schema = to_java(spark.sparkContext._jvm, hidden)
    return _rule(spark).hide(alias_identifier(spark, name), plan, _Frames(frame_with), schema)


def show_named(frame: DataFrame, text: str) -> DataFrame:
    """Return a frame that shows the hidden columns a text may name, all but `_deleted`, which changes its rows.

    For subqueries that read temporary views, of which Spark does not look for hidden columns: a name would be looked up
    in the query around them.
    """
    lower = text.lower()
    named = [one for one in (*METADATA_COLUMNS, PARTITION_NAME) if one in lower and one != DELETED.name]
    if not named:
        return frame
    plan: Any = frame._jdf.queryExecution().analyzed()
    offered = plan.metadataOutput()
    known = {str(offered.apply(at).name()) for at in range(offered.size())}
    return frame.select("*", *(one for one in named if one in known))


def _rule(spark: SparkSession) -> Any:
    """Return the rule of a session, which joins the session's own when it is first asked for.

    It stays there: DataFrames outlive the lakes they are of.
    """
    session = session_id(spark)
    with _lock:
        if session not in _rules:
            _rules[session] = _join_rules(spark)
        return _rules[session]


def _join_rules(spark: SparkSession) -> Any:
    jvm: Any = spark.sparkContext._jvm
    try:
        analyzer = spark._jsparkSession.sessionState().analyzer()
        field = _field(analyzer.getClass())
        made = compiled_class(spark, _SOURCE, "ShowHiddenColumns").getConstructors()[0]
        rule = made.newInstance(jvm.java.util.ArrayList().toArray())
        # First: other rules turn writes into commands that hide their query.
        field.set(analyzer, field.get(analyzer).prepended(rule))
    except (TypeError, AttributeError, Py4JError) as error:
        raise moved(error) from error
    return rule


def _field(kind: Any) -> Any:
    while kind is not None:
        for one in kind.getDeclaredFields():
            if one.getName() == _RULES:
                one.setAccessible(True)
                return one
        kind = kind.getSuperclass()
    raise AttributeError(f"no field {_RULES}")
