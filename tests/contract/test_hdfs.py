"""What the storage of HDFS promises beside the contract: lost requests, redirects, other clusters, whole lakes."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.errors import (
    AccessDeniedError,
    FileAlreadyExistsError,
    InvalidPropertyError,
    InvalidRequestError,
    StorageError,
    WriteOutcomeUnknownError,
)
from frazil.storage.http import Answer, HttpClient, RequestNotSent
from frazil.storage.origin import Origin
from frazil.storage.webhdfs import HdfsStorage, hdfs_service
from tests.support.hdfs_cluster import FaultyHttp, shared_cluster

CLUSTER = "hdfs://cluster"


class Scripted(HttpClient):
    """A client of HTTP that answers as it was told, and keeps what it was asked."""

    __slots__ = ("answers", "asked")

    def __init__(self, *answers: Answer) -> None:
        super().__init__()
        self.answers = list(answers)
        self.asked: list[tuple[str, str, str]] = []

    def send(
        self, origin: Origin, method: str, target: str, headers: Mapping[str, str], body: Any = b"", **options: Any
    ) -> Answer:
        self.asked.append((str(origin), method, target))
        if not self.answers:
            raise RequestNotSent("nothing is left to answer")
        return self.answers.pop(0)


def storage_with(http: HttpClient, **more: str) -> HdfsStorage:
    properties = {"webhdfs.endpoint": "http://nn.lake.example:9870", "webhdfs.user": "ann", **more}
    return HdfsStorage(hdfs_service(properties, [f"{CLUSTER}/wh"]), http=http, sleep=lambda seconds: None)


def to(url: str) -> Answer:
    return Answer(307, {"location": url})


@pytest.mark.extended
class TestFaults:
    def storage(self, http: HttpClient) -> HdfsStorage:
        return HdfsStorage(hdfs_service(shared_cluster(), [CLUSTER]), http=http, sleep=lambda seconds: None)

    @pytest.mark.parametrize("is_carried_out", [True, False])
    @pytest.mark.parametrize("count", [1, 2])
    @pytest.mark.parametrize("op", ["op=CREATE", "op=RENAME", "op=GETFILESTATUS"])
    @pytest.mark.parametrize("verb", ["create_exclusive", "replace"])
    def test_write_succeeds_despite_lost_requests_and_answers(
        self, verb: str, op: str, count: int, is_carried_out: bool
    ) -> None:
        path = f"{CLUSTER}/{uuid.uuid4().hex}/f"
        storage = self.storage(FaultyHttp(op, count, is_carried_out=is_carried_out))
        getattr(storage, verb)(path, b"data")
        assert storage.read(path) == b"data"
        assert [one.path for one in storage.list(path.rpartition("/")[0])] == [path]

    @pytest.mark.parametrize("is_carried_out", [True, False])
    def test_taken_name_is_refused_despite_lost_answers(self, is_carried_out: bool) -> None:
        path = f"{CLUSTER}/{uuid.uuid4().hex}/f"
        first = self.storage(HttpClient())

        class Between(FaultyHttp):
            """Another writer comes between the look and the rename."""

            __slots__ = ()

            def send(self, origin: Origin, method: str, target: str, *rest: Any, **options: Any) -> Answer:
                if "op=RENAME" in target and not first.exists(path):
                    first.create_exclusive(path, b"theirs")
                return super().send(origin, method, target, *rest, **options)

        storage = self.storage(Between("op=RENAME", 1, is_carried_out=is_carried_out))
        with pytest.raises(FileAlreadyExistsError):
            storage.create_exclusive(path, b"mine")
        assert first.read(path) == b"theirs"
        assert [one.path for one in first.list(path.rpartition("/")[0])] == [path]

    def test_unanswered_rename_is_an_unknown_outcome(self) -> None:
        path = f"{CLUSTER}/{uuid.uuid4().hex}/f"
        with pytest.raises(WriteOutcomeUnknownError):
            self.storage(FaultyHttp("op=RENAME", 100, is_carried_out=False)).create_exclusive(path, b"data")

    @pytest.mark.parametrize("catalog", ["filesystem", "sqlite"])
    def test_lake_on_hdfs(self, tmp_path: Any, catalog: str) -> None:
        place = f"{CLUSTER}/{uuid.uuid4().hex}"
        uri = "filesystem" if catalog == "filesystem" else f"sqlite:///{tmp_path}/catalog.db"
        with frazil.connect(place, catalog=uri, properties=shared_cluster()) as lake:
            table = lake.create_table("db.t", "id bigint, s string")
            for at in range(3):
                table.append(pa.table({"id": [at], "s": ["x" * at]}))
            table.delete("id = 1")
            assert table.scan().count() == 2
            assert table.check().ok
            lake.drop_table("db.t", purge=True)


class TestRedirects:
    def test_reads_follow_the_redirect_to_a_data_node(self) -> None:
        url = "http://dn1.lake.example:9864/webhdfs/v1/wh/f?op=OPEN&user.name=ann&offset=0"
        http = Scripted(to(url), Answer(200, {}, b"data"))
        assert storage_with(http).read(f"{CLUSTER}/wh/f") == b"data"
        assert http.asked == [
            ("http://nn.lake.example:9870", "GET", "/webhdfs/v1/wh/f?op=OPEN&user.name=ann"),
            ("http://dn1.lake.example:9864", "GET", "/webhdfs/v1/wh/f?op=OPEN&user.name=ann&offset=0"),
        ]

    @pytest.mark.parametrize(
        "url",
        [
            "http://dn1.lake.example:9864/webhdfs/v1/wh/other?op=OPEN",
            "http://dn1.lake.example:9864/webhdfs/v1/wh/f?op=DELETE",
            "http://dn1.lake.example:9864/webhdfs/v1/wh/f",
            "http://evil.example/collect?op=OPEN",
        ],
    )
    def test_unrelated_redirect_is_refused(self, url: str) -> None:
        http = Scripted(to(url))
        with pytest.raises(StorageError, match="not taken for a data node"):
            storage_with(http).read(f"{CLUSTER}/wh/f")
        assert len(http.asked) == 1

    def test_data_nodes_can_be_restricted(self) -> None:
        path = "/webhdfs/v1/wh/f?op=OPEN"
        named = {"webhdfs.data-nodes": "dn.example, lake.example"}
        for host, is_followed in (("dn1.lake.example", True), ("dn.example", True), ("xlake.example", False)):
            http = Scripted(to(f"http://{host}{path}"), Answer(200, {}, b"data"))
            storage = storage_with(http, **named)
            if is_followed:
                assert storage.read(f"{CLUSTER}/wh/f") == b"data"
                continue
            with pytest.raises(StorageError, match="not taken for a data node"):
                storage.read(f"{CLUSTER}/wh/f")

    def test_redirect_from_tls_to_plain_http_is_refused(self) -> None:
        http = Scripted(to("http://dn1.lake.example:9864/webhdfs/v1/wh/f?op=OPEN"))
        with pytest.raises(StorageError, match="not taken for a data node"):
            storage_with(http, **{"webhdfs.endpoint": "https://nn.lake.example:9871"}).read(f"{CLUSTER}/wh/f")

    def test_gateway_answers_without_a_redirect(self) -> None:
        assert storage_with(Scripted(Answer(200, {}, b"data"))).read(f"{CLUSTER}/wh/f") == b"data"

    def test_standby_name_node_is_skipped(self) -> None:
        standby = b'{"RemoteException": {"exception": "StandbyException", "message": "not me"}}'
        status = b'{"FileStatus": {"type": "FILE", "length": 7}}'
        http = Scripted(Answer(403, {}, standby), Answer(200, {}, status))
        nodes = {"webhdfs.endpoint": "http://nn1.example:9870, http://nn2.example:9870"}
        assert storage_with(http, **nodes).size(f"{CLUSTER}/wh/f") == 7
        assert [origin for origin, _, _ in http.asked] == ["http://nn1.example:9870", "http://nn2.example:9870"]


class TestWho:
    def test_delegation_token_is_neither_shown_nor_pickled(self) -> None:
        token = "secret-token-of-the-tests"
        refused = f'{{"RemoteException": {{"exception": "InvalidToken", "message": "token {token} is gone"}}}}'
        http = Scripted(*[Answer(403, {}, refused.encode())] * 5)
        storage = storage_with(http, **{"webhdfs.delegation-token": token})
        with pytest.raises(AccessDeniedError) as caught:
            storage.size(f"{CLUSTER}/wh/f")
        assert token not in str(caught.value)
        assert "user.name" not in http.asked[0][2]
        assert f"delegation={token}" in http.asked[0][2]
        assert token not in repr(storage)
        assert token.encode() not in pickle.dumps(storage)

    @pytest.mark.parametrize("location", ["hdfs://other/wh/f", "hdfs://other:8020/f", "webhdfs://evil.example:80/f"])
    def test_cluster_named_only_by_metadata_is_not_contacted(self, location: str) -> None:
        http = Scripted()
        with pytest.raises(InvalidRequestError, match="is not the cluster of this lake"):
            storage_with(http).read(location)
        assert http.asked == []

    @pytest.mark.parametrize("location", ["hdfs://cluster/a/../f", "hdfs:relative", "file:///f"])
    def test_invalid_locations_are_refused(self, location: str) -> None:
        http = Scripted()
        with pytest.raises(InvalidRequestError, match="Cannot use the location"):
            storage_with(http).read(location)
        assert http.asked == []

    def test_webhdfs_location_names_its_endpoint(self) -> None:
        service = hdfs_service({}, ["swebhdfs://nn.example:9871/wh"])
        assert [str(one) for one in service.endpoints] == ["https://nn.example:9871"]

    @pytest.mark.parametrize(
        ("properties", "error"),
        [
            ({}, InvalidRequestError),
            ({"webhdfs.endpoint": "nn:9870"}, InvalidPropertyError),
            ({"webhdfs.endpoint": "http://nn:9870", "webhdfs.user": "a&b"}, InvalidPropertyError),
            ({"webhdfs.endpoint": "http://nn:9870", "webhdfs.delegation-token": "a b"}, InvalidPropertyError),
        ],
    )
    def test_invalid_connection_properties_are_refused(
        self, properties: dict[str, str], error: type[Exception]
    ) -> None:
        with pytest.raises(error, match="Cannot use"):
            hdfs_service(properties, [f"{CLUSTER}/wh"])
