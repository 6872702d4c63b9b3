"""Options of Spark readers and writers and settings of Spark sessions, with their treatment.

Each is honoured, refused or ignored with a warning. This list is used by all code that reads options, by
`docs/options.md` (`tools/options_markdown.py`) and by `frazil doctor`. Names are those of Iceberg Java (1.12) if it has
them; names that other formats and Spark's built-in files use are at the end. Names are case-insensitive, as in Spark.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, Literal

from frazil.errors import InvalidRequestError, UnsupportedError
from frazil.spec import properties as p
from frazil.spec.property_kinds import LONG_MAX, AnyText, Choice, Flag, Property, Text, ValueType, Whole

Answer = Literal["honoured", "same", "refused", "warned"]
PROJECT: Final = "https://pypi.org/project/frazil/"
SETTING_PREFIX: Final = "spark.sql.iceberg."


@dataclass(frozen=True, slots=True)
class Option:
    """An option or a setting: its allowed values, its treatment and the reason.

    A name that ends with a star is a prefix. `sets` are the table properties that it overrides for one write or
    read. `fine` are values that need no warning, since they request the actual behaviour.
    """

    name: str
    value_type: ValueType[object]
    answer: Answer
    note: str
    sets: tuple[Property[object], ...] = ()
    fine: tuple[str, ...] = ()
    setting: str | None = None
    """The equivalent session setting, which the option overrides."""
    decides_rows: bool = False
    """Whether rows would be wrong without it, so that it is refused, not ignored, if it cannot be honoured."""

    @property
    def key(self) -> str:
        """The name in the form used for comparison."""
        return self.name.lower()


def _honoured(
    name: str,
    value_type: ValueType[object],
    note: str,
    *,
    sets: tuple[Property[object], ...] = (),
    setting: str | None = None,
) -> Option:
    return Option(name, value_type, "honoured", note, sets, (), None if setting is None else SETTING_PREFIX + setting)


def _deciding_rows(name: str, value_type: ValueType[object], note: str, *fine: str) -> Option:
    return Option(name, value_type, "honoured", note, (), fine, decides_rows=True)


def _warned(name: str, value_type: ValueType[object], note: str, *fine: str, setting: str | None = None) -> Option:
    return Option(name, value_type, "warned", note, (), fine, None if setting is None else SETTING_PREFIX + setting)


def _refused(name: str, value_type: ValueType[object], note: str, *fine: str) -> Option:
    return Option(name, value_type, "refused", note, (), fine)


def _for_property(
    prop: Property[object], note: str, name: str, *more: Property[object], setting: str | None = None
) -> Option:
    return _honoured(name, prop.value_type, note, sets=(prop, *more), setting=setting)


_ANY = AnyText("any text")
_FLAG = Flag()
_ID = Whole(-(2**63), LONG_MAX)
_MS = Whole(0, LONG_MAX, "ms")
_NAMES = Text("names separated by commas")
_CODEC = Choice(
    ("zstd", "gzip", "snappy", "lz4", "lz4_raw", "brotli", "uncompressed", "zlib", "lzo", "none"),
)
_OWN_READERS = "files are read by Spark's built-in readers, with Spark's settings"
_PLANNED_HERE = "scans are planned in this process"
_NOT_CACHED = "executors cache no deletes: the plan contains them"

READ: Final = (
    _honoured("branch", Text("a branch"), "the branch to read"),
    _honoured("tag", Text("a tag"), "the tag to read; the newest jar refuses it"),
    _honoured("snapshot-id", _ID, "the snapshot to read; the newest jar refuses it"),
    _honoured("as-of-timestamp", _MS, "reads the snapshot that was current then; the newest jar refuses it"),
    _honoured("versionAsOf", Text("a snapshot's id, a branch or a tag"), "the snapshot, branch or tag to read"),
    _honoured(
        "timestampAsOf",
        Text("a time, by default in the session's time zone"),
        "reads the snapshot that was current then",
    ),
    _deciding_rows("start-snapshot-id", _ID, "reads rows appended after it; with `changes`, the window's start"),
    _deciding_rows("end-snapshot-id", _ID, "reads rows appended up to it; with `changes`, the window's end"),
    _deciding_rows("start-timestamp", _MS, "the window's start; for `changes` only"),
    _deciding_rows("end-timestamp", _MS, "the window's end; for `changes` only"),
    _for_property(p.SPLIT_SIZE, "bytes that one task reads", "split-size", setting="read.split-size"),
    _for_property(p.SPLIT_OPEN_FILE_COST, "bytes that opening a file counts for", "file-open-cost"),
    _for_property(
        p.SPLIT_LOOKBACK, "groups kept open while splits are packed, for files that Python reads", "lookback"
    ),
    _honoured(
        "path",
        Text("a name or a location"),
        "the table, with `format`; refused if it contradicts a table name",
    ),
    _warned("vectorization-enabled", _FLAG, _OWN_READERS, setting="vectorization.enabled"),
    _warned("batch-size", Whole(1, LONG_MAX), _OWN_READERS),
    _warned("locality", _FLAG, "Spark asks the file system where files are", setting="locality.enabled"),
    _warned(
        "aggregate-push-down-enabled",
        _FLAG,
        "aggregates read footers, as Spark does for Parquet",
        "false",
        setting="aggregate-push-down.enabled",
    ),
)
SOURCE: Final = (
    _deciding_rows("columns", _NAMES, "for `register_source`: the columns to read; elsewhere use `select`"),
    _deciding_rows("filter", Text("a condition"), "for `register_source`: the rows to read; elsewhere use `where`"),
)
_VERSION = Text("a sequence number, a snapshot's id, a branch or a tag")
_TIME = Text("a time, by default in the session's time zone")
_WITH_FEED = "with `readChangeFeed`"
CHANGE_FEED: Final = (
    _deciding_rows("readChangeFeed", _FLAG, "`true`: reads a table's changed rows, with the kind of change", "false"),
    _deciding_rows("startingVersion", _VERSION, f"{_WITH_FEED}: the first version; 0 is before all versions"),
    _deciding_rows("endingVersion", _VERSION, f"{_WITH_FEED}: the last version; streams have none"),
    _deciding_rows("startingTimestamp", _TIME, f"{_WITH_FEED}: the first time"),
    _deciding_rows("endingTimestamp", _TIME, f"{_WITH_FEED}: the last time; streams have none"),
    _deciding_rows("startingBoundInclusive", _FLAG, f"{_WITH_FEED}: whether the first version is included"),
    _deciding_rows("endingBoundInclusive", _FLAG, f"{_WITH_FEED}: whether the last version is included"),
    _deciding_rows(
        "deduplicationMode",
        Choice(("none", "dropCarryovers", "netChanges")),
        f"{_WITH_FEED}: whether to include rows that were merely copied, or only net changes (not for streams)",
    ),
    _deciding_rows("computeUpdates", _FLAG, f"{_WITH_FEED}: whether updates are reported as updates"),
    _honoured("identifier-columns", _NAMES, f"{_WITH_FEED}: the columns that match the two rows of an update"),
)
STREAM_READ: Final = (
    _honoured("stream-from-timestamp", _MS, "the start of a stream"),
    _honoured("stream-from-snapshot", Text("earliest, latest or a snapshot's id"), "the start of a stream"),
    _honoured("stream-after-snapshot", _ID, "the start of a stream"),
    _honoured("streaming-skip-delete-snapshots", _FLAG, "skips snapshots of deletes"),
    _honoured("streaming-skip-overwrite-snapshots", _FLAG, "skips snapshots of overwrites"),
    _honoured(
        "streaming-changes", Choice(("error", "skip", "added-files", "changes")), "the treatment of changed rows"
    ),
    _honoured("streaming-max-files-per-micro-batch", Whole(1, LONG_MAX), "the limit of a batch"),
    _honoured("streaming-max-rows-per-micro-batch", Whole(1, LONG_MAX), "the limit of a batch"),
    _honoured("streaming-max-bytes-per-micro-batch", Whole(1, LONG_MAX), "the limit of a batch"),
    _honoured("identifier-columns", _NAMES, "for changes: the columns that match the two rows of an update"),
    _honoured("compute-updates", _FLAG, "for changes: whether updates are reported as updates"),
    _deciding_rows(
        "deduplicationMode",
        Choice(("none", "dropCarryovers")),
        "for changes: whether to include rows that were merely copied",
    ),
    _honoured("stream-guard", Text("a name"), "expiry retains snapshots that the stream of that name still needs"),
    _warned(
        "async-micro-batch-planning-enabled",
        _FLAG,
        "batches are planned when Spark asks for them",
        "false",
        setting="async-micro-batch-planning-enabled",
    ),
    _warned("streaming-snapshot-polling-interval-ms", _MS, "batches are planned when Spark asks for them"),
    _warned("async-queue-preload-file-limit", Whole(0, LONG_MAX), "batches are planned when Spark asks for them"),
    _warned("async-queue-preload-row-limit", Whole(0, LONG_MAX), "batches are planned when Spark asks for them"),
)

_WRITE_MODES = (p.DELETE_DISTRIBUTION_MODE, p.UPDATE_DISTRIBUTION_MODE, p.MERGE_DISTRIBUTION_MODE)
WRITE: Final = (
    _honoured("branch", Text("a branch"), "the branch to write; it must match a branch in the table name"),
    _honoured("snapshot-property.*", _ANY, "is added to the snapshot's summary", setting="snapshot-property.*"),
    _honoured(
        "mergeSchema",
        _FLAG,
        "adds the columns that the table lacks, if it has `write.spark.accept-any-schema`",
        setting="merge-schema",
    ),
    _honoured("merge-schema", _FLAG, "the same as `mergeSchema`"),
    _honoured(
        "overwrite-mode",
        Choice(("static", "dynamic")),
        "`dynamic`: overwrites replace the partitions of the written rows",
    ),
    _honoured(
        "partitionOverwriteMode",
        Choice(("static", "dynamic")),
        "the Spark name for `overwrite-mode`, which overrides it",
    ),
    _for_property(p.DEFAULT_FILE_FORMAT, "format of data files", "write-format"),
    _for_property(p.DELETE_DEFAULT_FILE_FORMAT, "format of delete files", "delete-format"),
    _for_property(p.WRITE_TARGET_FILE_SIZE_BYTES, "size of data files", "target-file-size-bytes"),
    _for_property(p.DELETE_TARGET_FILE_SIZE_BYTES, "size of delete files", "target-delete-file-size-bytes"),
    _honoured("compression-codec", _CODEC, "codec of the written format", setting="compression-codec"),
    _honoured("compression-level", Whole(-131_072, 22), "level of the codec", setting="compression-level"),
    _honoured(
        "compression-strategy",
        Choice(("speed", "compression")),
        "for ORC files",
        setting="compression-strategy",
    ),
    _for_property(
        p.WRITE_DISTRIBUTION_MODE,
        "how rows are distributed before they are written",
        "distribution-mode",
        *_WRITE_MODES,
        setting="distribution-mode",
    ),
    _for_property(
        p.SPARK_FANOUT_ENABLED, "keeps a file open for each partition instead of sorting by partition", "fanout-enabled"
    ),
    _for_property(
        p.SPARK_ADVISORY_PARTITION_SIZE_BYTES,
        "bytes of rows per write task",
        "advisory-partition-size",
        setting="advisory-partition-size",
    ),
    _for_property(p.DELETE_GRANULARITY, "whether each delete file covers a single data file", "delete-granularity"),
    _honoured("isolation-level", p.DELETE_ISOLATION_LEVEL.value_type, "which concurrent changes fail the write"),
    _honoured("validate-from-snapshot-id", _ID, "concurrent changes since then fail an overwrite"),
    _honoured("output-spec-id", Whole(0, LONG_MAX), "the partition spec of new files"),
    _honoured("output-sort-order-id", Whole(0, LONG_MAX), "the sort order of new files"),
    _honoured("use-table-distribution-and-ordering", _FLAG, "`false`: rows are written without a shuffle or a sort"),
    Option(
        "check-nullability",
        _FLAG,
        "same",
        "nulls in required columns are always refused, row by row; nullable columns without nulls are accepted",
        setting=SETTING_PREFIX + "check-nullability",
    ),
    Option(
        "check-ordering",
        _FLAG,
        "same",
        "columns are matched by name, so that their order never matters; `insertInto` matches by position",
        setting=SETTING_PREFIX + "check-ordering",
    ),
    _honoured("once-application", Text("an application"), "makes a write idempotent"),
    _honoured("once-version", Text("a version"), "makes a write idempotent"),
    _honoured("txnAppId", Text("an application"), "the Delta name for `once-application`"),
    _honoured("txnVersion", Whole(0, LONG_MAX), "the Delta name for `once-version`"),
    _honoured(
        "path",
        Text("a name or a location"),
        "the table, with `format` and `save`; the location of a new table; refused if it contradicts a table name",
    ),
    _warned("shred-variants", _FLAG, "variants are written whole", "false", setting="shred-variants"),
    _warned(
        "variant-inference-buffer-size",
        Whole(1, LONG_MAX),
        "variants are written whole",
        setting="variant-inference-buffer-size",
    ),
)
STREAM_WRITE: Final = (
    _honoured("checkpointLocation", Text("a folder"), "for `writeStream`: handled by Spark"),
    _honoured("queryName", Text("a name"), "for `writeStream`: handled by Spark"),
    _deciding_rows(
        "upsert-keys", _NAMES, "for `writeStream` in update mode; elsewhere use MERGE, or `upsert` of a table"
    ),
    _honoured("compact-every-batches", Text("a whole number above 0"), "for `writeStream`: compacts between batches"),
    _honoured("compact-every-bytes", Text("a whole number above 0"), "for `writeStream`: compacts between batches"),
    _honoured("compact.*", _ANY, "for `writeStream`: options of that compaction"),
    Option(
        "use-merge-append-for-streaming",
        _FLAG,
        "refused",
        "`false`: the table property `commit.manifest-merge.enabled` determines whether manifests are merged",
        fine=("true",),
    ),
)

_FORMATS = "an option of Spark's built-in files or of another format; set the table property, or omit it"
FOREIGN: Final = (
    _refused("replaceWhere", _ANY, "from Delta: use `df.writeTo(t).overwrite(condition)`"),
    _refused("readChangeData", _FLAG, "from Delta: the older name of `readChangeFeed`", "false"),
    _refused("ignoreDeletes", _FLAG, "from Delta: use `streaming-skip-delete-snapshots`", "false"),
    _refused("ignoreChanges", _FLAG, "from Delta: use `streaming-changes=added-files`", "false"),
    _refused("skipChangeCommits", _FLAG, "from Delta: use `streaming-changes=skip`", "false"),
    _warned("maxFilesPerTrigger", _ANY, "use `streaming-max-files-per-micro-batch`"),
    _warned("maxBytesPerTrigger", _ANY, "use `streaming-max-bytes-per-micro-batch`"),
    _warned("withEventTimeOrder", _FLAG, "from Delta: files are read in commit order", "false"),
    _warned("failOnDataLoss", _FLAG, "lost unread data always fails a stream", "true"),
    _warned("schemaTrackingLocation", _ANY, "from Delta: a stream must be restarted after its columns change"),
    _warned("overwriteSchema", _FLAG, "from Delta: use `createOrReplace`, or `saveAsTable` in mode overwrite"),
    _warned("userMetadata", _ANY, "from Delta: use `snapshot-property.<name>`"),
    _warned("dataChange", _FLAG, "from Delta: compaction is `CALL lake.system.rewrite_data_files`"),
    _warned("maxRecordsPerFile", _ANY, "use `target-file-size-bytes`"),
    _warned("compression", _ANY, "use `compression-codec`"),
    _warned("hoodie.*", _ANY, "from Hudi"),
    _warned("parquet.*", _ANY, _FORMATS),
    _warned("orc.*", _ANY, _FORMATS),
    _warned("avro*", _ANY, _FORMATS),
    *(
        _warned(name, _ANY, _FORMATS)
        for name in (
            *("header", "inferSchema", "sep", "delimiter", "quote", "escape", "encoding", "mode", "nullValue"),
            *("dateFormat", "timestampFormat", "multiLine", "pathGlobFilter", "recursiveFileLookup", "basePath"),
            *("modifiedBefore", "modifiedAfter", "ignoreCorruptFiles", "ignoreMissingFiles", "primitivesAsString"),
        )
    ),
)

_SETTINGS_ALONE = (
    _warned("planning.preserve-data-grouping", _FLAG, "storage-partitioned joins are not supported", "false"),
    _warned("data-planning-mode", p.DATA_PLANNING_MODE.value_type, _PLANNED_HERE, "auto", "local"),
    _warned("delete-planning-mode", p.DELETE_PLANNING_MODE.value_type, _PLANNED_HERE, "auto", "local"),
    _warned("executor-cache.enabled", _FLAG, _NOT_CACHED, "false"),
    _warned("executor-cache.delete-files.enabled", _FLAG, _NOT_CACHED, "false"),
    _warned("executor-cache.timeout", _ANY, _NOT_CACHED),
    _warned("executor-cache.max-entry-size", _ANY, _NOT_CACHED),
    _warned("executor-cache.max-total-size", _ANY, _NOT_CACHED),
    _warned("executor-cache.locality.enabled", _FLAG, _NOT_CACHED, "false"),
    _warned("parquet.reader-type", _ANY, _OWN_READERS),
    _warned("report-column-stats", _FLAG, "`spark.sql.cbo.enabled` determines whether the optimiser gets statistics"),
    _warned("identifier-fields-rely", _FLAG, "identifier fields are not used by the optimiser", "false"),
    _warned("read.adaptive-split-size.enabled", _FLAG, "splits follow `spark.sql.files.*` and the table"),
    _warned("read.adaptive-split-size.parallelism", Whole(1, LONG_MAX), "splits follow `spark.sql.files.*`"),
)


def _settings() -> tuple[Option, ...]:
    """Return the settings of Iceberg Java; those equivalent to an option are treated like it."""
    named = [
        Option(
            option.setting,
            option.value_type,
            option.answer,
            f"like the option `{option.name}`: {option.note}",
            option.sets,
            option.fine,
        )
        for option in (*READ, *STREAM_READ, *WRITE)
        if option.setting is not None
    ]
    alone = [
        Option(SETTING_PREFIX + option.name, option.value_type, option.answer, option.note, (), option.fine)
        for option in _SETTINGS_ALONE
    ]
    return (
        *sorted((*named, *alone), key=lambda option: option.name),
        _honoured("spark.wap.id", _ANY, "writes are staged, if the table has `write.wap.enabled`"),
        _honoured("spark.wap.branch", _ANY, "writes go to a branch, if the table has `write.wap.enabled`"),
    )


SETTINGS: Final = _settings()
_STREAM_PREFIXES: Final = ("stream-", "streaming-")


class OptionList:
    """The options that an operation accepts, by name, with the treatment of all other options."""

    def __init__(
        self,
        what: str,
        accepted: Iterable[Option],
        elsewhere: Iterable[tuple[str, Iterable[Option]]],
        heading: str,
    ) -> None:
        self.what = what
        self.heading = heading
        self._accepted = {option.key: option for option in accepted}
        self._elsewhere: dict[str, Option] = {}
        for where, options in elsewhere:
            for option in options:
                self._elsewhere.setdefault(option.key, _elsewhere(option, where))
        self._foreign = {option.key: option for option in FOREIGN}

    @property
    def names(self) -> list[str]:
        """The names of the options that have an effect."""
        return sorted(option.name for option in self._accepted.values() if option.answer in ("honoured", "same"))

    def find(self, name: str) -> Option | None:
        """Return an option by name, or None if it is unrecognised."""
        lower = name.lower()
        for options in (self._accepted, self._elsewhere, self._foreign):
            match = options.get(lower) or next(
                (option for key, option in options.items() if key.endswith("*") and lower.startswith(key[:-1])), None
            )
            if match is not None:
                return match
        return None

    def check_name(self, name: str) -> None:
        """Refuse an unrecognised name that resembles an option or has a prefix that only Iceberg uses."""
        near = get_close_matches(name.lower(), [*self._accepted], n=1, cutoff=0.75)
        if near or name.lower().startswith(_STREAM_PREFIXES):
            meant = f"Did you mean {self._accepted[near[0]].name}? " if near else ""
            raise InvalidRequestError(
                f"Cannot {self.what} with the option {name!r}: there is no such option",
                hint=f"{meant}The options are: {', '.join(self.names)}.",
            )

    def check(self, options: Mapping[str, object]) -> dict[str, str]:
        """Return the effective options by lower-case name, refusing and warning about others."""
        effective: dict[str, str] = {}
        ignored: list[str] = []
        for name, value in options.items():
            if value is None:
                continue
            text = str(value)
            option = self.find(name)
            if option is None:
                self.check_name(name)
                ignored.append(f"{name} (unknown)")
                continue
            is_fine = text.strip().lower() in option.fine
            if not is_fine and option.answer == "refused":
                raise UnsupportedError(f"Cannot {self.what} with the option {name}={text!r}: {_plain(option.note)}")
            if option.key in self._accepted:
                check_value(option, name, text, f"Cannot {self.what} with the option")
            if is_fine or option.answer != "warned":
                effective[name.lower()] = text
            else:
                ignored.append(f"{name} ({_plain(option.note)})")
        warn(f"To {self.what}, these options do nothing", ignored, self.heading)
        return effective


def _elsewhere(option: Option, where: str) -> Option:
    """Return an option in a place where it has no effect."""
    answer: Answer = "refused" if option.decides_rows else "warned"
    return Option(option.name, option.value_type, answer, f"{where}: {option.note}", (), option.fine)


def check_value(option: Option, name: str, text: str, cannot: str) -> None:
    """Refuse an invalid value of an option or a setting."""
    if option.value_type.parse(text.strip()) is None:
        raise InvalidRequestError(
            f"{cannot} {name}={text[:60]!r}: it is not allowed", hint=f"Set it to {option.value_type.allowed}."
        )


def warn(what: str, ignored: list[str], heading: str) -> None:
    """Warn about ignored options, naming the section of `docs/options.md` that explains them."""
    if ignored:
        page = f"docs/options.md#{heading.lower().replace(' ', '-')} of {PROJECT}"
        warnings.warn(f"{what}: {', '.join(sorted(ignored))}. See {page}", stacklevel=4)


def check_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the honoured settings `spark.sql.iceberg.*`, without their prefix; warn about the others."""
    effective: dict[str, str] = {}
    ignored: list[str] = []
    for name, text in settings.items():
        if not name.startswith(SETTING_PREFIX):
            continue
        option = find_setting(name)
        if option is None:
            check_setting_name(name)
            ignored.append(f"{name} (unknown)")
            continue
        check_value(option, name, text, "Cannot use the setting")
        if option.answer in ("honoured", "same"):
            effective[name.removeprefix(SETTING_PREFIX)] = text
        elif text.strip().lower() not in option.fine:
            ignored.append(f"{name} ({_plain(option.note)})")
    warn("These settings do nothing", ignored, SETTINGS_HEADING)
    return effective


