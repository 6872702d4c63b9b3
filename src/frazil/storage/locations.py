"""Locations of new files, and comparison of locations. Specification: "Paths in Metadata", "Path Construction".

New files: `DataLocations` and `metadata_folder` follow the properties `write.data.path`, `write.metadata.path`
and `write.object-storage.*`; file names are those of Iceberg Java, so that its tools recognize them.

Comparison: metadata may spell one file in several ways (`file:/x`, `file:///x`, `/x`, `s3a:`). Two functions are used
before files are deleted, and each errs on the side of keeping files: `is_under` is true only if the location is
unambiguous, and `location_key` is equal for all spellings that may mean one file. Which files may be deleted is decided
in `catalog/owned_folders.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from frazil.errors import InvalidRequestError, UnsupportedError
from frazil.spec import properties as known
from frazil.spec.murmur3 import hash_bytes
from frazil.spec.properties import check_retired, read_property

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_ALIASES: Final = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs", "wasbs": "wasb"}
"""Schemes that different clients use for the same store."""
PLAIN: Final = r"^[a-z][a-z0-9+.\-]*://[^/%]*(/[^/%]+)+$"
NOT_PLAIN: Final = rf"^({'|'.join(_ALIASES)}):|^file://[^/]|/\.\.?(/|$)"
"""A location that matches the first pattern and not the second is its own key."""
_IS_PLAIN: Final = re.compile(PLAIN)
_IS_NOT_PLAIN: Final = re.compile(NOT_PLAIN)
_DOUBTFUL: Final = re.compile(r"[\x00-\x1f\x7f\\]")
_MAX_DECODINGS: Final = 3
"""The maximum number of percent-decoding rounds, as several careless readers in a row might apply."""
_HASH_BITS: Final = 20
_METADATA_FILE: Final = re.compile(r"v?([0-9]{1,18})(-[^/]*)?(\.gz)?\.metadata\.json(\.gz)?", re.ASCII)


def scheme_of(location: str) -> str | None:
    """Return the scheme of a URI in lower case, or None for a path."""
    match = _SCHEME.match(location)
    return None if match is None else match.group(1).lower()


def strip_slashes(location: str) -> str:
    """Return a location without trailing slashes; those after a scheme stay."""
    while location.endswith("/") and not location.endswith("://"):
        location = location[:-1]
    return location


def join_location(base: str, below: str) -> str:
    """Join a base location and a relative one; an absolute location is returned unchanged."""
    if scheme_of(below) is not None or below.startswith("/"):
        return below
    return f"{strip_slashes(base)}/{below}"


# Locations of new files


def data_folder(table_location: str, properties: Mapping[str, str]) -> str:
    """Return the folder for new data files."""
    chosen = read_property(properties, known.WRITE_DATA_LOCATION)
    if chosen is None:
        check_retired(properties)
        chosen = "data"
    return strip_slashes(join_location(_checked(table_location), chosen))


def metadata_folder(table_location: str, properties: Mapping[str, str]) -> str:
    """Return the folder for new metadata files: table metadata, manifest lists, manifests, statistics."""
    chosen = read_property(properties, known.WRITE_METADATA_LOCATION)
    return strip_slashes(join_location(_checked(table_location), "metadata" if chosen is None else chosen))


def table_folders(table_location: str, properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return the distinct folders of a table's files, for clean-up; none is inside another."""
    folders = (
        strip_slashes(_checked(table_location)),
        data_folder(table_location, properties),
        metadata_folder(table_location, properties),
    )
    outside = [folder for folder in folders[1:] if folder != folders[0] and not is_under(folder, folders[0])]
    return (folders[0], *dict.fromkeys(outside))


