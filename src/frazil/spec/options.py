"""Options of Spark's readers and writers and settings of its sessions: each is honoured, refused or warned about.

One list for everything that reads options, for `docs/options.md` (`tools/options_markdown.py`) and for `frazil doctor`.
Names are Iceberg Java's (1.12) where it has them; what other formats and Spark's own files call by other names stands
at the end. Names are compared without regard to case, as Spark does.
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
    """An option or a setting: what may be given, what becomes of it, and why.

    A name that ends with a star is a prefix. `sets` are the table's properties whose place it takes for one write or
    read. `fine` are values of what is warned about that ask for what happens anyway.
    """

    name: str
    value_type: ValueType[object]
    answer: Answer
    note: str
    sets: tuple[Property[object], ...] = ()
    fine: tuple[str, ...] = ()
    setting: str | None = None
    """The setting of the session that says the same; the option counts before it."""
    decides_rows: bool = False
    """Whether rows would be wrong without it: where it cannot be honoured, it is refused and not warned about."""

    @property
    def key(self) -> str:
        """The name as it is compared."""
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


def _of_rows(name: str, value_type: ValueType[object], note: str, *fine: str) -> Option:
    return Option(name, value_type, "honoured", note, (), fine, decides_rows=True)


def _warned(name: str, value_type: ValueType[object], note: str, *fine: str, setting: str | None = None) -> Option:
    return Option(name, value_type, "warned", note, (), fine, None if setting is None else SETTING_PREFIX + setting)


def _refused(name: str, value_type: ValueType[object], note: str, *fine: str) -> Option:
    return Option(name, value_type, "refused", note, (), fine)


def _of(prop: Property[object], note: str, name: str, *more: Property[object], setting: str | None = None) -> Option:
    return _honoured(name, prop.value_type, note, sets=(prop, *more), setting=setting)


_ANY = AnyText("any text")
_FLAG = Flag()
_ID = Whole(-(2**63), LONG_MAX)
_MS = Whole(0, LONG_MAX, "ms")
_NAMES = Text("names separated by commas")
_CODEC = Choice(
    ("zstd", "gzip", "snappy", "lz4", "lz4_raw", "brotli", "uncompressed", "zlib", "lzo", "none"),
)
_OWN_READERS = "Spark's own readers read, by Spark's settings"
_PLANNED_HERE = "scans are planned in this process"
_NOT_CACHED = "executors keep no deletes: they travel in the plan"

READ: Final = (
    _honoured("branch", Text("a branch"), "the branch that is read"),
    _honoured("tag", Text("a tag"), "the tag that is read; the newest jar refuses it"),
    _honoured("snapshot-id", _ID, "the snapshot that is read; the newest jar refuses it"),
    _honoured("as-of-timestamp", _MS, "what was current then; the newest jar refuses it"),
    _honoured("versionAsOf", Text("a snapshot's id, a branch or a tag"), "the snapshot, branch or tag that is read"),
    _honoured("timestampAsOf", Text("a time, in the session's zone where it names none"), "what was current then"),
    _of_rows("start-snapshot-id", _ID, "what was appended after it; with `changes`, the window's start"),
    _of_rows("end-snapshot-id", _ID, "what was appended up to it; with `changes`, the window's end"),
    _of_rows("start-timestamp", _MS, "the window's start; of `changes` only, refused elsewhere"),
    _of_rows("end-timestamp", _MS, "the window's end; of `changes` only, refused elsewhere"),
    _of(p.SPLIT_SIZE, "bytes that one task reads", "split-size", setting="read.split-size"),
    _of(p.SPLIT_OPEN_FILE_COST, "bytes that opening a file counts for", "file-open-cost"),
    _of(p.SPLIT_LOOKBACK, "groups kept open while splits are packed, of files that Python reads", "lookback"),
    _honoured(
        "path",
        Text("a name or a location"),
        "the table, with `format`; refused beside a table's name, where it is another one's",
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
    _of_rows("columns", _NAMES, "of `register_source`: the columns that are read; elsewhere use `select`"),
    _of_rows("filter", Text("a condition"), "of `register_source`: the rows that are read; elsewhere use `where`"),
)
_VERSION = Text("a sequence number, a snapshot's id, a branch or a tag")
_TIME = Text("a time, in the session's zone where it names none")
_WITH_FEED = "with `readChangeFeed`"
CHANGE_FEED: Final = (
    _of_rows("readChangeFeed", _FLAG, "`true`: the rows that changed, and how, of a table by its name", "false"),
    _of_rows("startingVersion", _VERSION, f"{_WITH_FEED}: the first version; 0 is before all"),
    _of_rows("endingVersion", _VERSION, f"{_WITH_FEED}: the last version; streams have none"),
    _of_rows("startingTimestamp", _TIME, f"{_WITH_FEED}: where it begins"),
    _of_rows("endingTimestamp", _TIME, f"{_WITH_FEED}: where it ends; streams have none"),
    _of_rows("startingBoundInclusive", _FLAG, f"{_WITH_FEED}: whether what it begins with is part of it"),
    _of_rows("endingBoundInclusive", _FLAG, f"{_WITH_FEED}: whether what it ends with is part of it"),
    _of_rows(
        "deduplicationMode",
        Choice(("none", "dropCarryovers", "netChanges")),
        f"{_WITH_FEED}: whether rows that were merely copied are there, or only what is left of all changes; "
        "net changes are not of streams",
    ),
    _of_rows("computeUpdates", _FLAG, f"{_WITH_FEED}: whether updates are told as such"),
    _honoured("identifier-columns", _NAMES, f"{_WITH_FEED}: what makes two rows an update"),
)
STREAM_READ: Final = (
    _honoured("stream-from-timestamp", _MS, "where a stream begins"),
    _honoured("stream-from-snapshot", Text("earliest, latest or a snapshot's id"), "where a stream begins"),
    _honoured("stream-after-snapshot", _ID, "where a stream begins"),
    _honoured("streaming-skip-delete-snapshots", _FLAG, "snapshots of deletes are left out"),
    _honoured("streaming-skip-overwrite-snapshots", _FLAG, "snapshots of overwrites are left out"),
    _honoured("streaming-changes", Choice(("error", "skip", "added-files", "changes")), "what becomes of changed rows"),
    _honoured("streaming-max-files-per-micro-batch", Whole(1, LONG_MAX), "how much a batch reads"),
    _honoured("streaming-max-rows-per-micro-batch", Whole(1, LONG_MAX), "how much a batch reads"),
    _honoured("streaming-max-bytes-per-micro-batch", Whole(1, LONG_MAX), "how much a batch reads"),
    _honoured("identifier-columns", _NAMES, "of changes: what makes two rows an update"),
    _honoured("compute-updates", _FLAG, "of changes: whether updates are told as such"),
    _of_rows(
        "deduplicationMode",
        Choice(("none", "dropCarryovers")),
        "of changes: whether rows that were merely copied are there",
    ),
    _honoured("stream-guard", Text("a name"), "expiry spares what the stream of that name still needs"),
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
    _honoured("branch", Text("a branch"), "the branch that is written; it must agree with one in the name"),
    _honoured("snapshot-property.*", _ANY, "goes into the snapshot's summary", setting="snapshot-property.*"),
    _honoured(
        "mergeSchema",
        _FLAG,
        "adds the columns that the table lacks, where it has `write.spark.accept-any-schema`",
        setting="merge-schema",
    ),
    _honoured("merge-schema", _FLAG, "the same as `mergeSchema`"),
    _honoured(
        "overwrite-mode",
        Choice(("static", "dynamic")),
        "`dynamic`: overwrites replace the partitions that rows are in",
    ),
    _honoured(
        "partitionOverwriteMode", Choice(("static", "dynamic")), "Spark's name for it; `overwrite-mode` counts before"
    ),
    _of(p.DEFAULT_FILE_FORMAT, "format of data files", "write-format"),
    _of(p.DELETE_DEFAULT_FILE_FORMAT, "format of delete files", "delete-format"),
    _of(p.WRITE_TARGET_FILE_SIZE_BYTES, "size of data files", "target-file-size-bytes"),
    _of(p.DELETE_TARGET_FILE_SIZE_BYTES, "size of delete files", "target-delete-file-size-bytes"),
    _honoured("compression-codec", _CODEC, "codec of the format that is written", setting="compression-codec"),
    _honoured("compression-level", Whole(-131_072, 22), "level of the codec", setting="compression-level"),
    _honoured(
        "compression-strategy",
        Choice(("speed", "compression")),
        "of ORC files",
        setting="compression-strategy",
    ),
    _of(
        p.WRITE_DISTRIBUTION_MODE,
        "how rows are distributed before they are written",
        "distribution-mode",
        *_WRITE_MODES,
        setting="distribution-mode",
    ),
    _of(p.SPARK_FANOUT_ENABLED, "a file open for each partition, in place of a sort by partition", "fanout-enabled"),
    _of(
        p.SPARK_ADVISORY_PARTITION_SIZE_BYTES,
        "bytes of rows that one task writes",
        "advisory-partition-size",
        setting="advisory-partition-size",
    ),
    _of(p.DELETE_GRANULARITY, "whether delete files are for one data file each", "delete-granularity"),
    _honoured("isolation-level", p.DELETE_ISOLATION_LEVEL.value_type, "which changes of others stop the write"),
    _honoured("validate-from-snapshot-id", _ID, "changes of others since then stop an overwrite"),
    _honoured("output-spec-id", Whole(0, LONG_MAX), "the partition spec of new files"),
    _honoured("output-sort-order-id", Whole(0, LONG_MAX), "the sort order of new files"),
    _honoured("use-table-distribution-and-ordering", _FLAG, "`false`: rows are written where they are, as they come"),
    Option(
        "check-nullability",
        _FLAG,
        "same",
        "nulls in required columns are always refused, row by row; columns that could hold some are not",
        setting=SETTING_PREFIX + "check-nullability",
    ),
    Option(
        "check-ordering",
        _FLAG,
        "same",
        "columns are matched by name, so that their order never matters; `insertInto` goes by position",
        setting=SETTING_PREFIX + "check-ordering",
    ),
    _honoured("once-application", Text("an application"), "a write that happens once"),
    _honoured("once-version", Text("a version"), "a write that happens once"),
    _honoured("txnAppId", Text("an application"), "Delta's name for `once-application`"),
    _honoured("txnVersion", Whole(0, LONG_MAX), "Delta's name for `once-version`"),
    _honoured(
        "path",
        Text("a name or a location"),
        "the table, with `format` and `save`; where a new table is made; refused beside a table's name, where it is "
        "another one's",
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
    _honoured("checkpointLocation", Text("a folder"), "of `writeStream`: Spark's own"),
    _honoured("queryName", Text("a name"), "of `writeStream`: Spark's own"),
    _of_rows("upsert-keys", _NAMES, "of `writeStream` in update mode; elsewhere use MERGE, or `upsert` of a table"),
    _honoured("compact-every-batches", Text("a whole number above 0"), "of `writeStream`: compacts as it goes"),
    _honoured("compact-every-bytes", Text("a whole number above 0"), "of `writeStream`: compacts as it goes"),
    _honoured("compact.*", _ANY, "of `writeStream`: options of that compaction"),
    Option(
        "use-merge-append-for-streaming",
        _FLAG,
        "refused",
        "`false`: manifests are merged as the table says, by `commit.manifest-merge.enabled`",
        fine=("true",),
    ),
)

_FORMATS = "an option of Spark's own files or of another format; set the table's property, or leave it out"
FOREIGN: Final = (
    _refused("replaceWhere", _ANY, "Delta's: use `df.writeTo(t).overwrite(condition)`"),
    _refused("readChangeData", _FLAG, "Delta's older name of `readChangeFeed`", "false"),
    _refused("ignoreDeletes", _FLAG, "Delta's: use `streaming-skip-delete-snapshots`", "false"),
    _refused("ignoreChanges", _FLAG, "Delta's: use `streaming-changes=added-files`", "false"),
    _refused("skipChangeCommits", _FLAG, "Delta's: use `streaming-changes=skip`", "false"),
    _warned("maxFilesPerTrigger", _ANY, "use `streaming-max-files-per-micro-batch`"),
    _warned("maxBytesPerTrigger", _ANY, "use `streaming-max-bytes-per-micro-batch`"),
    _warned("withEventTimeOrder", _FLAG, "Delta's: files come in the order of commits", "false"),
    _warned("failOnDataLoss", _FLAG, "what was lost unread always ends a stream, with an error", "true"),
    _warned("schemaTrackingLocation", _ANY, "Delta's: a stream whose columns changed is started again"),
    _warned("overwriteSchema", _FLAG, "Delta's: `createOrReplace` and `saveAsTable` in mode overwrite do so"),
    _warned("userMetadata", _ANY, "Delta's: use `snapshot-property.<name>`"),
    _warned("dataChange", _FLAG, "Delta's: compaction is `CALL lake.system.rewrite_data_files`"),
    _warned("maxRecordsPerFile", _ANY, "use `target-file-size-bytes`"),
    _warned("compression", _ANY, "use `compression-codec`"),
    _warned("hoodie.*", _ANY, "Hudi's"),
    _warned("parquet.*", _ANY, _FORMATS),
    _warned("orc.*", _ANY, _FORMATS),
    _warned("avro*", _ANY, _FORMATS),
    *(
        _warned(one, _ANY, _FORMATS)
        for one in (
            *("header", "inferSchema", "sep", "delimiter", "quote", "escape", "encoding", "mode", "nullValue"),
            *("dateFormat", "timestampFormat", "multiLine", "pathGlobFilter", "recursiveFileLookup", "basePath"),
            *("modifiedBefore", "modifiedAfter", "ignoreCorruptFiles", "ignoreMissingFiles", "primitivesAsString"),
        )
    ),
)

_SETTINGS_ALONE = (
    _warned("planning.preserve-data-grouping", _FLAG, "there are no joins without a shuffle by partitions", "false"),
    _warned("data-planning-mode", p.DATA_PLANNING_MODE.value_type, _PLANNED_HERE, "auto", "local"),
    _warned("delete-planning-mode", p.DELETE_PLANNING_MODE.value_type, _PLANNED_HERE, "auto", "local"),
    _warned("executor-cache.enabled", _FLAG, _NOT_CACHED, "false"),
    _warned("executor-cache.delete-files.enabled", _FLAG, _NOT_CACHED, "false"),
    _warned("executor-cache.timeout", _ANY, _NOT_CACHED),
    _warned("executor-cache.max-entry-size", _ANY, _NOT_CACHED),
    _warned("executor-cache.max-total-size", _ANY, _NOT_CACHED),
    _warned("executor-cache.locality.enabled", _FLAG, _NOT_CACHED, "false"),
    _warned("parquet.reader-type", _ANY, _OWN_READERS),
    _warned("report-column-stats", _FLAG, "`spark.sql.cbo.enabled` decides what the optimiser is told"),
    _warned("identifier-fields-rely", _FLAG, "nothing here relies on them", "false"),
    _warned("read.adaptive-split-size.enabled", _FLAG, "splits follow `spark.sql.files.*` and the table"),
    _warned("read.adaptive-split-size.parallelism", Whole(1, LONG_MAX), "splits follow `spark.sql.files.*`"),
)


def _settings() -> tuple[Option, ...]:
    """Return Iceberg Java's settings, those that say what an option says with that option's answer."""
    named = [
        Option(
            option.setting,
            option.value_type,
            option.answer,
            f"as the option `{option.name}`: {option.note}",
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
        _honoured("spark.wap.id", _ANY, "writes are staged, where the table has `write.wap.enabled`"),
        _honoured("spark.wap.branch", _ANY, "writes go to a branch, where the table has `write.wap.enabled`"),
    )


SETTINGS: Final = _settings()
_STREAM_PREFIXES: Final = ("stream-", "streaming-")


class OptionList:
    """The options that something takes, by name; those of others are known to be others'."""

    def __init__(
        self,
        what: str,
        taken: Iterable[Option],
        elsewhere: Iterable[tuple[str, Iterable[Option]]],
        heading: str,
    ) -> None:
        self.what = what
        self.heading = heading
        self._taken = {option.key: option for option in taken}
        self._elsewhere: dict[str, Option] = {}
        for where, options in elsewhere:
            for option in options:
                self._elsewhere.setdefault(option.key, _not_taken(option, where))
        self._foreign = {option.key: option for option in FOREIGN}

    @property
    def names(self) -> list[str]:
        """The names of options that are taken."""
        return sorted(option.name for option in self._taken.values() if option.answer in ("honoured", "same"))

    def find(self, name: str) -> Option | None:
        """Return what is known of an option; None where nothing is."""
        lower = name.lower()
        for known in (self._taken, self._elsewhere, self._foreign):
            found = known.get(lower) or next(
                (option for key, option in known.items() if key.endswith("*") and lower.startswith(key[:-1])), None
            )
            if found is not None:
                return found
        return None

    def check_name(self, name: str) -> None:
        """Refuse a name that is not known and is like one that is, or has a prefix that only Iceberg has."""
        near = get_close_matches(name.lower(), [*self._taken], n=1, cutoff=0.75)
        if near or name.lower().startswith(_STREAM_PREFIXES):
            meant = f"Did you mean {self._taken[near[0]].name}? " if near else ""
            raise InvalidRequestError(
                f"Cannot {self.what} with the option {name!r}: there is none of that name",
                hint=f"{meant}There are: {', '.join(self.names)}.",
            )

    def check(self, options: Mapping[str, object]) -> dict[str, str]:
        """Return options by their names in lower case; refuse and warn as the list says."""
        known: dict[str, str] = {}
        passed_over: list[str] = []
        for name, value in options.items():
            if value is None:
                continue
            text = str(value)
            option = self.find(name)
            if option is None:
                self.check_name(name)
                passed_over.append(f"{name} (not known)")
                continue
            is_fine = text.strip().lower() in option.fine
            if not is_fine and option.answer == "refused":
                raise UnsupportedError(f"Cannot {self.what} with the option {name}={text!r}: {_plain(option.note)}")
            if option.key in self._taken:
                check_value(option, name, text, f"Cannot {self.what} with the option")
            if is_fine or option.answer != "warned":
                known[name.lower()] = text
            else:
                passed_over.append(f"{name} ({_plain(option.note)})")
        warn(f"To {self.what}, these options do nothing", passed_over, self.heading)
        return known


