"""Give a Spark session the tables of lakes: `frazil.attach(spark, lake)`, and `frazil.detach(spark)` to undo it.

From then on `spark.sql`, `spark.table`, `spark.read`, `df.writeTo`, `df.mergeInto`, `df.write` and `spark.catalog`
understand `lake.db.t`. What does not name a lake goes to Spark as it came.

    text ── sql/parse ──┬─ a statement for a lake ── lake/run_statement ── rows
                        └─ anything else ── names of lakes in it? ──┬─ yes: lake/spark_engine ── DataFrame
                                                                    └─ no: Spark, untouched
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from frazil.catalog.names import shown
from frazil.errors import (
    InvalidRequestError,
    NamespaceNotFoundError,
    NotFoundError,
    TableNotFoundError,
    UnsupportedError,
)
from frazil.lake.answer import Answer
from frazil.lake.lake import Lake
from frazil.lake.lake_writer import LakeMerge, LakeWriter, WriteTarget
from frazil.lake.on_spark import spark_room
from frazil.lake.run_dml import by_place
from frazil.lake.run_script import ScriptRunner, immediate_values, is_immediate, is_script
from frazil.lake.run_statement import run_statement
from frazil.lake.session_catalog import answer_catalog
from frazil.lake.spark_engine import SparkEngine
from frazil.lake.sql_context import SqlContext
from frazil.lake.sql_session import SPARK_CATALOG, SqlSession
from frazil.sql.parse import parse_statement
from frazil.sql.rewrite import fill_parameters, spell_identifiers
from frazil.sql.script import statements_of
from frazil.sql.sql_literals import text_literal
from frazil.sql.statements import Name

_USE = re.compile(r"\s*(use\b|set\s+catalog\b)", re.IGNORECASE)
_TEMPORARY_VIEW = re.compile(
    r"\s*create\s+(?P<replace>or\s+replace\s+)?(?P<all>global\s+)?temp(?:orary)?\s+view\s+"
    r"(?P<exists>if\s+not\s+exists\s+)?(?P<name>`(?:[^`]|``)+`|\w+)\s+(?:comment\s+'[^']*'\s+)?as\s+(?P<query>.*)",
    re.IGNORECASE | re.DOTALL,
)
_CACHED_TABLE = re.compile(
    r"\s*cache\s+(?P<lazy>lazy\s+)?table\s+(?P<name>`(?:[^`]|``)+`|\w+)\s+(?:options\s*\([^)]*\)\s*)?as\s+(?P<query>.*)",
    re.IGNORECASE | re.DOTALL,
)


def attach(spark: Any, lake: Lake, name: str = "lake") -> Lake:
    """Let a Spark session find a lake's tables under a name; return the lake.

    Several lakes may be attached under different names; the same name again is another lake from then on.
    """
    if not isinstance(lake, Lake):
        raise InvalidRequestError(f"Cannot attach {type(lake).__name__}: give a lake that frazil.connect() returned")
    if not isinstance(name, str) or not name or name == SPARK_CATALOG:
        raise InvalidRequestError(f"Cannot attach a lake as {name!r}: give a name that is not Spark's own catalog's")
    patches = spark_room("patch_session")
    names = spark_room("sql_names")
    if not names.is_classic(spark):
        raise UnsupportedError(
            "Cannot attach a lake to Spark Connect: its parser is out of reach",
            hint='Use spark.read.format("iceberg"), after register_source() of frazil.lake.source_tables.',
        )
    attachment = patches.find_hooks(spark)
    if attachment is None:
        attachment = Attachment(spark, spark_room("jvm").prune_before_joins(spark))
        patches.hook(spark, attachment)
    attachment.session.lakes[name] = lake
    lake.attached_spark = spark
    return lake


def detach(spark: Any) -> None:
    """Leave a session as it was before lakes were attached to it; one without lakes is no error."""
    patches = spark_room("patch_session")
    attachment = patches.find_hooks(spark)
    if attachment is None:
        return
    for lake in attachment.session.lakes.values():
        if lake.attached_spark is spark:
            lake.attached_spark = None
    patches.unhook(spark)
    attachment.leave_optimiser()


class Attachment:
    """What a session knows about lakes, and how its entry points answer; see `spark/patch_session.py`."""

    def __init__(self, spark: Any, leave_optimiser: Callable[[], None]) -> None:
        self._spark = spark
        self.leave_optimiser = leave_optimiser
        self._names = spark_room("sql_names")
        self._scripts = spark_room("sql_scripts")
        self._not_ours = spark_room("patch_session").NOT_OURS
        self._made_views: dict[str, Any] = {}
        self.session = SqlSession(
            is_temporary_view=lambda name: bool(self._names.is_temporary_view(spark, name)),
            is_foreign_catalog=lambda name: spark.conf.get(f"spark.sql.catalog.{name}", None) is not None,
        )

    # SQL

    def sql(self, run: Callable[..., Any], text: str, args: Any) -> Any:
        """Run a statement that a user wrote. Spark's variables in it are replaced here, and nowhere after."""
        return self._sql(run, self._names.substituted(self._spark, text), args)

    def _sql(self, run: Callable[..., Any], text: str, args: Any) -> Any:
        """Run a statement as it stands: a lake's, a query over lakes, or Spark's own."""
        if is_script(text) or is_immediate(text):
            found = (self._script if is_script(text) else self._immediate)(run, text, args)
            if found is not self._not_ours:
                return found
        if "identifier" in text.lower():
            values = args if isinstance(args, dict) else {}
            text = spell_identifiers(text, values, lambda name: self._ours(name) is not None)
        statement = parse_statement(text, self.session.is_ours)
        if statement is None:
            return self._query(run, text, args)
        if args:
            literals = self._names.literal_texts(self._spark, args)
            statement = parse_statement(fill_parameters(text, literals), self.session.is_ours)
            assert statement is not None
        engine = SparkEngine(self._spark, self.session, run)
        with engine.statement():
            answer = run_statement(SqlContext(self.session, engine), statement)
        return self._frame(answer)

    def _script(self, run: Callable[..., Any], text: str, args: Any) -> Any:
        if not self._may_name_lakes(text):
            return self._not_ours
        script = self._scripts.read_script(self._spark, text)
        if script is None or not any(self._is_for_lakes(run, one) for one in statements_of(script)):
            return self._not_ours
        if args and not isinstance(args, dict):
            raise UnsupportedError(
                "Cannot run a script over tables of lakes with ? as parameters", hint="Use :names, and a dict."
            )
        answer = ScriptRunner(self._spark, lambda one: self._sql(self._plain_sql, one, args)).run(script)
        return self._names.empty_frame(self._spark) if answer is None else answer

    def _is_for_lakes(self, run: Callable[..., Any], text: str) -> bool:
        if is_immediate(text):
            # What it runs is known when it runs.
            return True
        return (
            parse_statement(text, self.session.is_ours) is not None
            or SparkEngine(self._spark, self.session, run).names_lakes(text)
        )  # fmt: skip

    def _immediate(self, run: Callable[..., Any], text: str, args: Any) -> Any:
        immediate = self._scripts.read_immediate(self._spark, text)
        if immediate is None:
            return self._not_ours
        engine = SparkEngine(self._spark, self.session, run, args=args)
        (query,) = engine.evaluate([immediate.query])
        if not isinstance(query, str) or not self._may_name_lakes(query) or not self._is_for_lakes(run, query):
            return self._not_ours
        if is_immediate(query):
            raise InvalidRequestError("Cannot run EXECUTE IMMEDIATE inside EXECUTE IMMEDIATE")
        frame = self.sql(run, query, immediate_values(immediate, engine.evaluate))
        if not immediate.targets:
            return frame
        with engine.statement():
            view = engine.register(frame)
            return self._plain_sql(f"set var ({', '.join(immediate.targets)}) = (select * from {view})")

    def _query(self, run: Callable[..., Any], text: str, args: Any) -> Any:
        if not self._may_name_lakes(text):
            return self._pass(run, text, args)
        self._forget_views()
        engine = SparkEngine(self._spark, self.session, run, args=args)
        view = _TEMPORARY_VIEW.match(text)
        if view is not None and engine.names_lakes(view["query"]):
            return self._create_temporary_view(run, engine, view, args)
        cached = _CACHED_TABLE.match(text)
        if cached is not None and engine.names_lakes(cached["query"]):
            frame = engine.query(cached["query"])
            frame.createOrReplaceTempView(_unquoted(cached["name"]))
            return run(f"cache {cached['lazy'] or ''}table {cached['name']}")
        frame = engine.find_query(text)
        return self._pass(run, text, args) if frame is None else frame

    def _pass(self, run: Callable[..., Any], text: str, args: Any) -> Any:
        found = run(text, args) if args else run(text)
        if self.session.catalog is not None and _USE.match(text):
            self.session.catalog, self.session.namespace = None, ()
        return found

    def _may_name_lakes(self, text: str) -> bool:
        if self.session.catalog is not None:
            return True
        lower = text.lower()
        return any(name in text for name in self.session.lakes) or any(
            name in lower for name in self.session.temporary_views
        )

    def _frame(self, answer: Answer) -> Any:
        if not answer.columns:
            return self._names.empty_frame(self._spark)
        return self._spark.createDataFrame(list(answer.rows), answer.ddl)

    # Temporary views over lakes: their queries are kept, and run anew when they are read.

    def _create_temporary_view(
        self, run: Callable[..., Any], engine: SparkEngine, view: re.Match[str], args: Any
    ) -> Any:
        name = _unquoted(view["name"])
        if view["exists"] and self._names.is_temporary_view(self._spark, (name,)):
            return self._names.empty_frame(self._spark)
        frame = engine.query(view["query"])
        if view["all"]:
            (frame.createOrReplaceGlobalTempView if view["replace"] else frame.createGlobalTempView)(name)
        else:
            (frame.createOrReplaceTempView if view["replace"] else frame.createTempView)(name)
            if not args:
                self.session.temporary_views[name.lower()] = view["query"]
                self._made_views[name.lower()] = self._names.temporary_view(self._spark, name)
        return self._names.empty_frame(self._spark)

    def _forget_views(self) -> None:
        """Forget views that have been dropped or defined anew by others."""
        for name, made in list(self._made_views.items()):
            if self._names.temporary_view(self._spark, name) != made:
                del self._made_views[name]
                self.session.temporary_views.pop(name, None)

    # The other entry points

    def _engine(self) -> SparkEngine:
        return SparkEngine(self._spark, self.session, self._plain_sql)

    def _plain_sql(self, text: str, args: Any = None) -> Any:
        return self._names.parse_query(self._spark, text).to_frame({}, args)

    def table(self, name: str, options: dict[str, str]) -> Any:
        """Return a table, a metadata table or a view as a DataFrame."""
        if not self._may_name_lakes(name):
            return self._not_ours
        self._forget_views()
        parts = self._names.parse_name(self._spark, name)
        if parts is None:
            return self._not_ours
        engine = self._engine()
        asked = {key: value for key, value in options.items() if key.lower() not in ("path", "timestampasof")}
        known = {key.lower(): value for key, value in options.items()}
        timestamp = known.get("timestampasof")
        text = None if timestamp is None else text_literal(timestamp)
        frame = engine.find_frame(self._names.FoundName("relation", parts, options=asked, timestamp=text))
        return self._not_ours if frame is None else frame

    def _ours(self, name: str) -> Name | None:
        parts: Name | None = self._names.parse_name(self._spark, name)
        return parts if parts is not None and self.session.find_place(parts) is not None else None

    def write_to(self, frame: Any, name: str) -> Any:
        """Return a writer for a lake's table."""
        parts = self._ours(name)
        if parts is None:
            return self._not_ours
        return LakeWriter(self._engine(), frame, parts, lambda one: self._names.term_text(self._spark, one))

    def merge_into(self, frame: Any, name: str, condition: Any) -> Any:
        """Return a merge into a lake's table."""
        parts = self._ours(name)
        return self._not_ours if parts is None else LakeMerge(self._engine(), frame, parts, condition)

    def save(self, frame: Any, name: str, record: Any, *, by_position: bool, replaces: bool) -> Any:
        """Write a DataFrame as `df.write` does: append, overwrite, ignore, or refuse a table that exists.

        As in Spark, `saveAsTable` overwrites by replacing the table, its schema and partitioning included; the others
        replace rows.
        """
        parts = self._ours(name)
        if parts is None:
            return self._not_ours
        mode = (record.mode or "error").lower()
        place = self.session.place(parts)
        target = self._find_target(parts)
        exists = target is not None
        if exists and mode in ("error", "errorifexists", "default"):
            raise InvalidRequestError(
                f"Cannot write to {place}: it exists", hint="Use mode('append') or mode('overwrite')."
            )
        if exists and mode == "ignore":
            return None
        if (record.buckets or record.sort_by or record.cluster_by) and not replaces:
            raise InvalidRequestError(
                f"Cannot write to {place} with bucketBy, sortBy or clusterBy: only saveAsTable lays a table out"
            )
        if by_position:
            if target is None:
                raise NotFoundError(f"Cannot insert into {place}: there is no such table")
            frame = by_place(frame, target[1].schema.fields, place)
        writer = LakeWriter(self._engine(), frame, parts, str, target)
        writer.options(**{key: value for key, value in record.options.items() if key.lower() != "path"})
        terms = (*record.partition_by, *record.buckets)
        if terms:
            writer.partitionedBy(*terms)
        if len(record.buckets) > 1:
            raise UnsupportedError(
                f"Cannot create {place} with bucketBy of {len(record.buckets)} columns: a bucket is of one column",
                hint="Use writeTo(…).partitionedBy(bucket(…, …), bucket(…, …)).create().",
            )
        if record.cluster_by:
            writer.clusterBy(*record.cluster_by)
        if record.sort_by:
            raise UnsupportedError(
                f"Cannot create {place} with sortBy: buckets of a lake's table are not sorted one by one",
                hint="Give the table a sort order: ALTER TABLE … WRITE ORDERED BY.",
            )
        known = {key.lower(): value for key, value in record.options.items()}
        if replaces and "path" in known:
            writer.tableProperty("location", known["path"])
        if not exists:
            writer.create()
        elif mode == "overwrite" and replaces:
            writer.createOrReplace()
        elif mode == "append":
            writer.append()
        else:
            setting = self._spark.conf.get("spark.sql.sources.partitionOverwriteMode", "static")
            asked = known.get("overwrite-mode", known.get("partitionoverwritemode", setting))
            is_dynamic = str(asked).lower() == "dynamic"
            (writer.overwritePartitions if is_dynamic else writer.overwrite_all)()
        return None

    def _find_target(self, parts: Name) -> WriteTarget | None:
        try:
            return self.session.write_target(parts)
        except (TableNotFoundError, NamespaceNotFoundError):
            return None

    def catalog(self, method: str, arguments: tuple[Any, ...]) -> Any:
        """Answer a method of `spark.catalog` that is about lakes."""
        return answer_catalog(self.session, self._names, self._spark, method, arguments, self._not_ours)

    def __repr__(self) -> str:
        return f"Attachment({', '.join(shown((name,)) for name in self.session.lakes)})"


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
