"""Tables opened by the Python data source `iceberg`: a name in a lake, a table's folder, or a metadata file.

    lake.db.events                         the table `db.events` of the lake registered as `lake`
    /warehouse/db/events                   a folder: the newest metadata file in its `metadata` folder
    file:/…/metadata/00003-….metadata.json one state of a table

The processes that run a Python data source, beside the driver and on executors, have no open lakes: they receive the
addresses of lakes, and connect. The addresses are pickled, and Spark stores them: so an address with a password or a
key
is refused. Secrets belong in a file on every machine, which is read on arrival (`secrets_file`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from frazil.catalog.glue.open_glue import SECRETS as GLUE_SECRETS
from frazil.catalog.metadata_files import read_table_metadata
from frazil.errors import InvalidRequestError, StorageError, TableNotFoundError
from frazil.jar.options import SOURCE_OPTIONS
from frazil.loaded import LoadedTable
from frazil.rest.settings import SECRETS as SERVICE_SECRETS
from frazil.sessions.scan_options import scan_with_options
from frazil.spec.frozen_map import FrozenMap
from frazil.storage.base import Storage
from frazil.storage.choose import choose_storage
from frazil.storage.locations import find_metadata_version, scheme_of, strip_slashes
from frazil.storage.object_properties import is_secret
from frazil.table.connect import connect
from frazil.table.lake import Lake
from frazil.table.parse_name import parse_name
from frazil.table.scan import Scan
from frazil.verbs.on_spark import choose_session

_METADATA_ENDINGS = (".metadata.json", ".metadata.json.gz")


@dataclass(frozen=True)
class LakeAddress:
    """The address of a lake: the arguments of `frazil.connect`.

    Passwords and keys are not sent. `secrets_file` is the path of a JSON file on each machine, with additions such as
    `{"catalog": "postgresql://…", "properties": {"s3.secret-access-key": "…"}}`.
    """

    warehouse: str
    catalog: str | None = field(default=None, repr=False)
    name: str = "lake"
    properties: Mapping[str, str] = field(default=FrozenMap(), repr=False)
    secrets_file: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        _check_no_secrets(self.properties, self.catalog)
        arguments = (self.warehouse, self.catalog, self.name, dict(self.properties), self.secrets_file)
        return LakeAddress, arguments

    def open(self) -> Lake:
        """Connect to the lake, with the additions of the secrets file."""
        catalog, properties = self.catalog, dict(self.properties)
        if self.secrets_file is not None:
            added = _read_secrets(self.secrets_file)
            catalog = added.get("catalog", catalog)
            properties |= added.get("properties", {})
        return connect(self.warehouse, catalog=catalog, name=self.name, properties=properties)


@dataclass(frozen=True)
class SourceTables:
    """Opens scans by read options. It can be sent to other processes, without passwords and keys."""

    lakes: Mapping[str, LakeAddress] = FrozenMap()
    properties: Mapping[str, str] = field(default=FrozenMap(), repr=False)
    time_zone: str = "UTC"

    def __reduce__(self) -> tuple[Any, ...]:
        _check_no_secrets(self.properties)
        return SourceTables, (dict(self.lakes), dict(self.properties), self.time_zone)

    def __call__(self, options: Mapping[str, str]) -> Scan:
        """Return the scan for options: `path`, those of `scan_options.py`, `columns` and `filter`."""
        lower_options = {name.lower(): value for name, value in options.items()}
        path = lower_options.get("path")
        if path is None or not path.strip():
            raise InvalidRequestError(
                "Cannot read a table: the name or path is missing",
                hint='Write load("lake.db.t"), load("/path/to/table") or load("…/v3.metadata.json").',
            )
        columns = lower_options.get("columns")
        return scan_with_options(
            self.load(path.strip()),
            options,
            predicate=lower_options.get("filter"),
            columns=None if columns is None else [column.strip() for column in columns.split(",")],
            time_zone=self.time_zone,
            option_list=SOURCE_OPTIONS,
        )

    def load(self, path: str) -> LoadedTable:
        """Return the table of a path or a name."""
        if scheme_of(path) is not None or "/" in path:
            storage = choose_storage(self.properties, warehouse=path)
            return load_table_at(storage, path)
        parts = parse_name(path)
        address = self.lakes.get(parts[0])
        if address is None:
            names = ", ".join(sorted(self.lakes)) or "(none)"
            raise TableNotFoundError(
                f"Cannot find the table {path!r}: no lake is registered as {parts[0]!r}",
                hint=f"The lakes are: {names}. A path has a slash in it.",
            )
        with address.open() as lake:
            return lake.catalog.load_table(parts[1:])


def _check_no_secrets(properties: Mapping[str, str], catalog: str | None = None) -> None:
    """Refuse to send secrets; the error does not show them."""
    secrets = SERVICE_SECRETS | GLUE_SECRETS
    secret_name = next((name for name in properties if is_secret(name) or name in secrets), None)
    parts = urlsplit(catalog or "")
    if (
        secret_name is None
        and parts.password is None
        and "password" not in {name.lower() for name in parse_qs(parts.query)}
    ):
        return
    raise InvalidRequestError(
        f"Cannot send {secret_name or 'the password of the catalog'} to Spark's other processes: it would be pickled",
        hint="Put it into a file that every machine has, and pass LakeAddress(…, secrets_file=path); "
        "or use the machines' own keys (s3.use-environment).",
    )


def _read_secrets(path: str) -> dict[str, Any]:
    try:
        secrets = json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        raise InvalidRequestError(
            f"Cannot read catalog credentials from {path!r}: not found or not valid JSON", cause=type(error).__name__
        ) from None
    if not isinstance(secrets, dict) or not secrets.keys() <= {"catalog", "properties"}:
        raise InvalidRequestError(
            f"Cannot read catalog credentials from {path!r}: not a JSON object with catalog and properties"
        )
    return secrets


def load_table_at(storage: Storage, path: str) -> LoadedTable:
    """Load the table of a metadata file, or of the newest one in a table's folder."""
    location = strip_slashes(path)
    if not location.endswith(_METADATA_ENDINGS):
        location = _newest_metadata(storage, location)
    metadata = read_table_metadata(storage, location)
    return LoadedTable((metadata.location.rpartition("/")[2] or "table",), metadata, location, storage)