def check_setting_name(name: str) -> None:
    """Refuse an unrecognised setting whose name resembles another."""
    names = {setting.name.removeprefix(SETTING_PREFIX): setting.name for setting in SETTINGS}
    near = get_close_matches(name.removeprefix(SETTING_PREFIX), [*names], n=1, cutoff=0.75)
    if near:
        raise InvalidRequestError(
            f"Cannot use the setting {name!r}: there is no such setting", hint=f"Did you mean {names[near[0]]}?"
        )


def find_setting(name: str) -> Option | None:
    """Return a session setting by name, or None if it is unrecognised."""
    return next(
        (
            setting
            for setting in SETTINGS
            if setting.name == name or (setting.name[-1] == "*" and name.startswith(setting.name[:-1]))
        ),
        None,
    )


def _plain(note: str) -> str:
    return note.replace("`", "")


def _named(options: Iterable[Option], *names: str) -> tuple[Option, ...]:
    return tuple(option for option in options if option.name in names)


READ_HEADING: Final = "Read options"
CHANGE_FEED_HEADING: Final = "Options of change feeds"
STREAM_READ_HEADING: Final = "Options of streams that read"
WRITE_HEADING: Final = "Write options"
STREAM_WRITE_HEADING: Final = "Options of streams that write"
SETTINGS_HEADING: Final = "Settings of the session"

