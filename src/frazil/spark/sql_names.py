"""Which parts of a query are names of tables: Spark's own parser says it, and its plan takes our relations instead.

    text --Spark's parser--> unresolved plan --`UnresolvedNames`--> the names in it, described as JSON
         --the session decides which are ours--> DataFrames for those
         --`replace`--> the same plan with the DataFrames' plans in their places --Spark's analyser--> DataFrame

A table takes its place as `SubqueryAlias(lake.db.t, plan)`, which is what Spark's own resolution makes of a table in a
catalog: columns qualified in any length (`t.id`, `db.t.id`, `lake.db.t.id`) resolve as ever, nothing is registered
in the session, and errors point into the user's own text. Names that a WITH clause defines are not reported.

For expressions, which travel as text (`DELETE ... WHERE id IN (SELECT ...)`), `find_in_expression` gives the places of
the names in the text instead.

The Java is compiled in the driver by the compiler that Spark ships. It walks constructor arguments of plan nodes
(`Product`), so that it needs to know two kinds of nodes only, names and WITH.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql.catalog import CatalogMetadata, Column, Database, Table
from pyspark.sql.types import StructType

from frazil.errors import InvalidRequestError, UnsupportedError
from frazil.spark.exact_sql import expression, find_refused, parse_exactly, substituted
from frazil.spark.jvm import compiled
from frazil.sql.query_text import without_semicolons

_SOURCE = r"""
import java.util.*;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.analysis.RelationTimeTravel;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

public class UnresolvedNames implements java.util.function.Function {
  private Object root;
  private List found = new ArrayList();
  private StringBuilder described = new StringBuilder("[");

  // One entry for all calls: ["find", plan], ["describe"], ["replace", list of replacements or nulls].
  public Object apply(Object call) {
    List parts = (List) call;
    String verb = (String) parts.get(0);
    if (verb.equals("find")) {
      UnresolvedNames names = new UnresolvedNames();
      names.root = parts.get(1);
      names.walk(names.root, new HashSet(), false);
      names.described.append(']');
      return names;
    }
    if (verb.equals("describe")) return described.toString();
    if (verb.equals("types")) {
      StringBuilder out = new StringBuilder("{");
      types(parts.get(1), (String) parts.get(2), out);
      return out.append('}').toString();
    }
    if (verb.equals("node")) return found.get(((Number) parts.get(1)).intValue());
    Map places = new IdentityHashMap();
    List replacements = (List) parts.get(1);
    for (int i = 0; i < found.size(); i++)
      if (replacements.get(i) != null) places.put(found.get(i), replacements.get(i));
    return rewrite(root, places);
  }

  // The types of arguments that were marked: structs whose first field has the mark in its name.
  private static void types(Object o, String mark, StringBuilder out) {
    if (o instanceof CreateNamedStruct && !((CreateNamedStruct) o).children().isEmpty()) {
      CreateNamedStruct node = (CreateNamedStruct) o;
      String name = String.valueOf(((Expression) node.children().apply(0)).toString());
      Expression argument = (Expression) node.children().apply(1);
      if (name.startsWith(mark) && argument.resolved()) {
        if (out.length() > 1) out.append(',');
        out.append('"').append(name.substring(mark.length())).append("\":").append(argument.dataType().json());
      }
    }
    if (o instanceof scala.collection.immutable.Map) return;
    if (o instanceof scala.collection.Iterable) {
      scala.collection.Iterator parts = ((scala.collection.Iterable) o).iterator();
      while (parts.hasNext()) types(parts.next(), mark, out);
    } else if (o instanceof TreeNode || isContainer(o)) {
      scala.collection.Iterator parts = ((scala.Product) o).productIterator();
      while (parts.hasNext()) types(parts.next(), mark, out);
    }
  }

  private static boolean isRelation(Object o) {
    if (o instanceof UnresolvedRelation) return true;
    return o instanceof RelationTimeTravel && ((RelationTimeTravel) o).relation() instanceof UnresolvedRelation;
  }

  private static boolean isContainer(Object o) {
    return o instanceof scala.Some || o instanceof scala.Tuple2 || o instanceof scala.Tuple3;
  }