@dataclass(frozen=True, slots=True)
class DataLocations:
    """Generates locations for new data files; created by `data_locations`."""

    folder: str
    is_hashed: bool = False
    has_partition_paths: bool = True
    context: str | None = None
    """The table's namespace and name, added to hashed paths if the folder is shared by tables."""

    def new_data_location(self, file_name: str, partition_path: str | None = None) -> str:
        """Return the location of a new data file, with its partition's path if the layout includes it."""
        name = file_name
        if partition_path not in (None, "") and (self.has_partition_paths or not self.is_hashed):
            name = f"{partition_path}/{file_name}"
        if not self.is_hashed:
            return f"{self.folder}/{name}"
        spread = _hash_folders(name)
        if self.context is not None:
            return f"{self.folder}/{spread}/{self.context}/{name}"
        if self.has_partition_paths:
            return f"{self.folder}/{spread}/{name}"
        return f"{self.folder}/{spread}-{name}"


def data_locations(table_location: str, properties: Mapping[str, str]) -> DataLocations:
    """Return the naming scheme for the table's data files."""
    provider = read_property(properties, known.LOCATION_PROVIDER_IMPL)
    if provider is not None:
        raise UnsupportedError(
            f"Cannot write data files: {known.LOCATION_PROVIDER_IMPL} is set to the Java class {provider}",
            hint=f"Remove the property {known.LOCATION_PROVIDER_IMPL}.",
        )
    folder = data_folder(table_location, properties)
    if not read_property(properties, known.OBJECT_STORE_ENABLED):
        return DataLocations(folder)
    table = strip_slashes(_checked(table_location))
    is_own = folder == table or folder.startswith(f"{table}/")
    has_partition_paths = read_property(properties, known.OBJECT_STORE_PARTITIONED_PATHS)
    return DataLocations(folder, True, has_partition_paths, None if is_own else _context(table))


def data_file_name(
    *, partition_id: int, task_id: int, operation_id: str, file_count: int, extension: str, suffix: str | None = None
) -> str:
    """Return the name of a data or delete file; the operation ID makes it unique, the rest identifies the writer."""
    tail = "" if suffix is None else f"-{suffix}"
    return f"{partition_id:05d}-{task_id}-{operation_id}-{file_count:05d}{tail}.{extension}"


def metadata_file_name(version: int, unique_id: str, *, is_gzip: bool = False) -> str:
    """Return the name of a metadata file in a pointer catalog."""
    return f"{version:05d}-{unique_id}{'.gz' if is_gzip else ''}.metadata.json"


def find_metadata_version(location: str) -> int | None:
    """Return the version in a metadata file's name, or None if there is none."""
    match = _METADATA_FILE.fullmatch(location.rpartition("/")[2])
    return None if match is None else int(match.group(1))


def manifest_list_name(snapshot_id: int, attempt: int, commit_id: str) -> str:
    """Return the name of a manifest list."""
    return f"snap-{snapshot_id}-{attempt}-{commit_id}.avro"


def manifest_name(commit_id: str, count: int) -> str:
    """Return the name of the n-th manifest of a commit."""
    return f"{commit_id}-m{count}.avro"


# Comparison of locations


@dataclass(frozen=True, slots=True)
class Location:
    """The parts of a location in canonical form: scheme and aliases resolved, the path with its leading slash."""

    scheme: str
    authority: str
    path: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


def parse_location(location: str) -> Location:
    """Parse an absolute URI, or an absolute path, which is a local file."""
    scheme = scheme_of(location)
    if scheme is None:
        if not location.startswith("/"):
            raise InvalidRequestError(f"Cannot use the location {location!r}: it is neither a URI nor an absolute path")
        return Location("file", "", _without_repeats(location))
    rest = location[len(scheme) + 1 :]
    authority = ""
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
    scheme = _ALIASES.get(scheme, scheme)
    if scheme != "file":
        return Location(scheme, authority, rest)
    return Location("file", "" if authority.lower() == "localhost" else authority, _without_repeats(rest))


def location_key(location: str) -> str:
    """Return a key that is equal for all spellings that may mean one file.

    It serves to tell which files are in use, and treats too many locations as equal rather than too few. Escapes are
    decoded, `.` and `..` resolved, repeated slashes joined, although some stores distinguish such names.
    """
    if _IS_PLAIN.fullmatch(location) and not _IS_NOT_PLAIN.search(location):
        return location
    parts = parse_location(location)
    path = parts.path
    for _ in range(_MAX_DECODINGS):
        path = unquote(path, errors="replace")
    return f"{parts.scheme}://{parts.authority}/{'/'.join(_resolved(path))}"


