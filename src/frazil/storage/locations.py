"""Where a table's files go, and how locations compare. Specification: "Paths in Metadata", "Path Construction".

New files: `DataLocations` and `metadata_folder` follow the properties `write.data.path`, `write.metadata.path`
and `write.object-storage.*`; the names of files are those of Iceberg Java, so that its tools know them.

Comparing: metadata may spell one file in several ways (`file:/x`, `file:///x`, `/x`, `s3a:`). Two questions are
asked before files are deleted, and each errs on the side that keeps files: `is_under` is true only if nothing
about the location is doubtful, and `location_key` is equal for all spellings that may mean one file. What may be
deleted is decided in `catalog/owned_folders.py`.
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
"""Schemes that clients gave to the same store."""
PLAIN: Final = r"^[a-z][a-z0-9+.\-]*://[^/%]*(/[^/%]+)+$"
NOT_PLAIN: Final = rf"^({'|'.join(_ALIASES)}):|^file://[^/]|/\.\.?(/|$)"
"""Locations that match the first pattern and not the second are their own keys."""
_IS_PLAIN: Final = re.compile(PLAIN)
_IS_NOT_PLAIN: Final = re.compile(NOT_PLAIN)
_DOUBTFUL: Final = re.compile(r"[\x00-\x1f\x7f\\]")
_MAX_DECODINGS: Final = 3
"""How often percent escapes are decoded when in doubt: as often as careless readers in a row might."""
_HASH_BITS: Final = 20
_METADATA_FILE: Final = re.compile(r"v?([0-9]{1,18})(-[^/]*)?(\.gz)?\.metadata\.json(\.gz)?", re.ASCII)


def scheme_of(location: str) -> str | None:
    """Return the scheme of a URI in lower case, or None for a path."""
    found = _SCHEME.match(location)
    return None if found is None else found.group(1).lower()


def strip_slashes(location: str) -> str:
    """Return a location without slashes at its end; those after a scheme stay."""
    while location.endswith("/") and not location.endswith("://"):
        location = location[:-1]
    return location


def join_location(base: str, below: str) -> str:
    """Return a location below another; one that stands on its own is returned as it is."""
    if scheme_of(below) is not None or below.startswith("/"):
        return below
    return f"{strip_slashes(base)}/{below}"


# Where new files go


def data_folder(table_location: str, properties: Mapping[str, str]) -> str:
    """Return the folder of new data files."""
    chosen = read_property(properties, known.WRITE_DATA_LOCATION)
    if chosen is None:
        check_retired(properties)
        chosen = "data"
    return strip_slashes(join_location(_checked(table_location), chosen))


def metadata_folder(table_location: str, properties: Mapping[str, str]) -> str:
    """Return the folder of new metadata files: table metadata, manifest lists, manifests, statistics."""
    chosen = read_property(properties, known.WRITE_METADATA_LOCATION)
    return strip_slashes(join_location(_checked(table_location), "metadata" if chosen is None else chosen))


def table_folders(table_location: str, properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return the folders that hold a table's files, to be cleaned up in; none lies in another."""
    folders = (
        strip_slashes(_checked(table_location)),
        data_folder(table_location, properties),
        metadata_folder(table_location, properties),
    )
    outside = [folder for folder in folders[1:] if folder != folders[0] and not is_under(folder, folders[0])]
    return (folders[0], *dict.fromkeys(outside))