  private void walk(Object o, Set defined, boolean aliased) {
    if (isRelation(o)) {
      relation(o, defined, aliased);
    } else if (o instanceof UnresolvedWith) {
      UnresolvedWith with = (UnresolvedWith) o;
      Set inner = new HashSet(defined);
      scala.collection.Iterator ctes = with.cteRelations().iterator();
      while (ctes.hasNext()) {
        scala.Product cte = (scala.Product) ctes.next();
        String name = ((String) cte.productElement(0)).toLowerCase();
        if (with.productArity() > 2 && Boolean.TRUE.equals(with.productElement(2))) inner.add(name);
        walk(cte.productElement(1), inner, false);
        inner.add(name);
      }
      walk(with.child(), inner, false);
    } else if (o instanceof scala.collection.Iterable) {
      scala.collection.Iterator parts = ((scala.collection.Iterable) o).iterator();
      while (parts.hasNext()) walk(parts.next(), defined, false);
    } else if (o instanceof TreeNode || isContainer(o)) {
      if (o instanceof UnresolvedFunction) function((UnresolvedFunction) o);
      if (o instanceof SubqueryAlias) alias((SubqueryAlias) o);
      scala.collection.Iterator parts = ((scala.Product) o).productIterator();
      while (parts.hasNext()) walk(parts.next(), defined, o instanceof SubqueryAlias);
    }
  }

  private void relation(Object o, Set defined, boolean aliased) {
    RelationTimeTravel travel = o instanceof RelationTimeTravel ? (RelationTimeTravel) o : null;
    UnresolvedRelation relation = (UnresolvedRelation) (travel == null ? o : travel.relation());
    Seq parts = relation.multipartIdentifier();
    if (parts.size() == 1 && defined.contains(((String) parts.apply(0)).toLowerCase())) return;
    open(o, "relation", parts);
    described.append(",\"is_streaming\":").append(relation.isStreaming());
    described.append(",\"is_aliased\":").append(aliased);
    described.append(",\"options\":{");
    boolean first = true;
    for (Object one : relation.options().asCaseSensitiveMap().entrySet()) {
      if (!first) described.append(',');
      first = false;
      quote((String) ((Map.Entry) one).getKey());
      described.append(':');
      quote((String) ((Map.Entry) one).getValue());
    }
    described.append('}');
    if (travel != null && travel.version().isDefined()) {
      described.append(",\"version\":");
      quote((String) travel.version().get());
    }
    if (travel != null && travel.timestamp().isDefined()) {
      described.append(",\"timestamp\":");
      quote(((Expression) travel.timestamp().get()).sql());
    }
    described.append('}');
  }

  private void function(UnresolvedFunction node) {
    Seq parts = node.nameParts();
    if (parts.size() < 2) return;
    open(node, "function", parts);
    described.append('}');
  }

  private void alias(SubqueryAlias node) {
    List name = new ArrayList();
    name.add(node.alias());
    open(node, "alias", CollectionConverters.asScala(name).toList());
    described.append('}');
  }

  private void open(Object node, String kind, Seq parts) {
    if (!found.isEmpty()) described.append(',');
    found.add(node);
    described.append("{\"kind\":\"").append(kind).append("\",\"parts\":[");
    for (int i = 0; i < parts.size(); i++) {
      if (i > 0) described.append(',');
      quote((String) parts.apply(i));
    }
    described.append(']');
    org.apache.spark.sql.catalyst.trees.Origin origin = ((TreeNode) node).origin();
    if (origin.startIndex().isDefined() && origin.stopIndex().isDefined()) {
      described.append(",\"start\":").append(origin.startIndex().get());
      described.append(",\"stop\":").append(origin.stopIndex().get());
    }
  }

