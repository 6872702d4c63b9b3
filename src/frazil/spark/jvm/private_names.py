"""What reading needs of Spark's internals, which Spark does not promise to keep, gathered here.

Three things that PySpark does not offer: to make a relation over a file index of our own, to make a DataFrame of that
relation, and to be called back by Spark while it plans. All are there in Spark 4.0 to 4.3. Where a later Spark moves
one of them, the error says so. Other internals are in `jvm_write.py` and in `java/`; PySpark's handles of the JVM
(`_jvm`, `_jdf`) are used where they are needed.
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
from frazil.spark.jvm.java_classes import define_classes
from frazil.spark.own_columns import F, OwnColumn
from frazil.spark.types import without_metadata

Planner = Callable[[str], bytes]
"""Given Spark's pushed filters as JSON, an Arrow stream: path, size, rows, then the constants of each file."""

_WORD_SIZE = 64
_MISSING = re.compile(r"(?:Method ([\w$]+)\(.* does not exist|([\w.$]+) does not exist in the JVM|no field (\w+))")
_lock = threading.Lock()
_sessions: WeakKeyDictionary[SparkSession, dict[tuple[tuple[str, str], ...], tuple[Any, Any]]] = WeakKeyDictionary()
_planning: WeakSet[SparkSession] = WeakSet()
"""Sessions that plan scans of whole files, and show their plain names."""
_reached: WeakKeyDictionary[Any, dict[tuple[str, ...], bool]] = WeakKeyDictionary()


def is_classic(spark: SparkSession) -> bool:
    """Return whether the session has a JVM in reach; Spark Connect has none."""
    return hasattr(spark, "_jsparkSession")


class Callback:
    """A function of Python as Java sees it, and as whoever else reaches the port that Java calls: one method, no state.

    Py4J calls any attribute that it is told to. A request begins with a word that only Java's side knows. The function
    gets what follows it, and None where the word is not there.
    """

    __slots__ = ("_apply", "_java")

    def __new__(cls, function: Callable[..., Any] | None = None, word: str = "", interface: str = "") -> Callback:
        """Make a callback that implements an interface of Java's; without a function and a word there is none."""
        if not callable(function) or len(word) != _WORD_SIZE:
            raise TypeError("Cannot make a callback without its secret")
        made = object.__new__(cls)
        object.__setattr__(made, "_apply", lambda request, *more: function(_asked(request, word), *more))
        object.__setattr__(made, "_java", SimpleNamespace(implements=(interface,)))
        return made

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            return object.__getattribute__(self, name)
        if name in ("apply", "Java"):
            return object.__getattribute__(self, f"_{name.lower()}")
        raise AttributeError(name)


def _asked(request: object, word: str) -> str | None:
    if not isinstance(request, str) or not hmac.compare_digest(request[:_WORD_SIZE].encode(), word.encode()):
        return None
    return request[_WORD_SIZE:]