def _not_taken(option: Option, where: str) -> Option:
    """Return what becomes of an option where it is not taken."""
    answer: Answer = "refused" if option.decides_rows else "warned"
    return Option(option.name, option.value_type, answer, f"{where}: {option.note}", (), option.fine)


def check_value(option: Option, name: str, text: str, cannot: str) -> None:
    """Refuse a value that an option or a setting may not have."""
    if option.value_type.parse(text.strip()) is None:
        raise InvalidRequestError(
            f"{cannot} {name}={text[:60]!r}: it is not allowed", hint=f"Set it to {option.value_type.allowed}."
        )


def warn(what: str, passed_over: list[str], heading: str) -> None:
    """Say once what is passed over, and under which heading of `docs/options.md` it stands."""
    if passed_over:
        page = f"docs/options.md#{heading.lower().replace(' ', '-')} of {PROJECT}"
        warnings.warn(f"{what}: {', '.join(sorted(passed_over))}. See {page}", stacklevel=4)


def check_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings `spark.sql.iceberg.*` that are honoured, without their prefix; warn about the others."""
    known: dict[str, str] = {}
    passed_over: list[str] = []
    for name, text in settings.items():
        if not name.startswith(SETTING_PREFIX):
            continue
        option = find_setting(name)
        if option is None:
            check_setting_name(name)
            passed_over.append(f"{name} (not known)")
            continue
        check_value(option, name, text, "Cannot use the setting")
        if option.answer in ("honoured", "same"):
            known[name.removeprefix(SETTING_PREFIX)] = text
        elif text.strip().lower() not in option.fine:
            passed_over.append(f"{name} ({_plain(option.note)})")
    warn("These settings do nothing", passed_over, SETTINGS_HEADING)
    return known


def check_setting_name(name: str) -> None:
    """Refuse the name of a setting that is not known and is like one that is."""
    known = {setting.name.removeprefix(SETTING_PREFIX): setting.name for setting in SETTINGS}
    near = get_close_matches(name.removeprefix(SETTING_PREFIX), [*known], n=1, cutoff=0.75)
    if near:
        raise InvalidRequestError(
            f"Cannot use the setting {name!r}: there is none of that name", hint=f"Did you mean {known[near[0]]}?"
        )


def find_setting(name: str) -> Option | None:
    """Return what is known of a setting of the session; None where nothing is."""
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
_OF_STREAMS = ("of readStream", STREAM_READ)
_OF_WRITES = ("an option of writes", WRITE)
_OF_SINKS = ("of writeStream", STREAM_WRITE)
_READS = (_OF_READS, _OF_SOURCES, _OF_FEEDS, _OF_STREAMS, _OF_WRITES, _OF_SINKS)

READ_OPTIONS: Final = OptionList("read a table", READ, _READS, READ_HEADING)
SOURCE_OPTIONS: Final = OptionList("read a table", (*READ, *SOURCE), _READS, READ_HEADING)
METADATA_OPTIONS: Final = OptionList("read a metadata table", (*_STATES, *_PATH), _READS, READ_HEADING)
VIEW_OPTIONS: Final = OptionList("read a view", _PATH, _READS, READ_HEADING)
CHANGE_FEED_OPTIONS: Final = OptionList(
    "read changes", (*CHANGE_FEED, *_named(READ, "branch"), *_PATH), _READS, CHANGE_FEED_HEADING
)
_CUT = _named(READ, "branch", "split-size", "file-open-cost")
_NO_END = "a stream has no end, and begins where it is told: use `stream-from-snapshot`, `stream-after-snapshot`, "
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
        "a change feed has words of its own (`startingVersion`, `computeUpdates`)",
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
    _refused(option.name, option.value_type, "the output mode says what becomes of rows", "static")
    for option in _named(WRITE, "overwrite-mode", "partitionOverwriteMode")
)
STREAM_WRITE_OPTIONS: Final = OptionList(
    "stream to a table", (*WRITE, *_BY_MODE, *STREAM_WRITE), _WRITES, STREAM_WRITE_HEADING
)