@dataclass(frozen=True, slots=True)
class DataLocations:
    """Names locations for new data files; made by `data_locations`."""

    folder: str
    is_hashed: bool = False
    has_partition_paths: bool = True
    context: str | None = None
    """The table's namespace and name, put into hashed paths where the folder is not the table's own."""

    def new_data_location(self, file_name: str, partition_path: str | None = None) -> str:
        """Return the location of a new data file, with its partition's path where the layout has it."""
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
    """Return how the table names its data files."""
    provider = read_property(properties, known.LOCATION_PROVIDER_IMPL)
    if provider is not None:
        raise UnsupportedError(
            f"Cannot write data files: {known.LOCATION_PROVIDER_IMPL} names the Java class {provider}",
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
    """Return the name of a data or delete file; the operation's id makes it unique, the rest tell who wrote it."""
    tail = "" if suffix is None else f"-{suffix}"
    return f"{partition_id:05d}-{task_id}-{operation_id}-{file_count:05d}{tail}.{extension}"


def metadata_file_name(version: int, unique_id: str, *, is_gzip: bool = False) -> str:
    """Return the name of a metadata file of a catalog that keeps the pointer elsewhere."""
    return f"{version:05d}-{unique_id}{'.gz' if is_gzip else ''}.metadata.json"


def find_metadata_version(location: str) -> int | None:
    """Return the version in a metadata file's name, or None where the name has none."""
    found = _METADATA_FILE.fullmatch(location.rpartition("/")[2])
    return None if found is None else int(found.group(1))


def manifest_list_name(snapshot_id: int, attempt: int, commit_id: str) -> str:
    """Return the name of a manifest list."""
    return f"snap-{snapshot_id}-{attempt}-{commit_id}.avro"


def manifest_name(commit_id: str, count: int) -> str:
    """Return the name of the n-th manifest of a commit."""
    return f"{commit_id}-m{count}.avro"


# How locations compare


@dataclass(frozen=True, slots=True)
class Location:
    """The parts of a location, spelt one way: scheme and aliases settled, the path with its leading slash."""

    scheme: str
    authority: str
    path: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


def parse_location(location: str) -> Location:
    """Return the parts of an absolute URI, or of an absolute path, which is a file of this machine."""
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
    """Return a key that is the same for all spellings that may mean one file.

    For telling which files are in use: it takes too many for the same rather than too few. Escapes are
    decoded, `.` and `..` resolved, repeated slashes joined, though some stores keep such names apart.
    """
    if _IS_PLAIN.fullmatch(location) and not _IS_NOT_PLAIN.search(location):
        return location
    parts = parse_location(location)
    path = parts.path
    for _ in range(_MAX_DECODINGS):
        path = unquote(path, errors="replace")
    return f"{parts.scheme}://{parts.authority}/{'/'.join(_resolved(path))}"


def is_under(location: str, folder: str) -> bool:
    """Return whether a location is inside a folder, beyond doubt; the folder itself is not.

    No to relative paths, to `.` and `..`, to escapes that would lead outside once decoded, to control
    characters and backslashes, and to the root of this machine's file system, which is no table's folder.
    Links are not followed: who asks follows them first.
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
    """Return whether a location is a folder or inside it, beyond doubt."""
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
    """Return whether one location may be the other or inside it, however they are spelt."""
    ones, twos = (
        [f"{key.rstrip('/')}/" for key in location_readings(strip_slashes(text))] for text in (location, other)
    )
    return any(one.startswith(two) or two.startswith(one) for one in ones for two in twos)


def _checked(table_location: str) -> str:
    if table_location == "":
        raise InvalidRequestError("Cannot name files of the table: its location is empty")
    return table_location


def _without_repeats(path: str) -> str:
    """Return a path of this machine without repeated slashes and single dots."""
    steps = [step for step in path.split("/") if step not in ("", ".")]
    return "/" + "/".join(steps)


def _resolved(path: str) -> list[str]:
    """Return the steps of a path with `.` and `..` resolved and empty ones left out."""
    kept: list[str] = []
    for step in path.split("/"):
        if step == "..":
            del kept[-1:]
        elif step not in ("", "."):
            kept.append(step)
    return kept


def _context(table_location: str) -> str:
    """Return the last two steps of a table's path: its namespace and its name."""
    path = parse_location(table_location).path if scheme_of(table_location) is not None else table_location
    return "/".join([step for step in path.split("/") if step != ""][-2:])


def _hash_folders(name: str) -> str:
    """Return 20 bits of the name's hash as folders of 4, 4, 4 and 8 binary digits."""
    bits = format(hash_bytes(name.encode()) & ((1 << _HASH_BITS) - 1), f"0{_HASH_BITS}b")
    return f"{bits[:4]}/{bits[4:8]}/{bits[8:12]}/{bits[12:]}"