  private void quote(String text) {
    described.append('"');
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '"' || c == '\\') described.append('\\').append(c);
      else if (c < 32) described.append(String.format("\\u%04x", new Object[] {new Integer(c)}));
      else described.append(c);
    }
    described.append('"');
  }

  private static Object rewrite(Object o, Map places) {
    if (places.containsKey(o)) return places.get(o);
    if (o instanceof scala.collection.immutable.Map || o instanceof scala.collection.immutable.Set) return o;
    if (o instanceof scala.collection.immutable.Seq) {
      List parts = new ArrayList();
      boolean changed = false;
      scala.collection.Iterator it = ((scala.collection.Iterable) o).iterator();
      while (it.hasNext()) {
        Object part = it.next();
        Object other = rewrite(part, places);
        changed |= other != part;
        parts.add(other);
      }
      return changed ? CollectionConverters.asScala(parts).toList() : o;
    }
    if (!(o instanceof TreeNode) && !isContainer(o)) return o;
    scala.Product product = (scala.Product) o;
    Object[] parts = new Object[product.productArity()];
    boolean changed = false;
    for (int i = 0; i < parts.length; i++) {
      Object part = product.productElement(i);
      parts[i] = rewrite(part, places);
      changed |= parts[i] != part;
    }
    if (!changed) return o;
    if (o instanceof scala.Some) return scala.Option.apply(parts[0]);
    if (o instanceof scala.Tuple2) return new scala.Tuple2(parts[0], parts[1]);
    if (o instanceof scala.Tuple3) return new scala.Tuple3(parts[0], parts[1], parts[2]);
    return ((TreeNode) o).makeCopy(parts);
  }
}
"""

__all__ = ["CatalogMetadata", "Column", "Database", "Table", "substituted"]


@dataclass(frozen=True, slots=True)
class FoundName:
    """A table's name (`relation`), a function's or an alias in a text, with what the text says about it."""

    kind: str
    parts: tuple[str, ...]
    start: int | None = None
    stop: int | None = None
    """The last character's place."""
    options: Mapping[str, str] | None = None
    version: str | None = None
    timestamp: str | None = None
    """An expression, as Spark writes it."""
    is_streaming: bool = False
    is_aliased: bool = False


class ParsedQuery:
    """A text that Spark has parsed, and the names in it."""

    def __init__(self, spark: SparkSession, plan: Any) -> None:
        self._spark = spark
        self._plan = plan
        self._finder = _call(spark, _finder(spark), "find", plan)
        self.names = [_name(one) for one in json.loads(_call(spark, self._finder, "describe"))]

    def node(self, at: int) -> Any:
        """Return the plan's node of a name."""
        return _call(self._spark, self._finder, "node", at)

    def argument_types(self, replacements: Mapping[int, Any], mark: str) -> dict[str, str]:
        """Return the types, as JSON, of expressions that replacements mark; nothing is checked and nothing runs."""
        analysed = self._spark._jsparkSession.sessionState().analyzer().execute(self._replaced(replacements))
        found: dict[str, Any] = json.loads(_call(self._spark, self._finder, "types", analysed, mark))
        return {at: json.dumps(kind) for at, kind in found.items()}

    def to_frame(self, replacements: Mapping[int, Any], args: Any = None) -> DataFrame:
        """Return the DataFrame of the query with plans or expressions in the places of some names."""
        return frame_of_plan(self._spark, with_parameters(self._spark, self._replaced(replacements), args))

    def find_command(self) -> str | None:
        """Return Spark's name of a command in the text; None where it is a query."""
        found = find_refused(self._spark, self._plan)
        return None if found is None else found[1]

    def find_refused(self, *, is_trusted: bool) -> tuple[str, str] | None:
        """Return what a view may not hold, `command` or `code` with Spark's name for it; None where nothing is."""
        return find_refused(self._spark, self._plan, is_trusted=is_trusted)

    def to_view_frame(self, replacements: Mapping[int, Any], *, is_trusted: bool) -> tuple[DataFrame, Any]:
        """Return a view's DataFrame, and what it may not hold that only showed when names were resolved."""
        frame = self.to_frame(replacements)
        return frame, find_refused(self._spark, frame._jdf.queryExecution().analyzed(), is_trusted=is_trusted)

    def _replaced(self, replacements: Mapping[int, Any]) -> Any:
        if not replacements:
            return self._plan
        plans = _java_list(self._spark, [replacements.get(at) for at in range(len(self.names))])
        return _call(self._spark, self._finder, "replace", plans)


