"""SQL to the letter: Spark's parser without its variables, and what a parsed plan is.

Spark replaces `${env:HOME}`, `${system:…}` and `${some.setting}` in every text that it parses. What a user writes in
`spark.sql` is meant so, and Spark replaces it where it comes in. Everything after that, names and
literals of a table's metadata, conditions of verbs, queries of views, is parsed as it stands: a table's text never
becomes the reader's environment.

`find_refused` tells what makes a plan more than a query, before names are resolved and after. A test holds every other
module of `frazil.spark` to these functions: `F.expr` replaces variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from frazil.errors import UnsupportedError
from frazil.spark.jvm.private_names import compiled, is_classic

_MARK = "${"
_SUBSTITUTE = "spark.sql.variable.substitute"
_CLASS_NAME = "ExactSql"

_SOURCE = r"""
import java.util.*;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;

public class ExactSql implements java.util.function.Function {
  // One entry for all calls: [verb, ...].
  public Object apply(Object call) {
    final List parts = (List) call;
    final String verb = (String) parts.get(0);
    if (verb.equals("refused")) return refused(parts.get(1), ((Boolean) parts.get(2)).booleanValue());
    return org.apache.spark.sql.internal.SQLConf$.MODULE$.withExistingConf(
        (SQLConf) parts.get(1),
        new scala.runtime.AbstractFunction0() {
          public Object apply() {
            try {
              return run(verb, parts);
            } catch (Exception e) {
              // Spark's own errors, some of them checked, go on as they are.
              org.apache.spark.unsafe.Platform.throwException(e);
              return null;
            }
          }
        });
  }

  static Object run(String verb, List parts) throws Exception {
    ParserInterface parser = (ParserInterface) parts.get(2);
    String text = (String) parts.get(3);
    if (verb.equals("parsePlan")) return parser.parsePlan(text);
    if (verb.equals("parseQuery")) return parser.parseQuery(text);
    if (verb.equals("parseExpression")) return parser.parseExpression(text);
    if (verb.equals("parseTableIdentifier")) return parser.parseTableIdentifier(text);
    return parser.parseMultipartIdentifier(text);
  }

  private static final Set COMMANDS = new HashSet(Arrays.asList((Object[]) new String[] {
      "Command", "ParsedStatement", "CompoundPlanStatement", "CompoundBody", "SingleStatement", "InsertIntoDir",
      "UnresolvedExecuteImmediate", "ExecuteImmediateQuery", "ExecuteImmediateCommands"}));
  private static final Set CODE = new HashSet(Arrays.asList((Object[]) new String[] {
      "ScriptTransformation", "CallMethodViaReflection", "TryReflect",
      // Names that are known when the query is analysed, which may be those of functions and files.
      "PlanWithUnresolvedIdentifier", "ExpressionWithUnresolvedIdentifier"}));
  private static final Set FUNCTIONS = new HashSet(Arrays.asList((Object[]) new String[] {
      "reflect", "java_method", "try_reflect", "from_protobuf", "to_protobuf"}));

  // The first node of a plan that makes it more than a query: "command <kind>" or "code <kind>"; null where none does.
  private static String refused(Object o, boolean isTrusted) {
    if (o instanceof TreeNode) {
      for (Class one = o.getClass(); one != null; one = one.getSuperclass())
        if (isA(one, COMMANDS)) return "command " + ((TreeNode) o).nodeName();
      if (!isTrusted && CODE.contains(o.getClass().getSimpleName())) return "code " + ((TreeNode) o).nodeName();
      if (!isTrusted && o instanceof LogicalRelation && isOfFiles((LogicalRelation) o))
        return "code " + ((HadoopFsRelation) ((LogicalRelation) o).relation()).location().rootPaths().mkString(" ");
      if (!isTrusted && o instanceof UnresolvedFunction) {
        String name = ((String) ((UnresolvedFunction) o).nameParts().last()).toLowerCase(Locale.ROOT);
        if (FUNCTIONS.contains(name)) return "code " + name;
      }
    }
    scala.collection.Iterator parts = null;
    if (o instanceof scala.collection.Iterable) parts = ((scala.collection.Iterable) o).iterator();
    else if (o instanceof TreeNode || o instanceof scala.Some || o instanceof scala.Tuple2 || o instanceof scala.Tuple3)
      parts = ((scala.Product) o).productIterator();
    while (parts != null && parts.hasNext()) {
      String found = refused(parts.next(), isTrusted);
      if (found != null) return found;
    }
    return null;
  }

  // Whether a relation is of files that a query names by their path: no table has them.
  private static boolean isOfFiles(LogicalRelation o) {
    return o.relation() instanceof HadoopFsRelation && o.catalogTable().isEmpty();
  }

  private static boolean isA(Class kind, Set names) {
    if (names.contains(kind.getSimpleName())) return true;
    Class[] above = kind.getInterfaces();
    for (int i = 0; i < above.length; i++) if (isA(above[i], names)) return true;
    return false;
  }
}
"""


def parse_exactly(spark: SparkSession, verb: str, text: str) -> Any:
    """Parse a text as it stands; `verb` is what Spark's parser calls it: `parsePlan`, `parseExpression`."""
    parser = spark._jsparkSession.sessionState().sqlParser()
    if _MARK not in text:
        return getattr(parser, verb)(text)
    return _call(spark, verb, _settings(spark, {_SUBSTITUTE: "false"}), parser, text)


def expression(text: str) -> Column:
    """Return the column that a text stands for, as it stands."""
    if _MARK not in text:
        return F.expr(text)
    spark = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if spark is None or not is_classic(spark):
        raise UnsupportedError(
            f"Cannot use {text!r} on Spark Connect: Spark replaces what stands between ${{ and }} before it reads it",
            hint="Rename the column, or use another value.",
        )
    parsed = parse_exactly(spark, "parseExpression", text)
    return Column(spark._jvm.org.apache.spark.sql.classic.ExpressionUtils.column(parsed))  # type: ignore[union-attr]


def select_exactly(frame: DataFrame, texts: Sequence[str]) -> DataFrame:
    """Return the columns that texts stand for; one call to the JVM for all of them, where none has a variable in it."""
    if any(_MARK in one for one in texts):
        return frame.select(*map(expression, texts))
    return frame.selectExpr(*texts)


def find_refused(spark: SparkSession, plan: Any, *, is_trusted: bool = True) -> tuple[str, str] | None:
    """Return what makes a plan more than a query, None where nothing: `command` or `code`, and Spark's name for it.

    Code is what runs programs or calls Java, in a plan that is not trusted.
    """
    found = _call(spark, "refused", plan, is_trusted)
    if found is None:
        return None
    kind, _, name = str(found).partition(" ")
    return kind, name


def _settings(spark: SparkSession, changed: dict[str, str]) -> Any:
    """Return the session's settings with some others; the session keeps its own."""
    made = spark._jsparkSession.sessionState().conf().clone()
    for name, value in changed.items():
        made.setConfString(name, value)
    return made


def _call(spark: SparkSession, *parts: Any) -> Any:
    given = spark._jvm.java.util.ArrayList()  # type: ignore[union-attr]
    for one in parts:
        given.add(one)
    return compiled(spark, _CLASS_NAME, _SOURCE).apply(given)
