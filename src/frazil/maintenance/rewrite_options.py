"""The options of the procedures that rewrite files, with Iceberg Java's names, types, defaults and limits.

Options are strings from SQL and the terminal, and Python values from Python, where `_` may replace `-` and `.`. Unknown
options are refused with a list of the known ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, Final

from frazil.datafile.sort_batches import DEFAULT_SORT_BYTES
from frazil.errors import InvalidRequestError

GIBIBYTE: Final = 1 << 30
MIN_SIZE_SHARE: Final = 0.75
MAX_SIZE_SHARE: Final = 1.8
MIN_INPUT_FILES: Final = 5
NO_LIMIT: Final = (1 << 63) - 1
_SPLIT_OVERHEAD_BYTES: Final = 5 * 1024
_ROUNDING: Final = 1.1
_TRUE: Final = frozenset({"true", "1", "yes"})
_FALSE: Final = frozenset({"false", "0", "no"})

SIZE_OPTIONS: Final = (
    "target-file-size-bytes",
    "min-file-size-bytes",
    "max-file-size-bytes",
    "min-input-files",
    "rewrite-all",
    "max-file-group-size-bytes",
    "max-file-group-input-files",
    "rewrite-job-order",
    "max-concurrent-file-group-rewrites",
    "partial-progress.enabled",
    "partial-progress.max-commits",
    "partial-progress.max-failed-commits",
)
DATA_OPTIONS: Final = (
    *SIZE_OPTIONS,
    "delete-file-threshold",
    "delete-ratio-threshold",
    "max-files-to-rewrite",
    "use-starting-sequence-number",
    "output-spec-id",
    "remove-dangling-deletes",
)
SORT_OPTIONS: Final = ("compression-factor", "shuffle-partitions-per-file", "sort-memory-bytes")
ZORDER_OPTIONS: Final = (*SORT_OPTIONS, "var-length-contribution", "max-output-size")

HINTS: Final = ("compression-factor", "shuffle-partitions-per-file", "var-length-contribution", "max-output-size")
"""Tuning of shuffles and encoding in Iceberg Java's engine: validated, but not needed here."""


class JobOrder(StrEnum):
    """The order in which groups of files are rewritten."""

    NONE = "none"
    BYTES_ASC = "bytes-asc"
    BYTES_DESC = "bytes-desc"
    FILES_ASC = "files-asc"
    FILES_DESC = "files-desc"


@dataclass(frozen=True, slots=True)
class SizeOptions:
    """The limits of file sizes, the size of groups, and the size of new files."""

    target_bytes: int
    min_bytes: int
    max_bytes: int
    min_input_files: int = MIN_INPUT_FILES
    rewrite_all: bool = False
    max_group_bytes: int = 100 * GIBIBYTE
    max_group_files: int = NO_LIMIT
    job_order: JobOrder = JobOrder.NONE
    concurrent_groups: int = 5
    partial_progress: bool = False
    max_commits: int = 10
    max_failed_commits: int = 10

    @property
    def write_max_bytes(self) -> int:
        """The size at which a new file ends: above the target, to avoid a small last file."""
        return int(self.target_bytes + (self.max_bytes - self.target_bytes) * 0.5)

    def expected_files(self, input_bytes: int) -> int:
        """Return the number of files for some bytes; a remainder that is too small is spread over the others."""
        if input_bytes < self.target_bytes:
            return 1
        whole, rest = divmod(input_bytes, self.target_bytes)
        if rest == 0:
            return whole
        if rest > self.min_bytes:
            return whole + 1
        spread = input_bytes // whole < min(_ROUNDING * self.target_bytes, self.write_max_bytes)
        return whole if spread else whole + 1

    def output_bytes(self, input_bytes: int) -> int:
        """Return the size of each new file for some input."""
        even = input_bytes // self.expected_files(input_bytes) + _SPLIT_OVERHEAD_BYTES
        return self.target_bytes if even < self.target_bytes else min(even, self.write_max_bytes)


@dataclass(frozen=True, slots=True)
class DataOptions:
    """The options of rewriting data files."""

    sizes: SizeOptions
    delete_file_threshold: int = NO_LIMIT
    delete_ratio_threshold: float = 0.3
    max_files: int | None = None
    use_starting_sequence_number: bool = True
    output_spec_id: int | None = None
    remove_dangling_deletes: bool = False
    sort_bytes: int = DEFAULT_SORT_BYTES


