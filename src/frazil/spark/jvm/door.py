"""Lakes inside Spark: a catalog, rules of the analyser and a parser, which ask Python (`spark/java`).

    lake.db.t   --Spark's analyser-->  LakeCatalog.loadTable  --Door-->  Python: columns, properties
                --LakeRelations-->     frazil's relation in its place
    INSERT …    --Spark's analyser-->  resolved, converted, checked
                --LakeWrites-->        a command, which Python runs with the query as a DataFrame
    CALL …, CREATE BRANCH …            --LakeParser-->  a command, which Python runs

A session that runs already gets the rules by its analyser's fields; sessions that come later by the extensions and
settings that Spark has for it. Nothing of PySpark is replaced.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from frazil.commit.commit_loop import checking_before_commits
from frazil.errors import (
    AlreadyExistsError,
    CancelledError,
    CommitError,
    CommitStateUnknownError,
    FieldNotFoundError,
    FrazilError,
    InvalidRequestError,
    NamespaceAlreadyExistsError,
    NamespaceNotFoundError,
    NotFoundError,
    SqlSyntaxError,
    UnsupportedError,
)
from frazil.spark.jvm.java_classes import define_classes, has_class
from frazil.spark.jvm.known_sessions import find_session, note_session, session_of
from frazil.spark.jvm.private_names import Callback, let_interruption_through, moved, new_word, start_callbacks

Answer = Callable[[SparkSession, str, Mapping[str, Any], Any], Any]
"""Given the session that asks, a verb, what is told and objects of Java's: text, an object of Java's, or None."""

CATALOG = "frazil.LakeCatalog"
_CATALOG_OF_CHANGES = "frazil.ChangesCatalog"
"""The same where Spark knows changes of rows."""
_BUILT_IN = "builtin"
_RULES = {
    # They run before tables are looked up.
    "hintResolutionRules": ("LakeNames", "EarlyTables"),
    "extendedResolutionRules": ("LakeRelations",),
    "postHocResolutionRules": ("ShowHiddenColumns", "LakeWrites"),
}
_MAKERS = {
    "injectHintResolutionRule": ("MakeNames", "MakeEarly"),
    "injectResolutionRule": ("MakeRelations",),
    "injectPostHocResolutionRule": ("MakeHidden", "MakeWrites"),
}
_lock = threading.Lock()
_opened: WeakKeyDictionary[SparkContext, set[int]] = WeakKeyDictionary()
"""By contexts that may ask, the extensions that were given the rules: a session and those made of it share theirs."""


def _answered(answer: Answer, question: str | None, objects: Any) -> Any:
    if question is None:
        return _problem("Cannot answer: the question is none of Spark's", "analysis", "FRAZIL_NOT_ASKED", "42501")
    verb, session, payload = question.split(" ", 2)
    try:
        spark = find_session(session) or session_of(objects.get(0), _open_context())
        with checking_before_commits(partial(_check_not_cancelled, spark)):
            return answer(spark, verb, json.loads(payload), objects)
    except FrazilError as error:
        how, condition, state = _kind(error)
        # Conditions of Spark's own stand before its messages, and tools look for them there.
        said = str(error) if condition.startswith("FRAZIL_") else f"[{condition}] {error}"
        return _problem(said, how, condition, state)
    except AnalysisException as error:
        return _problem(str(error), "analysis", error.getCondition(), error.getSqlState())
    except KeyboardInterrupt:
        # Java may ask on the very thread that waits for the statement: ctrl-C ends the wait too.
        let_interruption_through()
        raise
    except BaseException as error:
        # Nothing else may be raised into Py4J: it would lose the message.
        return _problem(f"Cannot {verb}: {type(error).__name__}: {error}", "execution", *_FAILED)


def _check_not_cancelled(spark: SparkSession, names: str) -> None:
    """Refuse to commit what nobody waits for: servers interrupt the thread that asks, ctrl-C ends the wait for it.

    Python's calls run on that thread. It cannot be woken while Python works, and jobs that run are cancelled by Spark
    or by `Waited.java`.
    """
    if define_classes(spark.sparkContext).Python.isGivenUp():
        raise CancelledError(f"Cannot commit to {names}: the statement was cancelled", hint="Nothing was changed.")


def _problem(message: str, kind: str, condition: str | None, state: str | None) -> str:
    body = {"message": message, "kind": kind, "condition": condition or _FAILED[0], "state": state or _FAILED[1]}
    return "!" + json.dumps(body)


_CANCELLED = ("OPERATION_CANCELED", "HY008")
_CONDITIONS: tuple[tuple[type[FrazilError], str, str, str], ...] = (
    (NamespaceNotFoundError, "analysis", "SCHEMA_NOT_FOUND", "42704"),
    (FieldNotFoundError, "analysis", "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", "42703"),
    (NotFoundError, "analysis", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
    (NamespaceAlreadyExistsError, "analysis", "SCHEMA_ALREADY_EXISTS", "42P06"),
    (AlreadyExistsError, "analysis", "TABLE_OR_VIEW_ALREADY_EXISTS", "42P07"),
    (CommitStateUnknownError, "execution", "FRAZIL_COMMIT_UNKNOWN", "40003"),
    (CommitError, "execution", "FRAZIL_COMMIT_CONFLICT", "40001"),
    (CancelledError, "execution", *_CANCELLED),
    (SqlSyntaxError, "analysis", "PARSE_SYNTAX_ERROR", "42601"),
    (UnsupportedError, "unsupported", "FRAZIL_UNSUPPORTED", "0A000"),
    (InvalidRequestError, "analysis", "FRAZIL_INVALID_REQUEST", "42000"),
)
"""What an error is to Spark: an error of the analysis or of a run, its condition, and its SQLSTATE."""
_FAILED = ("FRAZIL_FAILED", "58000")


def _kind(error: FrazilError) -> tuple[str, str, str]:
    for cls, *described in _CONDITIONS:
        if isinstance(error, cls):
            return described[0], described[1], described[2]
    return "execution", *_FAILED


def session_id(spark: SparkSession) -> str:
    """Return what tells a session from others."""
    return str(spark._jsparkSession.sessionUUID())


def lake_ids(spark: SparkSession) -> dict[str, str]:
    """Return the ids of the lakes that a session sees, by their names."""
    found: dict[str, str] = json.loads(define_classes(spark.sparkContext).Spark.lakes(spark._jsparkSession))
    return found


def session_settings(spark: SparkSession, prefix: str) -> dict[str, str]:
    """Return the settings of a session that begin with a prefix."""
    text: str = define_classes(spark.sparkContext).Spark.settings(spark._jsparkSession, prefix)
    found: dict[str, str] = json.loads(text)
    return found


def is_temporary_view(spark: SparkSession, name: Sequence[str]) -> bool:
    """Return whether a name is a temporary view's."""
    parts: Any = spark._jvm.java.util.ArrayList()  # type: ignore[union-attr]
    for step in name:
        parts.add(step)
    return bool(spark._jsparkSession.sessionState().catalog().isTempView(spark._jvm.frazil.Door.seq(parts)))  # type: ignore[union-attr]