_STATES = _named(READ, "branch", "tag", "snapshot-id", "as-of-timestamp", "versionAsOf", "timestampAsOf")
_PATH = _named(READ, "path")
_WINDOW = tuple(option for option in READ if option.decides_rows)
_OF_READS = ("an option of reads", READ)
_OF_SOURCES = ("an option of Spark's Python sources", SOURCE)
_OF_FEEDS = ("an option of change feeds", CHANGE_FEED)
_OF_STREAMS = ("an option of readStream", STREAM_READ)
_OF_WRITES = ("an option of writes", WRITE)
_OF_SINKS = ("an option of writeStream", STREAM_WRITE)
_READS = (_OF_READS, _OF_SOURCES, _OF_FEEDS, _OF_STREAMS, _OF_WRITES, _OF_SINKS)

READ_OPTIONS: Final = OptionList("read a table", READ, _READS, READ_HEADING)
SOURCE_OPTIONS: Final = OptionList("read a table", (*READ, *SOURCE), _READS, READ_HEADING)
METADATA_OPTIONS: Final = OptionList("read a metadata table", (*_STATES, *_PATH), _READS, READ_HEADING)
VIEW_OPTIONS: Final = OptionList("read a view", _PATH, _READS, READ_HEADING)
CHANGE_FEED_OPTIONS: Final = OptionList(
    "read changes", (*CHANGE_FEED, *_named(READ, "branch"), *_PATH), _READS, CHANGE_FEED_HEADING
)
_CUT = _named(READ, "branch", "split-size", "file-open-cost")
_NO_END = "a stream has no end, and its start is set otherwise: use `stream-from-snapshot`, `stream-after-snapshot`, "
_NO_STATES = tuple(
    _refused(option.name, option.value_type, _NO_END + "`stream-from-timestamp` or `branch`")
    for option in (*_STATES, *_WINDOW)
    if option.name != "branch"
)
STREAM_READ_OPTIONS: Final = OptionList(
    "stream a table", (*STREAM_READ, *_CUT, *_PATH, *_NO_STATES), _READS, STREAM_READ_HEADING
)
_SHARED = tuple(
    option
    for option in STREAM_READ
    if option.answer == "warned" or option.name.startswith("streaming-max-") or option.name == "stream-guard"
)
_NO_FEED = tuple(
    _refused(
        option.name,
        option.value_type,
        "a change feed has options of its own (`startingVersion`, `computeUpdates`)",
        *fine,
    )
    for option in STREAM_READ
    for fine in ({"streaming-changes": ("changes",)}.get(option.name, ("false",)),)
    if option not in _SHARED
)
STREAM_FEED_OPTIONS: Final = OptionList(
    "stream changes", (*_NO_FEED, *CHANGE_FEED, *_SHARED, *_CUT, *_PATH, *_NO_STATES), _READS, CHANGE_FEED_HEADING
)

_WRITES = (_OF_WRITES, _OF_SINKS, _OF_READS, _OF_SOURCES, _OF_FEEDS, _OF_STREAMS)
WRITE_OPTIONS: Final = OptionList("write to a table", WRITE, _WRITES, WRITE_HEADING)
_BY_MODE = tuple(
    _refused(option.name, option.value_type, "the output mode determines the treatment of rows", "static")
    for option in _named(WRITE, "overwrite-mode", "partitionOverwriteMode")
)
STREAM_WRITE_OPTIONS: Final = OptionList(
    "stream to a table", (*WRITE, *_BY_MODE, *STREAM_WRITE), _WRITES, STREAM_WRITE_HEADING
)
