"""Spark internals that reading uses. Spark may change them at any time.

PySpark does not offer three things: a relation over a custom file index, a DataFrame of that relation, and callbacks
while Spark plans. All of them exist in Spark 4.0 to 4.3; if a later version lacks one, the error names it. Other
internals are used by `jvm_write.py` and by `java/`; PySpark's own handles of the JVM (`_jvm`, `_jdf`) are used
anywhere.
"""

from __future__ import annotations

import hmac
import json
import linecache
import re
import secrets
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import pyspark
import pyspark.sql.types as st
from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import Column, DataFrame, SparkSession

from frazil.errors import FrazilError, UnsupportedError
from frazil.spark.jvm.java_classes import define_classes, full_name
from frazil.spark.own_columns import F, OwnColumn
from frazil.spark.types import without_metadata

Planner = Callable[[str], bytes]
"""From Spark's pushed filters as JSON to an Arrow stream of files: path, size, rows, then the constants of each."""

_SECRET_SIZE = 64
_MISSING = re.compile(
    r"(?:Method ([\w$]+)\(.* does not exist|(?<![\w.$])([\w.$]+) does not exist in the JVM|no field (\w+))"
)
_lock = threading.Lock()
_sessions: WeakKeyDictionary[SparkSession, dict[tuple[tuple[str, str], ...], tuple[Any, Any]]] = WeakKeyDictionary()
_sessions_with_rules: WeakSet[SparkSession] = WeakSet()
"""Sessions with the rules of `_plan_scans`."""
_can_open: WeakKeyDictionary[Any, dict[tuple[str, ...], bool]] = WeakKeyDictionary()


def is_classic(spark: SparkSession) -> bool:
    """Return whether a session has direct access to a JVM, unlike Spark Connect."""
    return hasattr(spark, "_jsparkSession")


class Callback:
    """A Python function for Java to call. It exposes one method and no state, since others may reach Py4J's port.

    Py4J calls any attribute that a request names. A request begins with a secret that only the Java side knows. The
    function receives the rest of the request, or None if the secret is wrong.
    """

    __slots__ = ("_apply", "_java")

    def __new__(cls, function: Callable[..., Any] | None = None, word: str = "", interface: str = "") -> Callback:
        """Create a callback that implements a Java interface; the function and the secret are required."""
        if not callable(function) or len(word) != _SECRET_SIZE:
            raise TypeError("Cannot create a callback without its secret")
        callback = object.__new__(cls)
        object.__setattr__(callback, "_apply", lambda request, *more: function(_without_secret(request, word), *more))
        object.__setattr__(callback, "_java", SimpleNamespace(implements=(interface,)))
        return callback

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            return object.__getattribute__(self, name)
        if name in ("apply", "Java"):
            return object.__getattribute__(self, f"_{name.lower()}")
        raise AttributeError(name)


def _without_secret(request: object, word: str) -> str | None:
    if not isinstance(request, str) or not hmac.compare_digest(request[:_SECRET_SIZE].encode(), word.encode()):
        return None
    return request[_SECRET_SIZE:]