def current_place(spark: SparkSession) -> tuple[str, tuple[str, ...]]:
    """Return the catalog and the namespace in which a session looks names up."""
    catalogs = spark._jsparkSession.sessionState().catalogManager()
    return str(catalogs.currentCatalog().name()), tuple(map(str, catalogs.currentNamespace()))


def _open_context() -> SparkContext:
    with _lock:
        # A context that was stopped may still be held by somebody.
        return next(context for context in _opened if context._jsc is not None)


def open_door(spark: SparkSession, answer: Answer) -> bool:
    """Let Spark ask Python about lakes, here and in sessions that come later; return whether it could not before."""
    context = spark.sparkContext
    try:
        package = define_classes(context)
        start_callbacks(context)
        with _lock:
            note_session(session_id(spark), spark)
            is_new = context not in _opened
            if is_new:
                word = new_word()
                called = Callback(partial(_answered, answer), word, "java.util.function.BiFunction")
                package.Door.open(called, word)
                _opened[context] = set()
            extensions = spark._jsparkSession.extensions()
            key = int(context._jvm.java.lang.System.identityHashCode(extensions))  # type: ignore[union-attr]
            if key not in _opened[context]:
                _opened[context].add(key)
                _extend(extensions, package)
        _join(spark, package)
        return is_new
    except (TypeError, AttributeError, Py4JError) as error:
        raise moved("attach a lake", error) from error


def close_door(spark: SparkSession) -> None:
    """Take the rules and the parser out of a session.

    The rule of metadata columns stays: frames outlive the lakes they are of.
    """
    context = spark.sparkContext
    package = define_classes(context)
    state = spark._jsparkSession.sessionState()
    analyzer = state.analyzer()
    for name, kinds in _RULES.items():
        field = _field(analyzer, name)
        gone = tuple(rule for rule in kinds if rule != "ShowHiddenColumns")
        field.set(analyzer, _without(spark, field.get(analyzer), gone))
    parser = _field(state, "sqlParser")
    parser.set(state, package.LakeParser.under(parser.get(state)))


def _join(spark: SparkSession, package: Any) -> None:
    """Put the rules and the parser into a session that runs already; once."""
    state = spark._jsparkSession.sessionState()
    analyzer = state.analyzer()
    for name, kinds in _RULES.items():
        field = _field(analyzer, name)
        rules = _without(spark, field.get(analyzer), kinds)
        for rule_name in kinds:
            rule = getattr(package, rule_name)()
            # Metadata columns come first: other rules turn writes into commands that hide their query.
            rules = rules.prepended(rule) if rule_name == "ShowHiddenColumns" else rules.appended(rule)
        field.set(analyzer, rules)
    parser = _field(state, "sqlParser")
    parser.set(state, package.LakeParser.over(package.LakeParser.under(parser.get(state))))


