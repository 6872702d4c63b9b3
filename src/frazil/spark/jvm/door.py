"""Lakes inside Spark: a catalog, analyser rules and a parser in Java that call Python (`spark/java`).

    lake.db.t   --Spark's analyser-->  LakeCatalog.loadTable  --Door-->  Python: columns, properties
                --LakeRelations-->     frazil's relation in its place
    INSERT …    --Spark's analyser-->  resolved, converted, checked
                --LakeWrites-->        a command, which Python runs with the query as a DataFrame
    CALL …, CREATE BRANCH …            --LakeParser-->  a command, which Python runs

A running session gets the rules through its analyser's fields; later sessions get them through Spark's session
extensions and settings. Nothing in PySpark is replaced.
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
from frazil.spark.jvm.java_classes import JavaClasses, define_classes, full_name, has_class
from frazil.spark.jvm.known_sessions import find_session, note_session, session_of
from frazil.spark.jvm.private_names import (
    Callback,
    incompatible_spark_error,
    let_interruption_through,
    new_secret,
    start_callbacks,
)

Answer = Callable[[SparkSession, str, str, Any], Any]
"""Takes the session, a verb, its JSON and Java objects; returns text, a Java object, or None."""

CATALOG = "frazil.catalog.LakeCatalog"
_CATALOG_OF_CHANGES = "frazil.catalog.ChangesCatalog"
"""The catalog for versions of Spark with row-level change feeds."""
_BUILT_IN = "builtin"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of ours in Spark's analyser: its class, where it goes, and what it does."""

    name: str
    field: str
    """The field of a running session's analyser that lists rules of this stage."""
    builder: str
    injector: str
    """The method of session extensions that has later sessions build the rule."""
    doc: str
    is_first: bool = False
    """Whether it goes before Spark's own rules of the stage."""
    is_kept: bool = False
    """Whether it stays after detach."""


RULES = (
    Rule(
        "LakeNames",
        "hintResolutionRules",
        "MakeNames",
        "injectHintResolutionRule",
        "Reports unknown catalogs by name, before names are resolved.",
    ),
    Rule(
        "EarlyTables",
        "hintResolutionRules",
        "MakeEarly",
        "injectHintResolutionRule",
        "Loads tables at a snapshot that options name, streams, and targets of writes with schema evolution.",
    ),
    Rule(
        "LakeRelations",
        "extendedResolutionRules",
        "MakeRelations",
        "injectResolutionRule",
        "Puts the relation of a lake's table in place of the one that Spark makes of its name.",
    ),
    Rule(
        "ShowHiddenColumns",
        "postHocResolutionRules",
        "MakeHidden",
        "injectPostHocResolutionRule",
        "Adds the metadata columns that a query uses. It comes first, since other rules turn writes into commands that "
        "hide their query, and stays after detach, since frames outlive the lakes that they read.",
        is_first=True,
        is_kept=True,
    ),
    Rule(
        "LakeWrites",
        "postHocResolutionRules",
        "MakeWrites",
        "injectPostHocResolutionRule",
        "Turns resolved writes and changes into commands that Python runs.",
    ),
)
"""The rules that are put into Spark, in their order."""
_lock = threading.Lock()
_opened: WeakKeyDictionary[SparkContext, set[int]] = WeakKeyDictionary()
"""Per context, the identities of session extensions with the rules; a session and its clones share extensions."""


def _answered(answer: Answer, request: str | None, objects: Any) -> Any:
    if request is None:
        return _problem("Cannot answer: the request does not come from Spark", "analysis", "FRAZIL_NOT_ASKED", "42501")
    verb, session, text = request.split(" ", 2)
    try:
        spark = find_session(session) or session_of(objects.get(0), _open_context())
        with checking_before_commits(partial(_check_not_cancelled, spark)):
            return answer(spark, verb, text, objects)
    except FrazilError as error:
        how, condition, state = _kind(error)
        # Spark's conditions precede its messages, and tools look for them there.
        message = str(error) if condition.startswith("FRAZIL_") else f"[{condition}] {error}"
        return _problem(message, how, condition, state)
    except AnalysisException as error:
        return _problem(str(error), "analysis", error.getCondition(), error.getSqlState())
    except KeyboardInterrupt:
        # Java may call on the very thread that waits for the statement: ctrl-C ends the wait too.
        let_interruption_through()
        raise
    except BaseException as error:
        # Nothing else may be raised into Py4J: it would lose the message.
        return _problem(f"Cannot {verb}: {type(error).__name__}: {error}", "execution", *_FAILED)


