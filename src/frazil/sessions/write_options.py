"""What a write is told beside its rows: by its options, or by the session; and what DEFAULT means.

`jar/options.py` lists the options; what a write says counts before what the session says, and that before the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from frazil.commit.once import Once, parse_once
from frazil.errors import InvalidRequestError
from frazil.jar.options import SETTING_PREFIX, WRITE, WRITE_OPTIONS, Option, OptionList, check_settings
from frazil.spark.jvm.door import session_settings
from frazil.spark.write.store_assignment import place_columns
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.properties import DELETE_ISOLATION_LEVEL, WRITE_AUDIT_PUBLISH_ENABLED, read_property
from frazil.spec.types import NestedField
from frazil.sql.sql_literals import shown_literal
from frazil.table.sql_session import FullName
from frazil.table.table import Table
from frazil.verbs.write_overrides import WriteOverrides

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SNAPSHOT_PROPERTY = "snapshot-property."
ONCE_APPLICATION, ONCE_VERSION = "once-application", "once-version"
TXN_APPLICATION, TXN_VERSION = "txnappid", "txnversion"
"""Delta's names, in lower case."""
_ONCE_SETTINGS = {
    ONCE_APPLICATION: "spark.frazil.once-application",
    ONCE_VERSION: "spark.frazil.once-version",
    TXN_APPLICATION: "spark.databricks.delta.write.txnAppId",
    TXN_VERSION: "spark.databricks.delta.write.txnVersion",
}
WAP_BRANCH, WAP_ID = "spark.wap.branch", "spark.wap.id"


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """What a write is told: arguments of the verb, what counts in the place of the table's properties, and more."""

    arguments: dict[str, Any]
    overrides: WriteOverrides
    merges_schema: bool
    is_dynamic: bool
    """Whether an overwrite replaces the partitions that it has rows for, and no others."""


def read_write_options(
    spark: SparkSession,
    table: Table,
    branch: str | None,
    options: Mapping[str, str] | None = None,
    taken: OptionList = WRITE_OPTIONS,
) -> WriteOptions:
    """Return what a write's options and the session's settings say; refuse and warn as `jar/options.py` lists."""
    known = taken.check(options or {})
    of_session = session_settings(spark, "spark.")
    settings = check_settings(of_session)
    asked = {option.key: _value(option, known, settings) for option in WRITE}
    mode = asked["overwrite-mode"] or asked["partitionoverwritemode"] or "static"
    merges = asked["merge-schema"] or asked["mergeschema"] or "false"
    return WriteOptions(
        _arguments(of_session, table, branch, known, settings),
        _overrides(asked),
        merges.lower() == "true",
        mode.lower() == "dynamic",
    )


def _value(option: Option, known: Mapping[str, str], settings: Mapping[str, str]) -> str | None:
    found = known.get(option.key)
    if found is None and option.setting is not None:
        found = settings.get(option.setting.removeprefix(SETTING_PREFIX))
    return None if found is None else found.strip()


def _overrides(asked: Mapping[str, str | None]) -> WriteOverrides:
    properties = {
        taken.name: text for option in WRITE if (text := asked[option.key]) is not None for taken in option.sets
    }

    def whole(name: str) -> int | None:
        text = asked[name]
        return None if text is None else int(text)

    isolation = asked["isolation-level"]
    return WriteOverrides(
        FrozenMap(properties),
        asked["compression-codec"],
        asked["compression-level"],
        asked["compression-strategy"],
        whole("output-spec-id"),
        whole("output-sort-order-id"),
        None if isolation is None else DELETE_ISOLATION_LEVEL.value_type.parse(isolation),
        whole("validate-from-snapshot-id"),
        (asked["use-table-distribution-and-ordering"] or "true").lower() == "true",
    )


def create_options(spark: SparkSession, options: Mapping[str, str]) -> tuple[dict[str, str], WriteOverrides]:
    """Return what the writer of a new table says for the snapshot, and for how its rows are written."""
    known = WRITE_OPTIONS.check(options)
    if once_of_options(known) is not None:
        raise InvalidRequestError(
            "Cannot create a table with once-application: only writes to a table that is there happen once",
            hint="Create the table first, IF NOT EXISTS, and append to it once.",
        )
    settings = check_settings(session_settings(spark, SETTING_PREFIX))
    asked = {option.key: _value(option, known, settings) for option in WRITE}
    return {**snapshot_properties_of(settings), **snapshot_properties_of(known)}, _overrides(asked)