def is_classic(spark: SparkSession) -> bool:
    """Return whether the session has a JVM to ask; Spark Connect has none."""
    return hasattr(spark, "_jsparkSession")


def parse_query(spark: SparkSession, text: str) -> ParsedQuery:
    """Parse a statement with the session's own parser; what it refuses it refuses with its own error."""
    return ParsedQuery(spark, parse_text(spark, "parsePlan", text))


def try_parse_query(spark: SparkSession, text: str) -> ParsedQuery | None:
    """Parse a statement; None where Spark's parser refuses it."""
    try:
        return parse_query(spark, text)
    except (ParseException, Py4JJavaError):
        return None


def parse_view(spark: SparkSession, text: str) -> ParsedQuery:
    """Parse a view's query. What is no query by Spark's grammar has a command in it, or is refused by the parser."""
    try:
        parsed = parse_query(spark, text)
    except Py4JJavaError as error:
        # Errors of statements that belong into scripts are none of those that PySpark knows.
        raise InvalidRequestError(f"Cannot use {text!r} as a view's query: Spark's parser refuses it") from error
    if parsed.find_command() is None:
        parse_text(spark, "parseQuery", without_semicolons(text))
    return parsed


def place_in_text(text: str, name: FoundName) -> tuple[int, int]:
    """Return where a name with its VERSION or TIMESTAMP AS OF starts and ends; Spark tells where that clause is."""
    assert name.start is not None
    assert name.stop is not None
    if name.version is None and name.timestamp is None:
        return name.start, name.stop
    at = len(text[: name.start].rstrip())
    for part in reversed(name.parts):
        quoted = f"`{part.replace('`', '``')}`"
        for spelled in (quoted, part):
            if text[:at].lower().endswith(spelled.lower()):
                at = len(text[: at - len(spelled)].rstrip())
                break
        if text[:at].endswith("."):
            at = len(text[: at - 1].rstrip())
    return at + len(text[at:]) - len(text[at:].lstrip()), name.stop


def find_in_expression(spark: SparkSession, text: str) -> list[FoundName]:
    """Return the names in the subqueries of an expression."""
    return ParsedQuery(spark, parse_text(spark, "parseExpression", text)).names


def aliased_plan(spark: SparkSession, frame: DataFrame, name: Sequence[str]) -> Any:
    """Return a DataFrame's plan under a table's full name, as Spark's own resolution would give it."""
    plan = frame._jdf.queryExecution().analyzed()
    logical = _jvm(spark).org.apache.spark.sql.catalyst.plans.logical
    return logical.SubqueryAlias(alias_identifier(spark, name), plan)


def alias_identifier(spark: SparkSession, name: Sequence[str]) -> Any:
    """Return a table's full name as Spark qualifies columns with it."""
    return _jvm(spark).org.apache.spark.sql.catalyst.AliasIdentifier(name[-1], scala_list(spark, list(name[:-1])))


def frame_of_plan(spark: SparkSession, plan: Any) -> DataFrame:
    """Analyse a plan; a command runs at once, as with `spark.sql`."""
    dataset = getattr(_jvm(spark), "org.apache.spark.sql.classic.Dataset")
    return DataFrame(dataset.ofRows(spark._jsparkSession, plan), spark)


def with_parameters(spark: SparkSession, plan: Any, args: Any) -> Any:
    """Return a plan with values for its `:name` or `?` parameters, as `spark.sql(text, args)` takes them."""
    if not args:
        return plan
    from_python = expression_of
    analysis = _jvm(spark).org.apache.spark.sql.catalyst.analysis
    if isinstance(args, dict):
        names = scala_list(spark, list(args))
        values = scala_list(spark, [from_python(spark, one) for one in args.values()])
        return analysis.NameParameterizedQuery(plan, names, values)
    return analysis.PosParameterizedQuery(plan, scala_list(spark, [from_python(spark, one) for one in args]))