def _check_not_cancelled(spark: SparkSession, names: str) -> None:
    """Raise before a commit whose statement was cancelled by a server's interrupt or by ctrl-C.

    Python's calls run on the interrupted thread, which cannot be woken while Python works. Running jobs are cancelled
    by Spark or by `Waited.java`.
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
"""How Spark reports each error: as an analysis or execution error, with its condition and its SQLSTATE."""
_FAILED = ("FRAZIL_FAILED", "58000")


def _kind(error: FrazilError) -> tuple[str, str, str]:
    for cls, *described in _CONDITIONS:
        if isinstance(error, cls):
            return described[0], described[1], described[2]
    return "execution", *_FAILED


def session_id(spark: SparkSession) -> str:
    """Return the unique id of a session."""
    return str(spark._jsparkSession.sessionUUID())


def lake_ids(spark: SparkSession) -> dict[str, str]:
    """Return the ids of the lakes that are attached to a session, by name."""
    ids: dict[str, str] = json.loads(define_classes(spark.sparkContext).Spark.lakes(spark._jsparkSession))
    return ids


def session_settings(spark: SparkSession, prefix: str) -> dict[str, str]:
    """Return the settings of a session whose names begin with a prefix."""
    text: str = define_classes(spark.sparkContext).Spark.settings(spark._jsparkSession, prefix)
    settings: dict[str, str] = json.loads(text)
    return settings


def is_temporary_view(spark: SparkSession, name: Sequence[str]) -> bool:
    """Return whether a name refers to a temporary view."""
    package = define_classes(spark.sparkContext)
    parts: Any = spark._jvm.java.util.ArrayList()  # type: ignore[union-attr]
    for step in name:
        parts.add(step)
    return bool(spark._jsparkSession.sessionState().catalog().isTempView(package.Door.seq(parts)))


def current_place(spark: SparkSession) -> tuple[str, tuple[str, ...]]:
    """Return the current catalog and namespace of a session."""
    catalogs = spark._jsparkSession.sessionState().catalogManager()
    return str(catalogs.currentCatalog().name()), tuple(map(str, catalogs.currentNamespace()))


def _open_context() -> SparkContext:
    with _lock:
        # A stopped context may still be referenced.
        return next(context for context in _opened if context._jsc is not None)


def open_door(spark: SparkSession, answer: Answer) -> bool:
    """Install the callbacks and rules in a session and later ones; return whether the context had none before."""
    context = spark.sparkContext
    try:
        package = define_classes(context)
        start_callbacks(context)
        with _lock:
            note_session(session_id(spark), spark)
            is_new = context not in _opened
            if is_new:
                word = new_secret()
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
        raise incompatible_spark_error("attach a lake", error) from error


def close_door(spark: SparkSession) -> None:
    """Remove the rules and the parser from a session, but for the rules that stay."""
    context = spark.sparkContext
    package = define_classes(context)
    state = spark._jsparkSession.sessionState()
    analyzer = state.analyzer()
    for name, rules in _rules_by_field().items():
        field = _field(analyzer, name)
        field.set(analyzer, _without(spark, field.get(analyzer), [rule for rule in rules if not rule.is_kept]))
    parser = _field(state, "sqlParser")
    parser.set(state, package.LakeParser.under(parser.get(state)))


def _join(spark: SparkSession, package: JavaClasses) -> None:
    """Install the rules and the parser in a running session, replacing those of an earlier call."""
    state = spark._jsparkSession.sessionState()
    analyzer = state.analyzer()
    for name, rules in _rules_by_field().items():
        field = _field(analyzer, name)
        installed = _without(spark, field.get(analyzer), rules)
        for rule in rules:
            made = getattr(package, rule.name)()
            installed = installed.prepended(made) if rule.is_first else installed.appended(made)
        field.set(analyzer, installed)
    parser = _field(state, "sqlParser")
    parser.set(state, package.LakeParser.over(package.LakeParser.under(parser.get(state))))


def _rules_by_field() -> dict[str, list[Rule]]:
    fields: dict[str, list[Rule]] = {}
    for rule in RULES:
        fields.setdefault(rule.field, []).append(rule)
    return fields


def _without(spark: SparkSession, rules: Any, removed: Sequence[Rule]) -> Any:
    jvm: Any = spark._jvm
    remaining = jvm.java.util.ArrayList()
    names = {full_name(rule.name) for rule in removed}
    for index in range(rules.size()):
        rule = rules.apply(index)
        if rule.getClass().getName() not in names:
            remaining.add(rule)
    return jvm.scala.jdk.javaapi.CollectionConverters.asScala(remaining).toList()


def _extend(extensions: Any, package: JavaClasses) -> None:
    for rule in RULES:
        getattr(extensions, rule.injector)(getattr(package, rule.builder)())
    extensions.injectParser(package.MakeParser())


def _field(target: Any, name: str) -> Any:
    cls = target.getClass()
    while cls is not None:
        for field in cls.getDeclaredFields():
            # A field of a trait is prefixed by the trait's name.
            if field.getName() == name or field.getName().endswith(f"$${name}"):
                field.setAccessible(True)
                return field
        cls = cls.getSuperclass()
    raise AttributeError(f"no field {name}")


@dataclass(frozen=True)
class Setting:
    """The values of a setting in a session, in its context and in the session's initial options; None if unset."""

    session: str | None = None
    context: str | None = None
    initial: str | None = None

    def without(self, values: Sequence[str]) -> Setting:
        """Return the setting with the given values unset."""
        return Setting(*(None if value in values else value for value in (self.session, self.context, self.initial)))