def _arguments(
    of_session: Mapping[str, str],
    table: Table,
    branch: str | None,
    known: Mapping[str, str],
    settings: Mapping[str, str],
) -> dict[str, Any]:
    """Return the branch, properties of the snapshot, and the name of a write that happens once.

    A branch in the name and one in the options must agree; where neither is given and the table allows it, the
    session's `spark.wap.branch` and `spark.wap.id` count.
    """
    given = known.get("branch")
    if branch is not None and given is not None and branch != given:
        raise InvalidRequestError(f"Cannot write to branch {branch!r} and branch {given!r} at once")
    branch = branch or given
    properties = {**snapshot_properties_of(settings), **snapshot_properties_of(known)}
    if read_property(table.properties, WRITE_AUDIT_PUBLISH_ENABLED):
        wap_branch, wap_id = of_session.get(WAP_BRANCH), of_session.get(WAP_ID)
        if wap_branch and wap_id:
            raise InvalidRequestError(f"Cannot write with both {WAP_BRANCH} and {WAP_ID}: unset one of them")
        if branch is None and wap_branch:
            branch = wap_branch
        if branch is None and wap_id:
            properties["wap.id"] = wap_id
    found: dict[str, Any] = {}
    once = once_of_options(known) or once_of_options(
        {name: value for name, key in _ONCE_SETTINGS.items() if (value := of_session.get(key)) is not None}
    )
    if once is not None:
        found["once"] = once
    if branch is not None:
        found["branch"] = branch
    if properties:
        found["snapshot_properties"] = properties
    return found


def once_of_options(options: Mapping[str, str]) -> Once | None:
    """Return the name of a write that happens once: options of frazil's names, or of Delta's; in lower case.

    A version of frazil's is a text; one of Delta's is a whole number, and in order.
    """
    pairs = ((ONCE_APPLICATION, ONCE_VERSION), (TXN_APPLICATION, TXN_VERSION))
    given = [pair for pair in pairs if any(name in options for name in pair)]
    if not given:
        return None
    if len(given) > 1:
        raise InvalidRequestError(
            f"Cannot write once by {ONCE_APPLICATION} and by {TXN_APPLICATION} at once: give one of them"
        )
    names = given[0]
    for name in names:
        if name not in options:
            other = next(option for option in names if option != name)
            raise InvalidRequestError(f"Cannot write once by {other} alone: {name} is not given")
    application, version = (options[name] for name in names)
    if names[1] == ONCE_VERSION:
        return parse_once((application, version))
    try:
        return parse_once((application, int(version)))
    except ValueError:
        raise InvalidRequestError(
            f"Cannot write once by {TXN_VERSION}={version!r}: it is no whole number",
            hint=f"Give a text by {ONCE_APPLICATION} and {ONCE_VERSION}.",
        ) from None


def snapshot_properties_of(options: Mapping[str, str]) -> dict[str, str]:
    """Return what a write's options say for the snapshot's summary."""
    known = {key.lower(): value for key, value in options.items()}
    prefix = len(SNAPSHOT_PROPERTY)
    return {key[prefix:]: value for key, value in known.items() if key.startswith(SNAPSHOT_PROPERTY)}


def by_place(
    frame: DataFrame, fields: Sequence[NestedField], full_name: FullName, *, may_differ: bool = False
) -> DataFrame:
    """Return a frame whose columns, and parts of structs in them, have the table's names, by position.

    Structs have as many parts as the table's, unless the write evolves the schema and they `may_differ`.
    """
    if len(frame.columns) != len(fields):
        raise InvalidRequestError(
            f"Cannot insert into {full_name}: {len(fields)} columns are written "
            f"({', '.join(field.name for field in fields)}), and the query has {len(frame.columns)}",
            hint="Name the columns after the table, or use INSERT INTO ... BY NAME.",
        )
    return place_columns(frame, fields, may_differ=may_differ)


def default_text(field: NestedField) -> str:
    """Return what DEFAULT means for a column, as an expression."""
    return shown_literal(field.write_default, field.field_type)
