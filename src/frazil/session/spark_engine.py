"""Queries over lakes' tables on Spark: names become DataFrames, and Spark does the rest.

A query goes through Spark's own parser (`spark/sql_names.py`); each name that means a table of a lake takes a lazy
relation, each view the DataFrame of its query, looked up where the view says. Expressions that travel as text get
temporary views of names nobody can guess, which are dropped when the statement is over.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from frazil.catalog.names import shown
from frazil.commit.summary import frazil_version
from frazil.errors import InvalidRequestError, NotFoundError, TableNotFoundError, UnsupportedError
from frazil.lake.lake import TRUSTED_VIEWS
from frazil.lake.on_spark import spark_room
from frazil.lake.open_catalog import TRUST_NONE
from frazil.lake.scan import ALL_COLUMNS, Scan, ScanOptions
from frazil.lake.scan_options import scan_changes, scan_with_options
from frazil.lake.table import Table
from frazil.lake.view import View
from frazil.scan.choose_snapshot import SnapshotChoice
from frazil.session.sql_context import Spelled
from frazil.session.sql_session import (
    CHANGES,
    SPARK_CATALOG,
    STATE_OPTIONS,
    Place,
    Relation,
    SqlSession,
    State,
    option_of_state,
    state_of_options,
    version_state,
)
from frazil.spec.properties import WRITE_AUDIT_PUBLISH_ENABLED, read_property
from frazil.spec.reserved_columns import DELETED, METADATA_COLUMNS, PARTITION_NAME, ROW_LINEAGE_COLUMNS
from frazil.spec.schema import Schema
from frazil.sql.quote_names import quote
from frazil.sql.rewrite import cte_names, replace_spans
from frazil.sql.statements import VIEW_SCHEMA_MODE, Name, Span
from frazil.sql.type_names import spark_type_name
from frazil.storage.read_only import untrusted

_PRIVILEGES = "__required_write_privileges__"


class SparkEngine:
    """One session's queries. `run` is `spark.sql` as it was before it was attached."""

    def __init__(
        self,
        spark: Any,
        session: SqlSession,
        run: Callable[..., Any],
        *,
        args: Any = None,
        views: frozenset[Name] = frozenset(),
        temporary: list[str] | None = None,
    ) -> None:
        self.spark = spark
        self.session = session
        self._run = run
        self._args = args
        self._views = views
        self._temporary = [] if temporary is None else temporary
        self._names = spark_room("sql_names")

    # Queries

    def find_query(self, text: str) -> Any:
        """Return the DataFrame of a statement that names tables of lakes; None where it names none.

        What Spark's parser refuses names none either: Spark is asked again and says why.
        """
        parsed = self._names.try_parse_query(self.spark, text)
        if parsed is None:
            return None
        replacements = self._replacements(parsed)
        return parsed.to_frame(replacements, self._args) if replacements else None

    def query(self, text: str, ctes: str | None = None) -> Any:
        """Return the DataFrame of a query."""
        whole = text if ctes is None else f"with {ctes}\n{text}"
        if ctes is not None and text.lstrip()[:5].lower().startswith("with"):
            # Spark has no WITH after a WITH; a subquery has.
            whole = f"with {ctes}\nselect * from ({text}\n)"
        parsed = self._names.parse_query(self.spark, whole)
        command = parsed.find_command()
        if command is not None:
            raise InvalidRequestError(f"Cannot use a command where a query belongs: Spark reads {command}")
        return parsed.to_frame(self._replacements(parsed), self._args)

    def _replacements(self, parsed: Any) -> dict[int, Any]:
        found: dict[int, Any] = {}
        plans: dict[Any, Any] = {}
        for at, one in enumerate(parsed.names):
            if one.kind != "relation" or _PRIVILEGES in (one.options or {}):
                continue
            # A table that a query names twice is read in one state.
            key = (one.parts, one.version, one.timestamp, tuple(sorted((one.options or {}).items())))
            if key not in plans:
                plans[key] = self.find_plan(one)
            if plans[key] is not None:
                found[at] = plans[key]
        calls = {at: name for at, one in enumerate(parsed.names) if (name := self._find_function(one)) is not None}
        if calls:
            room = spark_room("sql_functions")
            found |= room.function_expressions(self.spark, parsed, calls, found, f"frazil {frazil_version()}")
        return found

    def _find_function(self, name: Any) -> str | None:
        """Return the function of a lake that a name means."""
        if name.kind != "function" or name.parts[-2].lower() != "system":
            return None
        if len(name.parts) == 3 and name.parts[0] in self.session.lakes:
            return str(name.parts[2].lower())
        is_ours = len(name.parts) == 2 and self.session.catalog is not None
        return str(name.parts[1].lower()) if is_ours else None

    def names_lakes(self, text: str) -> bool:
        """Return whether a query names something of a lake."""
        parsed = self._names.try_parse_query(self.spark, text)
        return parsed is not None and any(one.kind == "relation" and self._is_ours(one.parts) for one in parsed.names)

    def _is_ours(self, parts: Name) -> bool:
        is_kept = len(parts) == 1 and parts[0].lower() in self.session.temporary_views
        return is_kept or self.session.find_place(parts) is not None

    def find_frame(self, name: Any) -> Any:
        """Return the DataFrame of a name that means something in a lake; None where it is Spark's."""
        plan = self.find_plan(name)
        return None if plan is None else self._names.frame_of_plan(self.spark, plan)

    def find_plan(self, name: Any) -> Any:
        """Return the plan of a name that means something in a lake, under its full name; None where it is Spark's."""
        place = self.session.find_place(name.parts)
        if place is None:
            text = self.session.temporary_views.get(name.parts[0].lower()) if len(name.parts) == 1 else None
            if text is None:
                return None
            return self._names.aliased_plan(self.spark, self._inner(self.session, self._views).query(text), name.parts)
        if name.is_streaming:
            raise UnsupportedError(f"Cannot read {place} as a stream in SQL", hint="Read it as a table.")
        try:
            relation = self.session.relation(place)
        except NotFoundError as problem:
            view = find_view(place)
            if view is None:
                raise TableNotFoundError(
                    f"Cannot find {place}: there is no such table or view",
                    hint=f"SHOW TABLES IN {shown((place.lake_name, *place.name[:-1]))} lists what there is.",
                ) from problem
            if name.version is not None or name.timestamp is not None:
                raise InvalidRequestError(f"Cannot read {place} as of another time: it is a view") from problem
            frame = self.view_frame(place, view)
            return self._names.aliased_plan(self.spark, frame, (place.lake_name, *place.name))
        state = self._state(relation, name)
        found = Relation(relation.place, relation.table, state, relation.metadata_table)
        return self._plan_of(found, (place.lake_name, *place.name), name.options or {})

    def _plan_of(self, relation: Relation, name: Name, options: Mapping[str, str]) -> Any:
        """Return the plan of a table or of one of its metadata tables; a table's own have metadata columns, hidden."""
        scan = self.scan_of(relation, options)
        if scan is None:
            return self._names.aliased_plan(self.spark, self.frame_of(relation), name)
        hidden = hidden_columns(scan)

        def frame_with(asked: list[str]) -> Any:
            frame = replace(scan, columns=(ALL_COLUMNS, *asked)).to_spark(self.spark)
            # How and when a row changed comes last.
            return frame if scan.changelog is None else frame.select(*map(quote, [*own, *asked]))

        frame = scan.to_spark(self.spark)
        own = frame.columns
        schema = spark_room("types").shown_schema(hidden, self.spark)
        return spark_room("hidden_columns").hide_columns(self.spark, frame, name, schema, frame_with)

    def _state(self, relation: Relation, name: Any) -> State:
        states = [relation.state, state_of_options(name.options or {})]
        if name.version is not None:
            states.append(version_state(name.version))
        if name.timestamp is not None:
            (as_of_ms,) = self.evaluate([f"unix_millis(cast({name.timestamp} as timestamp))"])
            states.append(State(as_of_ms=as_of_ms))
        return self.state_of(relation, states)

    def state_of(self, relation: Relation, states: Sequence[State]) -> State:
        """Return the one state that is meant; without one, the branch that the session audits, if there is one."""
        given = [one for one in states if one.is_given]
        if len(given) > 1:
            raise InvalidRequestError(f"Cannot read {relation.place} in two states at once: give one")
        if not given and read_property(relation.table.properties, WRITE_AUDIT_PUBLISH_ENABLED):
            branch = self.setting("spark.wap.branch")
            if branch and relation.table.metadata.find_ref(branch) is not None:
                return State(branch=branch)
        return given[0] if given else relation.state

    def frame_of(self, relation: Relation, options: Mapping[str, str] | None = None) -> Any:
        """Return the DataFrame of a table in a state, or of one of its metadata tables."""
        scan = self.scan_of(relation, options or {})
        if scan is not None:
            return scan.to_spark(self.spark)
        table = relation.table
        return spark_room("metadata_frames").metadata_frame(
            self.spark, table._loaded, relation.metadata_table, choice=_choice(relation.state), cache=table._cache
        )

    def scan_of(self, relation: Relation, options: Mapping[str, str]) -> Scan | None:
        """Return the scan of a table, or of its changes; other metadata tables have none."""
        table, state = relation.table, relation.state
        if state.branch is not None or state.tag is not None:
            ref = table.metadata.ref(state.branch or state.tag or "")
            wanted = "branch" if state.branch is not None else "tag"
            if ref.type != wanted:
                raise InvalidRequestError(
                    f"Cannot read {wanted} {state.reference!r} of {relation.place}: it is a {ref.type}"
                )
        scan_options = ScanOptions(manifest_cache=table._cache)
        if relation.metadata_table == CHANGES:
            return scan_changes(table._loaded, options, choice=_choice(state), scan_options=scan_options)
        if relation.metadata_table is not None:
            return None
        asked = {key: value for key, value in options.items() if key.lower() not in STATE_OPTIONS}
        return scan_with_options(
            table._loaded,
            {**asked, **option_of_state(state)},
            time_zone=self.setting("spark.sql.session.timeZone") or "UTC",
            scan_options=scan_options,
        )

    def changes(self, place: Place, table: Table, options: Mapping[str, str]) -> Any:
        """Return the changes of a table's rows as a DataFrame."""
        return self.frame_of(Relation(place, table, metadata_table=CHANGES), options=options)

    # Views

    def _inner(self, session: SqlSession, views: frozenset[Name]) -> SparkEngine:
        return SparkEngine(self.spark, session, self._run, views=views, temporary=self._temporary)

    def view_frame(self, place: Place, view: View) -> Any:
        """Return the rows of a view."""
        name = (place.lake_name, *place.name)
        if name in self._views:
            raise InvalidRequestError(f"Cannot read view {place}: it reads itself, by way of {len(self._views)} views")
        if place.lake.trust == TRUST_NONE:
            # A query is its author's code; the text is there to be read.
            raise untrusted(f"run view {place}")
        version = view.current_version
        if "spark" not in view.dialects:
            raise UnsupportedError(
                f"Cannot read view {place}: it has no query in Spark's dialect",
                hint=f"Its dialects are: {', '.join(sorted(view.dialects)) or '(none)'}.",
            )
        session = self._session_of(place, version.default_catalog, version.default_namespace)
        frame = self._inner(session, self._views | {name})._query_of_view(
            f"read view {place}", place, view.sql_for("spark")
        )
        return self._as_declared(frame, view, place)

    def _as_declared(self, frame: Any, view: View, place: Place) -> Any:
        """Return a view's rows under its own columns, as WITH SCHEMA said: by place, named and typed as the view says.

        EVOLUTION is whatever the query gives now, TYPE EVOLUTION its types under the view's names. BINDING takes types
        that the view's are wider than; without it, and with COMPENSATION, values are cast.
        """
        mode, fields = view.properties.get(VIEW_SCHEMA_MODE, "COMPENSATION").upper(), view.schema.fields
        if not fields or mode == "EVOLUTION":
            return frame
        if len(frame.columns) != len(fields):
            raise InvalidRequestError(
                f"Cannot read view {place}: it has {len(fields)} columns, and its query now has {len(frame.columns)}",
                hint="Replace the view.",
            )
        renamed = frame.toDF(*(part.name for part in fields))
        if mode == "TYPE EVOLUTION":
            return renamed
        if mode == "BINDING":
            spark_room("store_assignment").check_bound(renamed, fields, str(place))
        cast = {
            part.name: spark_type_name(part.field_type)
            for part, (_, kind) in zip(fields, frame.dtypes, strict=True)
            if kind != spark_type_name(part.field_type)
        }
        return spark_room("column_values").cast_columns(renamed, cast) if cast else renamed

    def _query_of_view(self, what: str, place: Place, text: str) -> Any:
        """Return the DataFrame of a view's query, which somebody else may have written: a query and nothing more."""
        is_trusted = place.lake.trusts_views
        parsed = self._names.parse_view(self.spark, text)
        _check_view(what, parsed.find_refused(is_trusted=is_trusted))
        for one in parsed.names:
            if not is_trusted and one.kind == "relation" and _is_path(one.parts) and not self._is_ours(one.parts):
                _check_view(what, ("code", shown(one.parts)))
        frame, refused = parsed.to_view_frame(self._replacements(parsed), is_trusted=is_trusted)
        _check_view(what, refused)
        return frame

    def _session_of(self, place: Place, catalog: str | None, namespace: Name) -> SqlSession:
        """Return the names as a view sees them: from its own catalog and namespace, nothing temporary."""
        known = catalog if catalog in self.session.lakes else None
        if known is None and catalog != SPARK_CATALOG:
            known = place.lake_name
        return SqlSession(
            self.session.lakes,
            known,
            () if known is None else namespace,
            is_foreign_catalog=self.session.is_foreign_catalog,
        )

    def view_schema(self, text: str, place: Place) -> Schema:
        """Return the columns of a view's query; refuse one that uses something temporary, or the view itself."""
        name = (place.lake_name, *place.name)
        parsed = self._names.parse_query(self.spark, text)
        for one in parsed.names:
            if one.kind == "relation" and len(one.parts) == 1 and self.session.is_temporary_view(one.parts):
                raise InvalidRequestError(
                    f"Cannot create view {shown(name)}: it uses {one.parts[0]!r}, a temporary view that ends "
                    "with the session"
                )
        inner = self._inner(self.session, self._views | {name})
        return self.schema_of(inner._query_of_view(f"create view {place}", place, text))

    def current_namespace(self) -> Name:
        """Return the namespace of Spark's own catalog."""
        return (str(self._run("select current_schema()").first()[0]),)

    # Values and types

    def evaluate(self, expressions: Sequence[str]) -> tuple[Any, ...]:
        """Return the values of constant expressions."""
        parsed = self._names.parse_query(self.spark, "select " + ", ".join(expressions))
        return tuple(parsed.to_frame({}, self._args).first())

    def schema_of(self, frame: Any) -> Schema:
        """Return the schema of a DataFrame in the format's types."""
        schema: Schema = spark_room("types").from_spark_schema(frame.schema)
        return schema

    def column_text(self, column: Any) -> str:
        """Return a column expression as text."""
        return str(self._names.column_text(self.spark, column))

    def alias_of(self, frame: Any) -> str | None:
        """Return the alias of a DataFrame."""
        alias: str | None = self._names.alias_of(frame)
        return alias

    def setting(self, name: str) -> str | None:
        """Return a setting of the session."""
        value: str | None = self.spark.conf.get(name, None)
        return value

    # Expressions

    def spelled(self, text: str, ctes: Span | None = None) -> Spelled:
        """Return an expression whose subqueries name temporary views in place of lakes' tables."""
        if "select" not in text.lower() and "table" not in text.lower():
            return Spelled(text)
        defined = [] if ctes is None else [one.lower() for one in cte_names(ctes.text)]
        spans: list[tuple[int, int, str]] = []
        inner: set[str] = set()
        for one in self._names.find_in_expression(self.spark, text):
            if one.kind == "alias" or (one.kind == "relation" and not one.is_aliased):
                inner.add(one.parts[-1].lower())
            if one.kind != "relation" or one.start is None or one.stop is None:
                continue
            if len(one.parts) == 1 and one.parts[0].lower() in defined:
                assert ctes is not None
                frame = self.query(f"select * from {quote(one.parts[0])}", ctes.text)
            else:
                frame = self.find_frame(one)
            if frame is None:
                continue
            frame = spark_room("hidden_columns").show_named(frame, text)
            name = self.register(frame)
            start, stop = self._names.place_in_text(text, one)
            alias = "" if one.is_aliased else f" as {quote(one.parts[-1])}"
            spans.append((start, stop + 1, f"{name}{alias}"))
        return Spelled(replace_spans(text, spans), frozenset(inner))

    def register(self, frame: Any) -> str:
        """Make a temporary view of a DataFrame until the statement is over; return its name."""
        name = f"frazil_{uuid.uuid4().hex}"
        frame.createOrReplaceTempView(name)
        self._temporary.append(name)
        return name

    @contextmanager
    def statement(self) -> Iterator[SparkEngine]:
        """Drop, at the end, what expressions needed for a while."""
        try:
            yield self
        finally:
            while self._temporary:
                self.spark.catalog.dropTempView(self._temporary.pop())