def is_under(location: str, folder: str) -> bool:
    """Return whether a location is unambiguously inside a folder; the folder itself is not.

    False for relative paths, `.` and `..`, escapes that would lead outside when decoded, control characters and
    backslashes, and the root of the local file system, which is not a table's folder. Links are not resolved: the
    caller
    does that first.
    """
    if _DOUBTFUL.search(location) or _DOUBTFUL.search(folder):
        return False
    try:
        inner, outer = parse_location(location), parse_location(folder)
    except InvalidRequestError:
        return False
    if (inner.scheme, inner.authority) != (outer.scheme, outer.authority):
        return False
    if any(step in (".", "..") for path in (inner.path, outer.path) for step in path.split("/")):
        return False
    if inner.scheme == "file" and outer.path == "/":
        return False
    if not inner.path.startswith(outer.path.rstrip("/") + "/"):
        return False
    inner_path, outer_path = inner.path, outer.path
    for _ in range(_MAX_DECODINGS + 1):
        steps, above = _resolved(inner_path), _resolved(outer_path)
        if len(steps) <= len(above) or steps[: len(above)] != above:
            return False
        inner_path, outer_path = unquote(inner_path, errors="replace"), unquote(outer_path, errors="replace")
    return True


def is_within(location: str, folder: str) -> bool:
    """Return whether a location is unambiguously a folder or inside it."""
    if is_under(location, folder):
        return True
    is_whole = scheme_of(location) is not None or location.startswith("/")
    return is_whole and parse_location(strip_slashes(location)) == parse_location(strip_slashes(folder))


def location_readings(location: str) -> tuple[str, ...]:
    """Return the keys that a location has with its escapes as they are, and decoded once and more often.

    Where escapes hide `..`, they lead to different folders.
    """
    if _IS_PLAIN.fullmatch(location) and not _IS_NOT_PLAIN.search(location):
        return (location,)
    parts = parse_location(location)
    found: dict[str, None] = {}
    path = parts.path
    for _ in range(_MAX_DECODINGS + 1):
        found[f"{parts.scheme}://{parts.authority}/{'/'.join(_resolved(path))}"] = None
        path = unquote(path, errors="replace")
    return tuple(found)


def may_overlap(location: str, other: str) -> bool:
    """Return whether one location may be or contain the other, however they are spelled."""
    ones, twos = (
        [f"{key.rstrip('/')}/" for key in location_readings(strip_slashes(text))] for text in (location, other)
    )
    return any(one.startswith(two) or two.startswith(one) for one in ones for two in twos)


def _checked(table_location: str) -> str:
    if table_location == "":
        raise InvalidRequestError("Cannot name files of the table: its location is empty")
    return table_location


def _without_repeats(path: str) -> str:
    """Return a local path without repeated slashes and single dots."""
    steps = [step for step in path.split("/") if step not in ("", ".")]
    return "/" + "/".join(steps)


def _resolved(path: str) -> list[str]:
    """Return the steps of a path with `.` and `..` resolved and empty steps removed."""
    steps_kept: list[str] = []
    for step in path.split("/"):
        if step == "..":
            del steps_kept[-1:]
        elif step not in ("", "."):
            steps_kept.append(step)
    return steps_kept


def _context(table_location: str) -> str:
    """Return the last two steps of a table's path: its namespace and its name."""
    path = parse_location(table_location).path if scheme_of(table_location) is not None else table_location
    return "/".join([step for step in path.split("/") if step != ""][-2:])


def _hash_folders(name: str) -> str:
    """Return 20 bits of the name's hash as folders of 4, 4, 4 and 8 binary digits."""
    bits = format(hash_bytes(name.encode()) & ((1 << _HASH_BITS) - 1), f"0{_HASH_BITS}b")
    return f"{bits[:4]}/{bits[4:8]}/{bits[8:12]}/{bits[12:]}"