def literal_texts(spark: SparkSession, args: Any) -> Any:
    """Return parameters as expressions in text, as `spark.sql(text, args)` would put them in."""
    if isinstance(args, dict):
        return {name: str(expression_of(spark, value).sql()) for name, value in args.items()}
    return [str(expression_of(spark, value).sql()) for value in args]


def column_text(spark: SparkSession, column: Any) -> str:
    """Return a column expression as text in Spark's words."""
    return str(expression_of(spark, expression(column) if isinstance(column, str) else column).sql())


def term_text(spark: SparkSession, column: Any) -> str:
    """Return what a table is partitioned by, a column or a transform of one, as text: `days(ts)`."""
    return column if isinstance(column, str) else str(expression_of(spark, column).sql())


def alias_of(frame: DataFrame) -> str | None:
    """Return the alias a DataFrame was given last, if it was."""
    plan = frame._jdf.queryExecution().logical()
    return str(plan.alias()) if plan.nodeName() in ("SubqueryAlias", "HiddenColumns") else None


def parse_name(spark: SparkSession, text: str) -> tuple[str, ...] | None:
    """Return the parts of a name; None for what is no name, such as a path."""
    try:
        parts = parse_text(spark, "parseMultipartIdentifier", text)
    except ParseException:
        return None
    return tuple(parts.apply(at) for at in range(parts.size()))


def empty_frame(spark: SparkSession) -> DataFrame:
    """Return a DataFrame without columns and rows, which is what commands answer."""
    return spark.createDataFrame([], StructType([]))


def temporary_view(spark: SparkSession, name: str) -> Any:
    """Return what a temporary view stands for now, to be compared later; None where there is none."""
    found = spark._jsparkSession.sessionState().catalog().getRawTempView(name)
    return found.get() if found.isDefined() else None


def own_catalogs(spark: SparkSession, pattern: str | None) -> list[CatalogMetadata]:
    """Return the catalogs that Spark itself knows."""
    frame = spark._jsparkSession.catalog().listCatalogs()
    found = frame.toLocalIterator()
    known = []
    while found.hasNext():
        one = found.next()
        if pattern is None or fnmatch.fnmatch(one.name(), pattern):
            known.append(CatalogMetadata(one.name(), one.description()))
    return known


def is_temporary_view(spark: SparkSession, name: tuple[str, ...]) -> bool:
    """Return whether a name is a temporary view's."""
    return bool(spark._jsparkSession.sessionState().catalog().isTempView(scala_list(spark, list(name))))


def expression_of(spark: SparkSession, value: Any) -> Any:
    """Return a column, or a value as a literal, as Catalyst's expression."""
    column = value if type(value).__name__ == "Column" else functions.lit(value)
    return spark._jsparkSession.expression(column._jc)


def _name(found: dict[str, Any]) -> FoundName:
    return FoundName(**{**found, "parts": tuple(found["parts"])})


def _jvm(spark: SparkSession) -> Any:
    if not is_classic(spark):
        raise UnsupportedError(
            "Cannot look into a query on Spark Connect: its parser runs elsewhere",
            hint="Use table.scan(...).to_spark(spark) and the verbs of tables.",
        )
    return spark._jvm


def parse_text(spark: SparkSession, verb: str, text: str) -> Any:
    """Parse a text as it stands with the session's own parser (`exact_sql.py`)."""
    _jvm(spark)
    return parse_exactly(spark, verb, text)


def _finder(spark: SparkSession) -> Any:
    """Return the compiled class's first instance."""
    _jvm(spark)
    return compiled(spark, "UnresolvedNames", _SOURCE)


def _call(spark: SparkSession, target: Any, *parts: Any) -> Any:
    return target.apply(_java_list(spark, list(parts)))


def _java_list(spark: SparkSession, items: list[Any]) -> Any:
    made = _jvm(spark).java.util.ArrayList()
    for one in items:
        made.add(one)
    return made


def scala_list(spark: SparkSession, items: list[Any]) -> Any:
    """Return a Scala list."""
    return _jvm(spark).scala.jdk.javaapi.CollectionConverters.asScala(_java_list(spark, items)).toList()
