"""A client without keys of its own, on an object store: by keys that the service gives, and by its signatures."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.errors import FrazilError, UnsupportedError
from frazil.serve.store_access import StoreAccess
from tests.support.s3_server import BUCKET, S3Server
from tests.support.served_lake import served


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


@pytest.mark.parametrize("way", ["vended-credentials", "remote-signing"])
def test_client_without_credentials_uses_vended_ones(s3_server: S3Server, tmp_path: Path, way: str) -> None:
    warehouse = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    properties = s3_server.properties
    is_signed = way == "remote-signing"
    access = StoreAccess(properties, vend="none" if is_signed else "keys", signs=is_signed, roots=(warehouse,))
    catalog = f"sqlite:///{tmp_path / 'catalog.db'}"
    with served(warehouse, catalog=catalog, properties=properties, access=access) as server:
        with frazil.connect(f"http://127.0.0.1:{server.port}") as lake:
            table = lake.create_table("db.t", "id bigint")
            assert table.location.startswith(warehouse)
            table.append(rows(1, 2, 3))
            table.delete("id = 2", engine="local")
            assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 3]
            assert lake.table("db.t").scan("id > 1").count() == 1
            assert table.check().ok
            if is_signed:
                with pytest.raises(UnsupportedError, match="not after it is dropped"):
                    lake.drop_table("db.t", purge=True)
                assert lake.table("db.t").scan().count() == 2
            else:
                lake.drop_table("db.t", purge=True)
                assert lake.list_tables("db") == []
        with frazil.connect(
            f"http://127.0.0.1:{server.port}", properties={"header.x-iceberg-access-delegation": "none"}
        ) as lake:
            table = lake.create_table("db.u", "id bigint")
            with pytest.raises(FrazilError, match="no credentials"):
                table.append(rows(1))