class OptionReader:
    """Reads the options of one procedure and refuses unknown ones."""

    def __init__(self, procedure: str, options: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
        self._procedure = procedure
        by_plain = {_plain(name): name for name in allowed}
        self._values: dict[str, Any] = {}
        for name, value in options.items():
            option = by_plain.get(_plain(name))
            if option is None:
                similar = get_close_matches(name, allowed, n=1)
                raise InvalidRequestError(
                    f"Cannot run {procedure}: it has no option {name!r}",
                    hint=(f"Did you mean {similar[0]}? " if similar else "")
                    + f"The options are: {', '.join(sorted(allowed))}.",
                )
            if option in self._values:
                raise InvalidRequestError(f"Cannot run {procedure}: the option {option!r} is set twice")
            self._values[option] = value

    def flag(self, name: str, default: bool) -> bool:
        """Return an option that is true or false."""
        value = self._values.get(name)
        if value is None:
            return default
        text = str(value).strip().lower()
        if text not in _TRUE | _FALSE:
            raise self._wrong(name, value, "true or false")
        return text in _TRUE

    def number(self, name: str, default: int, *, min_value: int = 1) -> int:
        """Return an integer option."""
        value = self.find_number(name, min_value=min_value)
        return default if value is None else value

    def find_number(self, name: str, *, min_value: int = 1) -> int | None:
        """Return an integer option, or None if it is not set."""
        value = self._values.get(name)
        if value is None:
            return None
        try:
            found = int(str(value).strip())
        except ValueError:
            raise self._wrong(name, value, "an integer") from None
        if found < min_value:
            raise self._wrong(name, value, f"at least {min_value}")
        return found

    def fraction(self, name: str, default: float) -> float:
        """Return an option that is above 0 and at most 1."""
        return self._above_zero(name, default, "a number above 0 and at most 1", lambda number: number <= 1)

    def positive(self, name: str, default: float) -> float:
        """Return an option that is a number above 0."""
        return self._above_zero(name, default, "a number above 0", lambda number: number < float("inf"))

    def _above_zero(self, name: str, default: float, expected: str, is_allowed: Callable[[float], bool]) -> float:
        value = self._values.get(name)
        if value is None:
            return default
        try:
            number = float(str(value).strip())
        except ValueError:
            raise self._wrong(name, value, expected) from None
        if not (number > 0 and is_allowed(number)):
            raise self._wrong(name, value, expected)
        return number

    def job_order(self) -> JobOrder:
        """Return the order of groups."""
        value = self._values.get("rewrite-job-order", JobOrder.NONE)
        try:
            return JobOrder(str(value).strip().lower())
        except ValueError:
            raise self._wrong("rewrite-job-order", value, f"one of {', '.join(JobOrder)}") from None

    def _wrong(self, name: str, value: Any, expected: str) -> InvalidRequestError:
        return InvalidRequestError(f"Cannot run {self._procedure}: the option {name} is {value!r}, not {expected}")


def read_sizes(reader: OptionReader, procedure: str, target_bytes: int) -> SizeOptions:
    """Return the size options; `target_bytes` is the table's target."""
    target = reader.number("target-file-size-bytes", target_bytes)
    min_bytes = reader.number("min-file-size-bytes", int(target * MIN_SIZE_SHARE), min_value=0)
    max_bytes = reader.number("max-file-size-bytes", int(target * MAX_SIZE_SHARE))
    if not min_bytes < target < max_bytes:
        raise InvalidRequestError(
            f"Cannot run {procedure}: target-file-size-bytes ({target}) must be above min-file-size-bytes "
            f"({min_bytes}) and below max-file-size-bytes ({max_bytes}), or new files would be rewritten repeatedly"
        )
    commits = reader.number("partial-progress.max-commits", 10)
    return SizeOptions(
        target,
        min_bytes,
        max_bytes,
        reader.number("min-input-files", MIN_INPUT_FILES),
        reader.flag("rewrite-all", False),
        reader.number("max-file-group-size-bytes", 100 * GIBIBYTE),
        reader.number("max-file-group-input-files", NO_LIMIT),
        reader.job_order(),
        reader.number("max-concurrent-file-group-rewrites", 5),
        reader.flag("partial-progress.enabled", False),
        commits,
        reader.number("partial-progress.max-failed-commits", commits, min_value=0),
    )


def read_data_options(options: Mapping[str, Any], target_bytes: int, *, strategy: str) -> DataOptions:
    """Return the options of rewriting data files by a strategy; `target_bytes` is the table's target."""
    procedure = "rewrite_data_files"
    allowed = {"binpack": DATA_OPTIONS, "sort": (*DATA_OPTIONS, *SORT_OPTIONS)}.get(
        strategy, (*DATA_OPTIONS, *ZORDER_OPTIONS)
    )
    reader = OptionReader(procedure, options, allowed)
    for name in HINTS:
        reader.positive(name, 1.0) if name == "compression-factor" else reader.find_number(name)
    return DataOptions(
        read_sizes(reader, procedure, target_bytes),
        reader.number("delete-file-threshold", NO_LIMIT, min_value=0),
        reader.fraction("delete-ratio-threshold", 0.3),
        reader.find_number("max-files-to-rewrite"),
        reader.flag("use-starting-sequence-number", True),
        reader.find_number("output-spec-id", min_value=0),
        reader.flag("remove-dangling-deletes", False),
        DEFAULT_SORT_BYTES if strategy == "binpack" else reader.number("sort-memory-bytes", DEFAULT_SORT_BYTES),
    )


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", "-").replace(".", "-")