def new_word() -> str:
    """Return a word that nobody can guess."""
    return secrets.token_hex(_WORD_SIZE // 2)


def planning_callback(planner: Planner, word: str) -> Callback:
    """Return a planner for Java. An error is given back as text, which Java raises with its whole message."""

    def plan(pushed: str | None) -> Any:
        if pushed is None:
            return "Cannot plan the files of a query: the question is none of Spark's"
        try:
            return planner(pushed)
        except FrazilError as error:
            return str(error)
        except Exception as error:
            # Nothing may be raised into Py4J: it would lose the message.
            return f"Cannot plan the files of a query: {type(error).__name__}: {error}"

    return Callback(plan, word, "java.util.function.Function")


def start_callbacks(context: SparkContext) -> None:
    """Let Java call Python, as PySpark does, with a token that every connection must bring.

    PySpark starts the same server without one. Where it runs already, or Py4J has changed, words have to do.
    """
    gateway: Any = context._gateway
    with _lock:
        has_server = gateway.__dict__.get("_callback_server") is not None
        parameters = gateway.callback_server_parameters
        token = None if has_server or parameters.auth_token is not None else secrets.token_hex(32)
        parameters.auth_token = token or parameters.auth_token
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
        if token is not None and not _tell_java(gateway, token):
            parameters.auth_token = None


def let_interruption_through() -> None:
    """Let ctrl-C leave a call of Java's that asks on the thread which waits for it.

    Py4J ends the connection of a call that is interrupted, and before it all that are free. Where questions were asked
    on it meanwhile it is among those: it is ended twice, and the second time raises an error of Py4J's instead.
    """
    gateway: Any = SparkContext._gateway
    with suppress(AttributeError, ValueError):
        client = gateway._gateway_client
        client.deque.remove(client.get_thread_connection())


def _tell_java(gateway: Any, token: str) -> bool:
    """Set the authentication token of the JVM's client again: Py4J drops it when the port is set."""
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
    """Return a lazy DataFrame over files that `planner` names while Spark plans a query.

    `data` has the field ids by which files are read. Without `shows_ids` they stay there: the frame has none, nor has
    what is made of it, since Spark would write them into files that are no table's.
    `key` tells relations apart: equal keys are one relation to Spark, which may then read it once for two uses.
    `table`, `size_bytes`, `rows` and `columns` are what Spark's plans show and its optimiser knows
    (`relation_stats.py`).
    `session` is where Spark looks up, for this relation alone, settings that are no options (`session_with`).
    `select` are expressions with names, in place of all columns. With `streams` the rows are those of a stream.
    """
    if not is_classic(spark):
        raise UnsupportedError(
            "Cannot make a lazy DataFrame: Spark Connect has no JVM in reach",
            hint='Use spark.read.format("iceberg"), which plans when the query is built.',
        )
    context = spark.sparkContext
    own_session = spark._jsparkSession
    word = new_word()
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
        raise moved(f"read {table}", error) from error
    return DataFrame(frame, spark)


def moved(what: str, error: Exception) -> UnsupportedError:
    """Return the error for a part of Spark that is not where it was; `what` goes after `Cannot`."""
    return UnsupportedError(
        f"Cannot {what} with Spark {pyspark.__version__}: {_missing_name(error)} is not where it was",
        hint="Use a newer frazil, or Spark 4.0 to 4.3.",
        cause=str(error).partition("\n")[0],
    )


def _missing_name(error: Exception) -> str:
    """Return what Spark lacks; of a class, which Py4J takes for a package, only the line that asks knows the name."""
    found = _MISSING.search(str(error))
    if found is not None:
        return next(name for name in found.groups() if name is not None)
    steps = traceback.extract_tb(error.__traceback__)
    if isinstance(error, TypeError) and "JavaPackage" in str(error) and steps and steps[-1].lineno is not None:
        asked = linecache.getline(steps[-1].filename, steps[-1].lineno)[steps[-1].colno or 0 :]
        return asked.partition("(")[0].strip()
    return "a part that frazil uses"


def _plan_scans(spark: SparkSession) -> None:
    """Let a session plan scans of whole files (`ReadToEnd`), and show the plain names of files (`PlainFileNames`)."""
    if spark in _planning:
        return
    package = define_classes(spark.sparkContext)
    with _lock:
        if spark not in _planning:
            _planning.add(spark)
            _change_rules(spark, "extraStrategies", "ReadToEnd", package.ReadToEnd())
            _change_rules(spark, "extraOptimizations", "PlainFileNames", package.PlainFileNames())


def prune_before_joins(spark: SparkSession) -> Callable[[], None]:
    """Let Spark's optimiser plan filtered relations before it chooses joins; return what undoes it.

    With it goes what plans scans of whole files. A frame that is still there asks for the sizes of its files.
    """
    rule = define_classes(spark.sparkContext).PruneBeforeJoins()
    _change_rules(spark, "extraOptimizations", "PruneBeforeJoins", rule)

    def undo() -> None:
        with _lock:
            _planning.discard(spark)
            for kind, name in (
                ("extraOptimizations", "PruneBeforeJoins"),
                ("extraOptimizations", "PlainFileNames"),
                ("extraStrategies", "ReadToEnd"),
            ):
                _change_rules(spark, kind, name, None)

    return undo


def _change_rules(spark: SparkSession, kind: str, name: str, rule: Any) -> None:
    """Put a rule of ours into those that a session has beside Spark's, once; None takes it out."""
    methods = spark._jsparkSession.experimental()
    lists = spark.sparkContext._jvm.scala.jdk.javaapi.CollectionConverters  # type: ignore[union-attr]
    kept = spark.sparkContext._jvm.java.util.ArrayList()  # type: ignore[union-attr]
    for one in lists.asJava(getattr(methods, kind)()):
        if one.getClass().getName() != f"frazil.{name}":
            kept.add(one)
    if rule is not None:
        kept.add(rule)
    getattr(methods, f"{kind}_$eq")(lists.asScala(kept).toList())


def row_index_name(spark: SparkSession) -> str:
    """Return the name under which Spark's Parquet reader gives the position of each row in its file.

    As a column of the relation it costs eight bytes a row. As `_metadata.row_index` it is part of a struct, which Spark
    makes for each row where an expression uses it more than once.
    """
    try:
        packages = spark.sparkContext._jvm.org.apache.spark.sql.execution.datasources  # type: ignore[union-attr]
        return str(packages.parquet.ParquetFileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME())
    except (TypeError, AttributeError) as error:
        raise moved("read the positions of rows", error) from error


def bit_at(spark: SparkSession, bits: str, position_sql: str) -> Column:
    """Return whether a bit of a binary column is set; `bits` and `at` are SQL. Beyond the end, none is.

    Spark's own functions copy a byte for each row to look at it. A method that every Spark has on its class path reads
    two bytes where they are: bit `n` is bit `n % 16` of the `n / 16`th number of 16 bits, high byte first.
    """
    jvm: Any = spark.sparkContext._jvm
    parser = spark._jsparkSession.sessionState().sqlParser()
    given = jvm.java.util.ArrayList()
    given.add(parser.parseExpression(bits))
    given.add(parser.parseExpression(f"shiftleft(cast(shiftright({position_sql}, 4) as int), 1)"))
    lists = jvm.scala.jdk.javaapi.CollectionConverters
    try:
        invoke = jvm.org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke(
            jvm.java.lang.Class.forName("org.apache.hadoop.io.WritableComparator"),
            to_java(jvm, st.IntegerType()),
            "readUnsignedShort",
            lists.asScala(given).toList(),
            lists.asScala(jvm.java.util.ArrayList()).toList(),
            True,
            False,
            True,
            jvm.scala.Option.empty(),
        )
        word = OwnColumn(scala_object(jvm.org.apache.spark.sql.classic, "ExpressionUtils").column(invoke))
    except (TypeError, AttributeError) as error:
        raise moved("read deleted rows", error) from error
    is_set = F.call_function("shiftright", word, F.expr(f"cast({position_sql} & 15 as int)")).bitwiseAND(
        F.lit(1)
    ) == F.lit(1)
    return F.when(F.expr(f"shiftright({position_sql}, 3) < octet_length({bits})"), is_set).otherwise(F.lit(False))


def name_shown_forms(frame: DataFrame, forms: Mapping[int, str]) -> None:
    """Tell a frame's relations what users see of some columns, so that filters on that can be understood.

    `forms` has, by the index of a column in the frame, the JSON that stands for it in what a planner is asked.
    """
    plan: Any = frame._jdf.queryExecution().optimizedPlan()
    if plan.getClass().getSimpleName() != "Project":
        return
    known = frame.sparkSession.sparkContext._jvm.java.util.HashMap()  # type: ignore[union-attr]
    columns = plan.projectList()
    for position, form in forms.items():
        column = columns.apply(position)
        if column.getClass().getSimpleName() != "Alias":
            continue
        column = column.child()
        known.put(column.sql(), form)
        if column.getClass().getSimpleName() == "CaseWhen":
            # What is left of it in a filter, beside the test for null.
            known.put(column.branches().apply(0)._2().sql(), form)
    stack = [plan]
    while stack:
        node = stack.pop()
        if node.getClass().getSimpleName() == "LogicalRelation":
            files = node.relation().location()
            if files.getClass().getName() == "frazil.PlannedFiles":
                files.setShown(known)
        children = node.children()
        stack += [children.apply(index) for index in range(children.size())]


def session_with(spark: SparkSession, settings: Mapping[str, str]) -> Any:
    """Return Spark's own session like another one but for some settings; the other one stays as it is.

    Made once for each state of the other session's settings, and again when those have changed.
    """
    if not is_classic(spark):
        return None
    session = spark._jsparkSession
    has_settings = define_classes(spark.sparkContext).PlannedRelation.hasSettings
    with _lock:
        known = _sessions.setdefault(spark, {})
        found = known.get(tuple(sorted(settings.items())))
        if found is not None and has_settings(session, found[0]):
            return found[1]
        current = session.sessionState().conf().getAllConfs()
        made = session.cloneSession()
        for name, value in settings.items():
            made.conf().set(name, value)
        known[tuple(sorted(settings.items()))] = (current, made)
        return made


def can_open(spark: SparkSession, options: Mapping[str, str], path: str) -> bool:
    """Return whether Spark has a file system for a path; asked once for each scheme and host of a context."""
    if not is_classic(spark):
        return True
    context = spark.sparkContext
    root = path.split("/", 3)[:3] if "://" in path else path.partition(":/")[:1]
    known = _reached.setdefault(context, {})
    key = (*root, *sorted(name for name in options if name.endswith(".impl")))
    found = known.get(key)
    if found is None:
        jvm: Any = context._jvm
        settings = context._jsc.hadoopConfiguration()
        if options:
            settings = jvm.org.apache.hadoop.conf.Configuration(settings)
            for name, value in options.items():
                settings.set(name, value)
        try:
            opened = jvm.org.apache.hadoop.fs.Path(path if ":/" in path else f"file://{path}").getFileSystem(settings)
            if options:
                # It is kept by nobody.
                opened.close()
            found = True
        except Py4JJavaError:
            found = False
        known[key] = found
    return found


def scala_object(package: Any, name: str) -> Any:
    """Return a Scala object."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


def to_java(jvm: Any, schema: st.DataType) -> Any:
    """Return a type as Spark's own."""
    return jvm.org.apache.spark.sql.types.DataType.fromJson(json.dumps(schema.jsonValue()))