def _without(spark: SparkSession, rules: Any, kinds: tuple[str, ...]) -> Any:
    jvm: Any = spark._jvm
    kept = jvm.java.util.ArrayList()
    for index in range(rules.size()):
        rule = rules.apply(index)
        if rule.getClass().getName() not in {f"frazil.{name}" for name in kinds}:
            kept.add(rule)
    return jvm.scala.jdk.javaapi.CollectionConverters.asScala(kept).toList()


def _extend(extensions: Any, package: Any) -> None:
    for verb, kinds in _MAKERS.items():
        for rule in kinds:
            getattr(extensions, verb)(getattr(package, rule)())
    extensions.injectParser(package.MakeParser())


def _field(target: Any, name: str) -> Any:
    cls = target.getClass()
    while cls is not None:
        for getdeclaredfield in cls.getDeclaredFields():
            # A value of a trait has the trait's name before its own.
            if getdeclaredfield.getName() == name or getdeclaredfield.getName().endswith(f"$${name}"):
                getdeclaredfield.setAccessible(True)
                return getdeclaredfield
        cls = cls.getSuperclass()
    raise AttributeError(f"no field {name}")


@dataclass(frozen=True)
class Setting:
    """What a setting says in a session, in its context, and to sessions that are made of it; None where it is not."""

    session: str | None = None
    context: str | None = None
    initial: str | None = None

    def without(self, values: Sequence[str]) -> Setting:
        """Return the same less some values."""
        return Setting(*(None if value in values else value for value in (self.session, self.context, self.initial)))


def add_catalog(spark: SparkSession, name: str, lake_id: str) -> dict[str, Setting]:
    """Let a session, and those that come later, find a lake under a name; return the settings that gave way."""
    jvm: Any = spark._jvm
    catalog = _CATALOG_OF_CHANGES if has_class(jvm, _CATALOG_OF_CHANGES) else CATALOG
    key = f"spark.sql.catalog.{name}"
    before = _change_setting(spark, key, Setting(catalog, catalog))
    _change_setting(spark, f"{key}.lake-id", Setting(lake_id, lake_id))
    state = spark._jsparkSession.sessionState()
    # Loaded at once, since Spark lists what is loaded; by this session's settings, whichever session is active. The
    # current catalog may have the name, by USE or by the settings with which the session began: it stays current.
    loaded = jvm.org.apache.spark.sql.connector.catalog.Catalogs.load(name, state.conf())
    _field(state.catalogManager(), "catalogs").get(state.catalogManager()).put(name, loaded)
    return {key: before.without((CATALOG, _CATALOG_OF_CHANGES)), f"{key}.lake-id": Setting()}


def remove_catalog(spark: SparkSession, name: str, gave_way: Mapping[str, Setting]) -> None:
    """Let a session forget a lake, and have the settings that gave way to it."""
    manager = spark._jsparkSession.sessionState().catalogManager()
    _field(manager, "catalogs").get(manager).remove(name)
    current = _field(manager, "_currentCatalogName")
    if current.get(manager).isDefined() and current.get(manager).get() == name:
        for field in (current, _field(manager, "_currentNamespace")):
            field.set(manager, spark._jvm.scala.Option.empty())  # type: ignore[union-attr]
    for key, setting in gave_way.items():
        _change_setting(spark, key, setting)


def free_own_catalog(spark: SparkSession) -> Callable[[], None]:
    """Let Spark's own catalog be Spark's where settings name a class for it that is not there; return what undoes it.

    Spark asks for it with every name, and would find no table of any catalog.
    """
    key = "spark.sql.catalog.spark_catalog"
    named = spark.conf.get(key, _BUILT_IN)
    gave_way: Setting | None = None
    if named != _BUILT_IN:
        loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()  # type: ignore[union-attr]
        try:
            loader.loadClass(named)
        except Py4JJavaError:
            gave_way = _change_setting(spark, key, Setting())

    def undo() -> None:
        if gave_way is not None:
            _change_setting(spark, key, gave_way)

    return undo


def _change_setting(spark: SparkSession, key: str, setting: Setting) -> Setting:
    """Change a setting wherever it is; return what it said."""
    session, context = spark._jsparkSession, spark.sparkContext._jsc.sc().conf()
    options = _field(session, "initialSessionOptions")
    initial = options.get(session)
    initial_value = initial.get(key)
    before = Setting(
        spark.conf.get(key, None), context.get(key, None), initial_value.get() if initial_value.isDefined() else None
    )
    if setting.session is None:
        spark.conf.unset(key)
    else:
        spark.conf.set(key, setting.session)
    if setting.context is None:
        context.remove(key)
    else:
        context.set(key, setting.context)
    if setting.initial != before.initial:
        # Sessions that come later begin with what the builder of this one was told.
        changed = initial.removed(key) if setting.initial is None else initial.updated(key, setting.initial)
        options.set(session, changed)
    return before