def new_secret() -> str:
    """Return a random secret."""
    return secrets.token_hex(_SECRET_SIZE // 2)


def planning_callback(planner: Planner, word: str) -> Callback:
    """Return a callback that plans files; errors are returned as text, which Java raises with the whole message."""

    def plan(pushed: str | None) -> Any:
        if pushed is None:
            return "Cannot plan the files of a query: the request has no valid secret"
        try:
            return planner(pushed)
        except FrazilError as error:
            return str(error)
        except Exception as error:
            # Nothing may be raised into Py4J, which would lose the message.
            return f"Cannot plan the files of a query: {type(error).__name__}: {error}"

    return Callback(plan, word, "java.util.function.Function")


def start_callbacks(context: SparkContext) -> None:
    """Start Py4J's callback server, with a token that authenticates every connection.

    PySpark starts the same server without a token. If it is running already, or Py4J has changed, only the secrets of
    callbacks protect it.
    """
    gateway: Any = context._gateway
    with _lock:
        has_server = gateway.__dict__.get("_callback_server") is not None
        parameters = gateway.callback_server_parameters
        token = None if has_server or parameters.auth_token is not None else secrets.token_hex(32)
        parameters.auth_token = token or parameters.auth_token
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
        if token is not None and not _set_token(gateway, token):
            parameters.auth_token = None


def let_interruption_through() -> None:
    """Prevent a Py4J error from replacing the KeyboardInterrupt of a call to Java during which Java called Python.

    Py4J closes the connection of an interrupted call, after all free ones. If Java called back on the connection, it is
    also listed as free, and closing it twice raises a Py4J error.
    """
    gateway: Any = SparkContext._gateway
    with suppress(AttributeError, ValueError):
        client = gateway._gateway_client
        client.deque.remove(client.get_thread_connection())


def _set_token(gateway: Any, token: str) -> bool:
    """Set the token of the JVM's callback client, which Py4J drops when the port is set; return whether that worked."""
    try:
        client = JavaObject("GATEWAY_SERVER", gateway._gateway_client).getCallbackClient()
        field = gateway.jvm.java.lang.Class.forName("py4j.CallbackClient").getDeclaredField("authToken")
        field.setAccessible(True)
        field.set(client, token)
    except (Py4JError, TypeError):
        return False
    return True


def planned_relation(
    spark: SparkSession,
    planner: Planner,
    *,
    key: str,
    root: str,
    data: st.StructType,
    shows_ids: bool = True,
    constants: st.StructType,
    table: str,
    size_bytes: int,
    rows: int,
    columns: str = "",
    file_format: str,
    options: Mapping[str, str],
    session: Any = None,
    select: Sequence[str] | None = None,
    streams: bool = False,
) -> DataFrame:
    """Return a lazy DataFrame over files that `planner` lists while Spark plans a query.

    `data` has the field ids by which files are read. Without `shows_ids`, the frame's own schema has no ids, since
    Spark would write them into files that do not belong to a table.
    `key` identifies the relation: Spark treats relations of equal keys as one, and may read it once for two uses.
    `table`, `size_bytes`, `rows` and `columns` appear in Spark's plans and inform its optimiser (`relation_stats.py`).
    `session` provides settings for this relation alone that Spark does not accept as options (`session_with`).
    `select` are named expressions to select instead of all columns. With `streams`, the relation is a streaming one.
    """
    if not is_classic(spark):
        raise UnsupportedError(
            "Cannot make a lazy DataFrame: Spark Connect has no JVM in reach",
            hint='Use spark.read.format("iceberg"), which plans when the query is built.',
        )
    context = spark.sparkContext
    own_session = spark._jsparkSession
    word = new_secret()
    facts = {
        "word": word,
        "key": key,
        "root": root,
        "constants": constants.json(),
        "data": (data if shows_ids else without_metadata(data)).json(),
        "known": data.json(),
        "table": table,
        "size_bytes": str(size_bytes),
        "rows": str(rows),
        "columns": columns,
        "format": file_format,
        "options": dict(options),
        "select": select,
        "streams": streams,
    }
    try:
        start_callbacks(context)
        _plan_scans(spark)
        frame = define_classes(context).PlannedRelation.rows(
            own_session,
            own_session if session is None else session,
            planning_callback(planner, word),
            json.dumps(facts),
        )
    except (TypeError, AttributeError) as error:
        raise incompatible_spark_error(f"read {table}", error) from error
    return DataFrame(frame, spark)


def incompatible_spark_error(what: str, error: Exception) -> UnsupportedError:
    """Return the error for a Spark internal that this version lacks; `what` follows `Cannot` in the message."""
    return UnsupportedError(
        f"Cannot {what} with Spark {pyspark.__version__}: it lacks {_missing_name(error)}",
        hint="Use a newer frazil, or Spark 4.0 to 4.3.",
        cause=str(error).partition("\n")[0],
    )


def _missing_name(error: Exception) -> str:
    """Return the name of the missing internal; for a class, which Py4J takes for a package, from the source line."""
    match = _MISSING.search(str(error))
    if match is not None:
        return next(name for name in match.groups() if name is not None)
    steps = traceback.extract_tb(error.__traceback__)
    if isinstance(error, TypeError) and "JavaPackage" in str(error) and steps and steps[-1].lineno is not None:
        source = linecache.getline(steps[-1].filename, steps[-1].lineno)[steps[-1].colno or 0 :]
        return source.partition("(")[0].strip()
    return "a part that frazil uses"


def _plan_scans(spark: SparkSession) -> None:
    """Add the rules that plan scans of whole files (`ReadToEnd`) and show unescaped file names (`PlainFileNames`)."""
    if spark in _sessions_with_rules:
        return
    package = define_classes(spark.sparkContext)
    with _lock:
        if spark not in _sessions_with_rules:
            _sessions_with_rules.add(spark)
            _change_rules(spark, "extraStrategies", "ReadToEnd", package.ReadToEnd())
            _change_rules(spark, "extraOptimizations", "PlainFileNames", package.PlainFileNames())


def prune_before_joins(spark: SparkSession) -> Callable[[], None]:
    """Make Spark's optimiser plan filtered relations before it chooses joins; return a function to undo it.

    Undoing also removes the rules that plan scans of whole files; remaining frames then look up file sizes themselves.
    """
    rule = define_classes(spark.sparkContext).PruneBeforeJoins()
    _change_rules(spark, "extraOptimizations", "PruneBeforeJoins", rule)

    def undo() -> None:
        with _lock:
            _sessions_with_rules.discard(spark)
            for kind, name in (
                ("extraOptimizations", "PruneBeforeJoins"),
                ("extraOptimizations", "PlainFileNames"),
                ("extraStrategies", "ReadToEnd"),
            ):
                _change_rules(spark, kind, name, None)

    return undo


def _change_rules(spark: SparkSession, kind: str, name: str, rule: Any) -> None:
    """Add or replace one of frazil's rules among a session's extra rules; None removes it."""
    methods = spark._jsparkSession.experimental()
    lists = spark.sparkContext._jvm.scala.jdk.javaapi.CollectionConverters  # type: ignore[union-attr]
    rules = spark.sparkContext._jvm.java.util.ArrayList()  # type: ignore[union-attr]
    for one in lists.asJava(getattr(methods, kind)()):
        if one.getClass().getName() != full_name(name):
            rules.add(one)
    if rule is not None:
        rules.add(rule)
    getattr(methods, f"{kind}_$eq")(lists.asScala(rules).toList())


def row_index_name(spark: SparkSession) -> str:
    """Return the name of the column in which Spark's Parquet reader returns the position of each row in its file.

    As a column of the relation it costs eight bytes per row. `_metadata.row_index` is part of a struct, which Spark
    creates for each row if an expression uses it more than once.
    """
    try:
        packages = spark.sparkContext._jvm.org.apache.spark.sql.execution.datasources  # type: ignore[union-attr]
        return str(packages.parquet.ParquetFileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME())
    except (TypeError, AttributeError) as error:
        raise incompatible_spark_error("read the positions of rows", error) from error


def bit_at(spark: SparkSession, bits: str, position_sql: str) -> Column:
    """Return whether a bit of a binary column is set, False beyond its end; the column and the position are SQL.

    Spark's own functions copy a byte for each row. A Hadoop method on Spark's class path reads two bytes in place: bit
    `n` is bit `n % 16` of the `n / 16`th 16-bit number, high byte first.
    """
    jvm: Any = spark.sparkContext._jvm
    parser = spark._jsparkSession.sessionState().sqlParser()
    arguments = jvm.java.util.ArrayList()
    arguments.add(parser.parseExpression(bits))
    arguments.add(parser.parseExpression(f"shiftleft(cast(shiftright({position_sql}, 4) as int), 1)"))
    lists = jvm.scala.jdk.javaapi.CollectionConverters
    try:
        invoke = jvm.org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke(
            jvm.java.lang.Class.forName("org.apache.hadoop.io.WritableComparator"),
            to_java(jvm, st.IntegerType()),
            "readUnsignedShort",
            lists.asScala(arguments).toList(),
            lists.asScala(jvm.java.util.ArrayList()).toList(),
            True,
            False,
            True,
            jvm.scala.Option.empty(),
        )
        word = OwnColumn(scala_object(jvm.org.apache.spark.sql.classic, "ExpressionUtils").column(invoke))
    except (TypeError, AttributeError) as error:
        raise incompatible_spark_error("read deleted rows", error) from error
    is_set = F.call_function("shiftright", word, F.expr(f"cast({position_sql} & 15 as int)")).bitwiseAND(
        F.lit(1)
    ) == F.lit(1)
    return F.when(F.expr(f"shiftright({position_sql}, 3) < octet_length({bits})"), is_set).otherwise(F.lit(False))


def register_shown_forms(frame: DataFrame, forms: Mapping[int, str]) -> None:
    """Register shown forms of columns with a frame's relations, so that filters on those forms can prune.

    `forms` maps the index of a column in the frame to the JSON that represents it in requests to the planner.
    """
    plan: Any = frame._jdf.queryExecution().optimizedPlan()
    if plan.getClass().getSimpleName() != "Project":
        return
    forms_by_sql = frame.sparkSession.sparkContext._jvm.java.util.HashMap()  # type: ignore[union-attr]
    columns = plan.projectList()
    for position, form in forms.items():
        column = columns.apply(position)
        if column.getClass().getSimpleName() != "Alias":
            continue
        column = column.child()
        forms_by_sql.put(column.sql(), form)
        if column.getClass().getSimpleName() == "CaseWhen":
            # The form that remains in a filter beside the null test.
            forms_by_sql.put(column.branches().apply(0)._2().sql(), form)
    stack = [plan]
    while stack:
        node = stack.pop()
        if node.getClass().getSimpleName() == "LogicalRelation":
            files = node.relation().location()
            if files.getClass().getName() == full_name("PlannedFiles"):
                files.setShown(forms_by_sql)
        children = node.children()
        stack += [children.apply(index) for index in range(children.size())]


def session_with(spark: SparkSession, settings: Mapping[str, str]) -> Any:
    """Return a clone of the Java session with some settings changed; None on Spark Connect.

    Clones are cached until the settings of the original session change.
    """
    if not is_classic(spark):
        return None
    session = spark._jsparkSession
    has_settings = define_classes(spark.sparkContext).PlannedRelation.hasSettings
    with _lock:
        clones = _sessions.setdefault(spark, {})
        cached = clones.get(tuple(sorted(settings.items())))
        if cached is not None and has_settings(session, cached[0]):
            return cached[1]
        current = session.sessionState().conf().getAllConfs()
        clone = session.cloneSession()
        for name, value in settings.items():
            clone.conf().set(name, value)
        clones[tuple(sorted(settings.items()))] = (current, clone)
        return clone


def can_open(spark: SparkSession, options: Mapping[str, str], path: str) -> bool:
    """Return whether Spark has a file system for a path; cached per scheme and host of a context."""
    if not is_classic(spark):
        return True
    context = spark.sparkContext
    root = path.split("/", 3)[:3] if "://" in path else path.partition(":/")[:1]
    cached = _can_open.setdefault(context, {})
    key = (*root, *sorted(name for name in options if name.endswith(".impl")))
    is_openable = cached.get(key)
    if is_openable is None:
        jvm: Any = context._jvm
        settings = context._jsc.hadoopConfiguration()
        if options:
            settings = jvm.org.apache.hadoop.conf.Configuration(settings)
            for name, value in options.items():
                settings.set(name, value)
        try:
            opened = jvm.org.apache.hadoop.fs.Path(path if ":/" in path else f"file://{path}").getFileSystem(settings)
            if options:
                # With options, the file system is not cached.
                opened.close()
            is_openable = True
        except Py4JJavaError:
            is_openable = False
        cached[key] = is_openable
    return is_openable


def scala_object(package: Any, name: str) -> Any:
    """Return the instance of a Scala object."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


def to_java(jvm: Any, schema: st.DataType) -> Any:
    """Convert a PySpark type to the JVM's."""
    return jvm.org.apache.spark.sql.types.DataType.fromJson(json.dumps(schema.jsonValue()))