def _newest_metadata(storage: Storage, folder: str) -> str:
    """Return the metadata file with the highest number; two with that number are ambiguous."""
    try:
        names = storage.list_children(f"{folder}/metadata").files
    except StorageError as error:
        raise TableNotFoundError(
            f"Cannot find a table at {folder!r}: its metadata folder cannot be listed", cause=str(error)
        ) from error
    numbered = [
        (version, name)
        for name in names
        if name.endswith(_METADATA_ENDINGS) and (version := find_metadata_version(name)) is not None
    ]
    if not numbered:
        raise TableNotFoundError(
            f"Cannot find a table at {folder!r}: its metadata folder contains no metadata file",
            hint="Pass the folder that contains `metadata`, or a metadata file.",
        )
    newest = max(version for version, _ in numbered)
    files = sorted(name for version, name in numbered if version == newest)
    if len(files) > 1:
        raise InvalidRequestError(
            f"Cannot tell which state of the table at {folder!r} is the current one: "
            f"{' and '.join(files[:3])} have the same number",
            hint="Pass one of the metadata files, or the table's name in its catalog.",
        )
    return f"{folder}/metadata/{files[0]}"


def register_source(
    spark: Any = None,
    lakes: Mapping[str, LakeAddress] = FrozenMap(),
    *,
    properties: Mapping[str, str] = FrozenMap(),
    name: str = "iceberg",
) -> None:
    """Let a session read `format("iceberg")` through Spark's Python Data Source API, including Spark Connect.

    Executors need frazil. `lakes` are the lakes by name, `properties` configure access to paths in object stores;
    passwords and keys in them are refused. If lakes are attached, `format("iceberg")` reads them directly, and faster:
    a
    Python data source beside it needs another `name`.
    """
    for address in lakes.values():
        _check_no_secrets(address.properties, address.catalog)
    _check_no_secrets(properties)
    session = choose_session(spark)
    zone = session.conf.get("spark.sql.session.timeZone") or "UTC"
    from frazil.spark.read.source import register_source

    register_source(session, SourceTables(FrozenMap(lakes), FrozenMap(properties), zone), name)