def add_catalog(spark: SparkSession, name: str, lake_id: str) -> dict[str, Setting]:
    """Register a lake under a name in a session and later ones; return the settings that were replaced."""
    jvm: Any = spark._jvm
    catalog = _CATALOG_OF_CHANGES if has_class(jvm, _CATALOG_OF_CHANGES) else CATALOG
    key = f"spark.sql.catalog.{name}"
    before = _change_setting(spark, key, Setting(catalog, catalog))
    _change_setting(spark, f"{key}.lake-id", Setting(lake_id, lake_id))
    state = spark._jsparkSession.sessionState()
    # Loaded eagerly, since Spark lists only loaded catalogs, and with this session's settings, whichever session is
    # active. If the current catalog has the name, by USE or by initial settings, it stays current.
    loaded = jvm.org.apache.spark.sql.connector.catalog.Catalogs.load(name, state.conf())
    _field(state.catalogManager(), "catalogs").get(state.catalogManager()).put(name, loaded)
    return {key: before.without((CATALOG, _CATALOG_OF_CHANGES)), f"{key}.lake-id": Setting()}


def remove_catalog(spark: SparkSession, name: str, replaced: Mapping[str, Setting]) -> None:
    """Remove a lake from a session and restore the settings that it replaced."""
    manager = spark._jsparkSession.sessionState().catalogManager()
    _field(manager, "catalogs").get(manager).remove(name)
    current = _field(manager, "_currentCatalogName")
    if current.get(manager).isDefined() and current.get(manager).get() == name:
        for field in (current, _field(manager, "_currentNamespace")):
            field.set(manager, spark._jvm.scala.Option.empty())  # type: ignore[union-attr]
    for key, setting in replaced.items():
        _change_setting(spark, key, setting)


def use_builtin_if_catalog_missing(spark: SparkSession) -> Callable[[], None]:
    """Unset `spark_catalog` if its class is missing, so that Spark uses the builtin one; return a function to undo it.

    Spark loads that catalog to resolve any name, so with a missing class it would find no table at all.
    """
    key = "spark.sql.catalog.spark_catalog"
    class_name = spark.conf.get(key, _BUILT_IN)
    replaced: Setting | None = None
    if class_name != _BUILT_IN:
        loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()  # type: ignore[union-attr]
        try:
            loader.loadClass(class_name)
        except Py4JJavaError:
            replaced = _change_setting(spark, key, Setting())

    def undo() -> None:
        if replaced is not None:
            _change_setting(spark, key, replaced)

    return undo


def _change_setting(spark: SparkSession, key: str, setting: Setting) -> Setting:
    """Change a setting in the session, its context and its initial options; return the previous values."""
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
        # Later sessions start from this session's initial options.
        changed = initial.removed(key) if setting.initial is None else initial.updated(key, setting.initial)
        options.set(session, changed)
    return before