def _choice(state: State) -> SnapshotChoice:
    return SnapshotChoice(state.snapshot_id, state.as_of_ms, state.reference)


def hidden_columns(scan: Scan) -> Schema:
    """Return the metadata columns that a scan has beside the table's own."""
    left_out = {part.name.lower() for part in scan.table_schema.fields}
    if scan.table.metadata.format_version < 3:
        left_out |= {part.name for part in ROW_LINEAGE_COLUMNS}
    if scan.changelog is not None:
        left_out.add(DELETED.name)
    names = tuple(one for one in (*METADATA_COLUMNS, PARTITION_NAME) if one not in left_out)
    return replace(scan, columns=names, changelog=None).schema if names else Schema(())


def find_view(place: Place) -> View | None:
    """Return the view of a name; None where there is none."""
    try:
        return place.lake.view(place.name)
    except NotFoundError:
        return None


def _check_view(what: str, refused: tuple[str, str] | None) -> None:
    """Refuse what is more than a query."""
    if refused is None:
        return
    kind, name = refused
    if kind == "command":
        raise InvalidRequestError(
            f"Cannot {what}: its text is a command to Spark ({name})",
            hint="A view is a query: SELECT, VALUES or TABLE.",
        )
    raise InvalidRequestError(
        f"Cannot {what}: its query uses {name}, which may run code or open files by their path",
        hint=f'If whoever writes views may do that, connect the lake with properties={{"{TRUSTED_VIEWS}": "true"}}.',
    )


def _is_path(parts: Name) -> bool:
    """Return whether a name can be a file by its path, as in csv.`/data/x.csv`."""
    return len(parts) == 2 and any(one in parts[1] for one in "/:\\")
