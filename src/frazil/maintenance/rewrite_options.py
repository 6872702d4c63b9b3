"""The options of the procedures that rewrite files: Iceberg Java's names, kinds, defaults and limits.

Options come as text from SQL and the terminal, and as Python values from Python, where `_` may stand for `-` and `.`.
What is not an option of a procedure is refused, with those that are.
"""

from __future__ import annotations

from collections.abc import Mapping
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
"""How Iceberg Java's engine shuffles and encodes rows: checked, and not needed here."""


class JobOrder(StrEnum):
    """Which groups of files are rewritten first."""

    NONE = "none"
    BYTES_ASC = "bytes-asc"
    BYTES_DESC = "bytes-desc"
    FILES_ASC = "files-asc"
    FILES_DESC = "files-desc"


@dataclass(frozen=True, slots=True)
class SizeOptions:
    """Which files are of a wrong size, how they are grouped, and how large new ones are to be."""

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
        """The size at which a new file ends: above the target, so that no small rest is left over."""
        return int(self.target_bytes + (self.max_bytes - self.target_bytes) * 0.5)

    def expected_files(self, input_bytes: int) -> int:
        """Return into how many files some bytes go: a rest that is too small is spread over the others."""
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
        """Return how large each new file of some input is to be."""
        even = input_bytes // self.expected_files(input_bytes) + _SPLIT_OVERHEAD_BYTES
        return self.target_bytes if even < self.target_bytes else min(even, self.write_max_bytes)


@dataclass(frozen=True, slots=True)
class DataOptions:
    """The further options of rewriting data files."""

    sizes: SizeOptions
    delete_file_threshold: int = NO_LIMIT
    delete_ratio_threshold: float = 0.3
    max_files: int | None = None
    use_starting_sequence_number: bool = True
    output_spec_id: int | None = None
    remove_dangling_deletes: bool = False
    sort_bytes: int = DEFAULT_SORT_BYTES


class OptionReader:
    """Reads the options of one procedure; refuses those that it does not have."""

    def __init__(self, procedure: str, options: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
        self._procedure = procedure
        by_plain = {_plain(name): name for name in allowed}
        self._given: dict[str, Any] = {}
        for name, value in options.items():
            known = by_plain.get(_plain(name))
            if known is None:
                near = get_close_matches(name, allowed, n=1)
                raise InvalidRequestError(
                    f"Cannot run {procedure}: it has no option {name!r}",
                    hint=(f"Did you mean {near[0]}? " if near else "") + f"There are: {', '.join(sorted(allowed))}.",
                )
            if known in self._given:
                raise InvalidRequestError(f"Cannot run {procedure}: the option {known!r} is given twice")
            self._given[known] = value

    def flag(self, name: str, default: bool) -> bool:
        """Return an option that is true or false."""
        value = self._given.get(name)
        if value is None:
            return default
        text = str(value).strip().lower()
        if text not in _TRUE | _FALSE:
            raise self._wrong(name, value, "true or false")
        return text in _TRUE

    def number(self, name: str, default: int, *, least: int = 1) -> int:
        """Return an option that is a whole number."""
        found = self.find_number(name, least=least)
        return default if found is None else found

    def find_number(self, name: str, *, least: int = 1) -> int | None:
        """Return an option that is a whole number, None where it is not given."""
        value = self._given.get(name)
        if value is None:
            return None
        try:
            found = int(str(value).strip())
        except ValueError:
            raise self._wrong(name, value, "a whole number") from None
        if found < least:
            raise self._wrong(name, value, f"at least {least}")
        return found

    def share(self, name: str, default: float) -> float:
        """Return an option that is above 0 and at most 1."""
        value = self._given.get(name)
        if value is None:
            return default
        try:
            found = float(str(value).strip())
        except ValueError:
            raise self._wrong(name, value, "a number above 0 and at most 1") from None
        if not 0 < found <= 1:
            raise self._wrong(name, value, "a number above 0 and at most 1")
        return found

    def positive(self, name: str, default: float) -> float:
        """Return an option that is a number above 0."""
        value = self._given.get(name)
        if value is None:
            return default
        try:
            found = float(str(value).strip())
        except ValueError:
            raise self._wrong(name, value, "a number above 0") from None
        if not 0 < found < float("inf"):
            raise self._wrong(name, value, "a number above 0")
        return found

    def job_order(self) -> JobOrder:
        """Return which groups go first."""
        value = self._given.get("rewrite-job-order", JobOrder.NONE)
        try:
            return JobOrder(str(value).strip().lower())
        except ValueError:
            raise self._wrong("rewrite-job-order", value, f"one of {', '.join(JobOrder)}") from None

    def _wrong(self, name: str, value: Any, wanted: str) -> InvalidRequestError:
        return InvalidRequestError(f"Cannot run {self._procedure}: the option {name} is {value!r}, it must be {wanted}")


def read_sizes(reader: OptionReader, procedure: str, target_bytes: int) -> SizeOptions:
    """Return the options about sizes; `target_bytes` is the table's own."""
    target = reader.number("target-file-size-bytes", target_bytes)
    least = reader.number("min-file-size-bytes", int(target * MIN_SIZE_SHARE), least=0)
    most = reader.number("max-file-size-bytes", int(target * MAX_SIZE_SHARE))
    if not least < target < most:
        raise InvalidRequestError(
            f"Cannot run {procedure}: target-file-size-bytes ({target}) must be above min-file-size-bytes ({least}) "
            f"and below max-file-size-bytes ({most}), or new files would be rewritten again and again"
        )
    commits = reader.number("partial-progress.max-commits", 10)
    return SizeOptions(
        target,
        least,
        most,
        reader.number("min-input-files", MIN_INPUT_FILES),
        reader.flag("rewrite-all", False),
        reader.number("max-file-group-size-bytes", 100 * GIBIBYTE),
        reader.number("max-file-group-input-files", NO_LIMIT),
        reader.job_order(),
        reader.number("max-concurrent-file-group-rewrites", 5),
        reader.flag("partial-progress.enabled", False),
        commits,
        reader.number("partial-progress.max-failed-commits", commits, least=0),
    )


def read_data_options(options: Mapping[str, Any], target_bytes: int, *, strategy: str) -> DataOptions:
    """Return the options of rewriting data files by a strategy; `target_bytes` is the table's own."""
    procedure = "rewrite_data_files"
    allowed = {"binpack": DATA_OPTIONS, "sort": (*DATA_OPTIONS, *SORT_OPTIONS)}.get(
        strategy, (*DATA_OPTIONS, *ZORDER_OPTIONS)
    )
    reader = OptionReader(procedure, options, allowed)
    for name in HINTS:
        reader.positive(name, 1.0) if name == "compression-factor" else reader.find_number(name)
    return DataOptions(
        read_sizes(reader, procedure, target_bytes),
        reader.number("delete-file-threshold", NO_LIMIT, least=0),
        reader.share("delete-ratio-threshold", 0.3),
        reader.find_number("max-files-to-rewrite"),
        reader.flag("use-starting-sequence-number", True),
        reader.find_number("output-spec-id", least=0),
        reader.flag("remove-dangling-deletes", False),
        DEFAULT_SORT_BYTES if strategy == "binpack" else reader.number("sort-memory-bytes", DEFAULT_SORT_BYTES),
    )


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", "-").replace(".", "-")
