"""The options of a write, from its options or from the session; and the meaning of DEFAULT.

`jar/options.py` lists the options; those of the write take precedence over the session's, and these over the table's.
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
    """The options of a write: arguments of the verb, overrides of the table's properties, and more."""

    arguments: dict[str, Any]
    overrides: WriteOverrides
    merges_schema: bool
    is_dynamic: bool
    """Whether an overwrite replaces only the partitions that it has rows for."""


def read_write_options(
    spark: SparkSession,
    table: Table,
    branch: str | None,
    options: Mapping[str, str] | None = None,
    option_list: OptionList = WRITE_OPTIONS,
) -> WriteOptions:
    """Return the options of a write from its options and the session's settings, checked as `jar/options.py` lists."""
    checked = option_list.check(options or {})
    of_session = session_settings(spark, "spark.")
    settings = check_settings(of_session)
    effective = {option.key: _value(option, checked, settings) for option in WRITE}
    mode = effective["overwrite-mode"] or effective["partitionoverwritemode"] or "static"
    merges = effective["merge-schema"] or effective["mergeschema"] or "false"
    return WriteOptions(
        _arguments(of_session, table, branch, checked, settings),
        _overrides(effective),
        merges.lower() == "true",
        mode.lower() == "dynamic",
    )


def _value(option: Option, options: Mapping[str, str], settings: Mapping[str, str]) -> str | None:
    text = options.get(option.key)
    if text is None and option.setting is not None:
        text = settings.get(option.setting.removeprefix(SETTING_PREFIX))
    return None if text is None else text.strip()


def _overrides(effective: Mapping[str, str | None]) -> WriteOverrides:
    properties = {
        overridden.name: text
        for option in WRITE
        if (text := effective[option.key]) is not None
        for overridden in option.sets
    }

    def whole(name: str) -> int | None:
        text = effective[name]
        return None if text is None else int(text)

    isolation = effective["isolation-level"]
    return WriteOverrides(
        FrozenMap(properties),
        effective["compression-codec"],
        effective["compression-level"],
        effective["compression-strategy"],
        whole("output-spec-id"),
        whole("output-sort-order-id"),
        None if isolation is None else DELETE_ISOLATION_LEVEL.value_type.parse(isolation),
        whole("validate-from-snapshot-id"),
        (effective["use-table-distribution-and-ordering"] or "true").lower() == "true",
    )


def create_options(spark: SparkSession, options: Mapping[str, str]) -> tuple[dict[str, str], WriteOverrides]:
    """Return the snapshot properties and overrides for a new table's writer."""
    checked = WRITE_OPTIONS.check(options)
    if once_of_options(checked) is not None:
        raise InvalidRequestError(
            "Cannot create a table with once-application: only writes to an existing table can be idempotent",
            hint="Create the table first, IF NOT EXISTS, then append with once-application.",
        )
    settings = check_settings(session_settings(spark, SETTING_PREFIX))
    effective = {option.key: _value(option, checked, settings) for option in WRITE}
    return {**snapshot_properties_of(settings), **snapshot_properties_of(checked)}, _overrides(effective)


def _arguments(
    of_session: Mapping[str, str],
    table: Table,
    branch: str | None,
    checked: Mapping[str, str],
    settings: Mapping[str, str],
) -> dict[str, Any]:
    """Return the branch, the snapshot properties, and the identity of an idempotent write.

    A branch in the name and one in the options must agree; if neither is set and the table allows it, the session's
    `spark.wap.branch` and `spark.wap.id` apply.
    """
    branch_option = checked.get("branch")
    if branch is not None and branch_option is not None and branch != branch_option:
        raise InvalidRequestError(f"Cannot write to branch {branch!r} and branch {branch_option!r} at once")
    branch = branch or branch_option
    properties = {**snapshot_properties_of(settings), **snapshot_properties_of(checked)}
    if read_property(table.properties, WRITE_AUDIT_PUBLISH_ENABLED):
        wap_branch, wap_id = of_session.get(WAP_BRANCH), of_session.get(WAP_ID)
        if wap_branch and wap_id:
            raise InvalidRequestError(f"Cannot write with both {WAP_BRANCH} and {WAP_ID}: unset one of them")
        if branch is None and wap_branch:
            branch = wap_branch
        if branch is None and wap_id:
            properties["wap.id"] = wap_id
    arguments: dict[str, Any] = {}
    once = once_of_options(checked) or once_of_options(
        {name: value for name, key in _ONCE_SETTINGS.items() if (value := of_session.get(key)) is not None}
    )
    if once is not None:
        arguments["once"] = once
    if branch is not None:
        arguments["branch"] = branch
    if properties:
        arguments["snapshot_properties"] = properties
    return arguments


def once_of_options(options: Mapping[str, str]) -> Once | None:
    """Return the identity of an idempotent write from options, with frazil's names or Delta's; in lower case.

    A frazil version is a text; a Delta version is an integer, in order.
    """
    pairs = ((ONCE_APPLICATION, ONCE_VERSION), (TXN_APPLICATION, TXN_VERSION))
    pairs_used = [pair for pair in pairs if any(name in options for name in pair)]
    if not pairs_used:
        return None
    if len(pairs_used) > 1:
        raise InvalidRequestError(
            f"Cannot write once by {ONCE_APPLICATION} and by {TXN_APPLICATION} at once: use one of them"
        )
    names = pairs_used[0]
    for name in names:
        if name not in options:
            other = next(option for option in names if option != name)
            raise InvalidRequestError(f"Cannot write once by {other} alone: {name} is missing")
    application, version = (options[name] for name in names)
    if names[1] == ONCE_VERSION:
        return parse_once((application, version))
    try:
        return parse_once((application, int(version)))
    except ValueError:
        raise InvalidRequestError(
            f"Cannot write once by {TXN_VERSION}={version!r}: it is not an integer",
            hint=f"Use a text with {ONCE_APPLICATION} and {ONCE_VERSION}.",
        ) from None


def snapshot_properties_of(options: Mapping[str, str]) -> dict[str, str]:
    """Return the snapshot properties in a write's options."""
    lower_options = {key.lower(): value for key, value in options.items()}
    prefix = len(SNAPSHOT_PROPERTY)
    return {key[prefix:]: value for key, value in lower_options.items() if key.startswith(SNAPSHOT_PROPERTY)}


def by_place(
    frame: DataFrame, fields: Sequence[NestedField], full_name: FullName, *, may_differ: bool = False
) -> DataFrame:
    """Rename the columns of a frame, and parts of their structs, to the table's names, by position.

    Structs must have as many parts as the table's, unless the write evolves the schema and they `may_differ`.
    """
    if len(frame.columns) != len(fields):
        raise InvalidRequestError(
            f"Cannot insert into {full_name}: the target has {len(fields)} columns "
            f"({', '.join(field.name for field in fields)}), but the query has {len(frame.columns)}",
            hint="Name the columns after the table, or use INSERT INTO ... BY NAME.",
        )
    return place_columns(frame, fields, may_differ=may_differ)


def default_text(field: NestedField) -> str:
    """Return the value of DEFAULT for a column, as an expression."""
    return shown_literal(field.write_default, field.field_type)
