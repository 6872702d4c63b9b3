"""What is sent to Spark's other processes holds no password and no key."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

import frazil
from frazil.errors import InvalidRequestError
from frazil.sessions.source_tables import LakeAddress, SourceTables, register_source

SECRET = "hunter2"


@pytest.mark.parametrize(
    "address",
    [
        LakeAddress("w", f"postgresql://user:{SECRET}@host/db"),
        LakeAddress("w", f"postgresql://host/db?user=u&password={SECRET}"),
        LakeAddress("w", properties={"s3.secret-access-key": SECRET}),
        LakeAddress("w", properties={"client.session-token": SECRET}),
        LakeAddress("w", properties={"gcs.oauth2.token": SECRET}),
    ],
)
def test_address_with_a_secret_is_not_sent(address: LakeAddress) -> None:
    for sent in (address, SourceTables({"lake": address})):
        with pytest.raises(InvalidRequestError, match="Cannot send") as caught:
            pickle.dumps(sent)
        assert SECRET not in str(caught.value)
    with pytest.raises(InvalidRequestError, match="Cannot send"):
        register_source(object(), {"lake": address})
    with pytest.raises(InvalidRequestError, match="Cannot send"):
        pickle.dumps(SourceTables({}, {"s3.session-token": SECRET}))


def test_secrets_are_read_where_an_address_arrives(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.json"
    address = LakeAddress(str(tmp_path / "lake"), secrets_file=str(secrets))
    secrets.write_text(json.dumps({"catalog": f"sqlite:///{tmp_path / SECRET}.db", "properties": {}}))
    with address.open() as lake:
        lake.create_table("db.t", "id int")
    sent = pickle.dumps(SourceTables({"lake": address}))
    assert SECRET.encode() not in sent
    assert pickle.loads(sent).load("lake.db.t").name == "db.t"
    secrets.write_text("[]")
    with pytest.raises(InvalidRequestError, match="Cannot read catalog credentials"):
        address.open()
    secrets.unlink()
    with pytest.raises(InvalidRequestError, match="Cannot read catalog credentials"):
        address.open()


def test_lake_reports_whether_its_views_are_trusted(tmp_path: Path) -> None:
    with frazil.connect(tmp_path, properties={"read.trusted-views": "true"}) as lake:
        assert lake.trusts_views
    with frazil.connect(tmp_path) as lake:
        assert not lake.trusts_views
    with pytest.raises(frazil.FrazilError, match="neither true nor false"):
        frazil.connect(tmp_path, properties={"read.trusted-views": "yes"})
