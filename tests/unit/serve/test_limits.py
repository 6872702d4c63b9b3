"""What one client may take of the server, and what the server tells about itself."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request as StarletteRequest
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from frazil.errors import InvalidRequestError, StorageError
from frazil.serve import run_server
from frazil.serve.app import Limits, is_loopback
from frazil.serve.auth import Auth, Secret
from frazil.serve.name_locks import Turns
from frazil.serve.run_server import Listen, bind, check_listen
from tests.support.served_lake import Served, served, table_path


def raw(server: Served, data: bytes, *, seconds: float = 10) -> bytes:
    """Send bytes and return what comes back until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=seconds) as connection:
        connection.sendall(data)
        found = b""
        while chunk := connection.recv(65536):
            found += chunk
        return found


def test_oversized_body_is_refused_before_reading(tmp_path: Path) -> None:
    with served(tmp_path / "w", limits=Limits(body_bytes=1_000)) as server:
        large = server.post("/v1/namespaces", b"x" * 1_001)
        assert (large.code, large.error) == (413, "PayloadTooLargeException")
        head = b"POST /v1/namespaces HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        chunks = b"".join(b"1f4\r\n" + b"x" * 500 + b"\r\n" for _ in range(3))
        assert b" 413 " in raw(server, head + chunks)


def test_stalled_body_is_aborted(tmp_path: Path) -> None:
    with served(tmp_path / "w", limits=Limits(body_seconds=0.3)) as server:
        head = b"POST /v1/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
        assert b" 408 " in raw(server, head)
        assert server.get("/v1/namespaces").code == 200


def test_stalled_or_endless_header_is_aborted(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_server, "HEAD_SECONDS", 0.3)
    assert raw(server, b"") == b""
    assert raw(server, b"GET /v1/config HTTP/1.1\r\nHost: loc") == b""
    long = b"GET /v1/config HTTP/1.1\r\nHost: localhost\r\n" + b"X-A: " + b"x" * 40_000 + b"\r\nX-B: " + b"x" * 40_000
    try:
        assert b" 200 " not in raw(server, long + b"\r\n\r\n")
    except ConnectionResetError:
        pass
    assert server.get("/v1/config").code == 200


def test_requests_beyond_the_queue_limit_are_refused(tmp_path: Path) -> None:
    with served(tmp_path / "w", limits=Limits(threads=1, waiting=1)) as server:
        begun, may_end = threading.Event(), threading.Event()
        listed = server.catalog.list_namespaces

        def slow(parent: tuple[str, ...] = ()) -> tuple[tuple[str, ...], ...]:
            begun.set()
            may_end.wait(60)
            return listed(parent)

        server.catalog.list_namespaces = slow  # type: ignore[method-assign]
        codes: list[int] = []
        threads = [threading.Thread(target=lambda: codes.append(server.get("/v1/namespaces").code)) for _ in range(2)]
        threads[0].start()
        assert begun.wait(60)
        threads[1].start()
        deadline = time.monotonic() + 60
        while b"in_flight 2" not in server.get("/metrics").body and time.monotonic() < deadline:
            time.sleep(0.01)
        away = server.get("/v1/config")
        assert (away.code, away.error, away.headers["retry-after"]) == (503, "SlowDownException", "1")
        may_end.set()
        for one in threads:
            one.join()
        assert codes == [200, 200]


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_commits_waiting_for_a_table_leave_threads_for_others(tmp_path: Path) -> None:
    clients = 12
    with served(tmp_path / "w", limits=Limits(threads=4)) as server:
        for name in ("hot", "other"):
            server.make_table(name)
        done: list[str] = []

        def commit(turn: int) -> None:
            update = {"action": "set-properties", "updates": {"turn": str(turn)}}
            reply = server.post(table_path("hot"), {"requirements": [], "updates": [update]})
            assert reply.code == 200
            done.append(reply.json["metadata"]["properties"]["turn"])

        threads = [threading.Thread(target=commit, args=(turn,)) for turn in range(clients)]
        with server.service.committer._locks.held([("db", "hot")]):
            for thread in threads:
                thread.start()
            wait_until(lambda: server.turns.users(("updateTable", "db", "hot")) == clients)
            assert server.get(table_path("other")).code == 200
            update = {"action": "set-properties", "updates": {"a": "b"}}
            assert server.post(table_path("other"), {"requirements": [], "updates": [update]}).code == 200
            assert done == []
        for thread in threads:
            thread.join()
        log = server.get(table_path("hot")).json["metadata"]["metadata-log"]
        assert (len(log), sorted(done, key=int)) == (clients, [str(turn) for turn in range(clients)])
        assert server.turns.users(("updateTable", "db", "hot")) == 0


@pytest.mark.parametrize("at_once", [1, 2])
def test_table_lock_is_granted_in_order_of_arrival(at_once: int) -> None:
    async def go() -> tuple[list[int], int]:
        turns, order, most, running = Turns(), list[int](), 0, 0

        async def take(number: int) -> None:
            nonlocal most, running
            async with turns.taken(("t",), at_once):
                order.append(number)
                running += 1
                most = max(most, running)
                # One takes longer than another.
                for _ in range(1 + number % 3):
                    await asyncio.sleep(0)
                running -= 1

        tasks = [asyncio.create_task(take(number)) for number in range(20)]
        await asyncio.sleep(0)
        assert turns.users(("t",)) == 20
        # One who goes away is no longer in the others' way.
        tasks[10].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert turns.users(("t",)) == 0
        return order, most

    order, most = asyncio.run(go())
    assert (order, most) == ([number for number in range(20) if number != 10], at_once)


def test_commits_to_several_tables_leave_threads_for_others(tmp_path: Path) -> None:
    with served(tmp_path / "w", limits=Limits(threads=9)) as server:
        for name in ("a", "b", "other"):
            server.make_table(name)
        codes: list[int] = []

        def commit() -> None:
            update = {"action": "set-properties", "updates": {"x": "y"}}
            names = [{"namespace": ["db"], "name": name} for name in ("a", "b")]
            changes = [{"identifier": name, "requirements": [], "updates": [update]} for name in names]
            codes.append(server.post("/v1/transactions/commit", {"table-changes": changes}).code)

        threads = [threading.Thread(target=commit) for _ in range(20)]
        with server.service.committer._locks.held([("db", "a")]):
            for thread in threads:
                thread.start()
            wait_until(lambda: server.turns.users(("commitTransaction",)) == 20)
            assert server.get(table_path("other")).code == 200
        for thread in threads:
            thread.join()
        assert codes == [204] * 20


def test_requests_in_flight_complete_before_shutdown(tmp_path: Path) -> None:
    codes: list[int] = []
    begun, may_end = threading.Event(), threading.Event()
    with served(tmp_path / "w") as server:
        create = server.catalog.create_namespace

        def slow(namespace: tuple[str, ...], properties: Mapping[str, str] | None = None) -> None:
            begun.set()
            may_end.wait(60)
            create(namespace, properties)

        server.catalog.create_namespace = slow  # type: ignore[method-assign]
        asking = threading.Thread(
            target=lambda: codes.append(server.post("/v1/namespaces", {"namespace": ["late"]}).code)
        )
        asking.start()
        assert begun.wait(60)
        threading.Timer(0.3, may_end.set).start()
    asking.join()
    assert codes == [200]
    with served(tmp_path / "w") as server:
        assert server.get("/v1/namespaces/late").code == 200


def test_unsupported_paths_and_methods_are_reported(server: Served) -> None:
    none = server.get("/v1/weather")
    assert (none.code, none.error) == (404, "NotFoundException")
    wrong = server.ask("PATCH", "/v1/namespaces")
    assert (wrong.code, wrong.headers["allow"]) == (405, "GET, POST")
    assert server.get("/v1/namespaces/%ff").code == 400
    assert server.get("/v1/namespaces?parent=%ff").code == 400
    assert server.get("/v1/namespaces/").code == 200


def test_each_request_has_a_log_line_and_an_id(server: Served, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="frazil.serve"):
        reply = server.get("/v1/namespaces/none%0AINFO%20forged")
        deadline = time.monotonic() + 60
        # Lines of requests that came before may still be written.
        written: list[str] = []
        while not written and time.monotonic() < deadline:
            time.sleep(0.01)
            texts = [record.getMessage() for record in caplog.records]
            written = [text for text in texts if reply.headers["x-request-id"] in text]
    (text,) = written
    line = json.loads(text)
    assert line["id"] == reply.headers["x-request-id"]
    assert (line["operation"], line["code"], line["type"]) == ("loadNamespaceMetadata", 404, "NoSuchNamespaceException")
    assert "\n" not in text


def test_prometheus_counters_are_exported(tmp_path: Path) -> None:
    with served(tmp_path / "w") as server:
        server.get("/v1/namespaces")
        server.get("/v1/namespaces/none")
        text = server.get("/metrics").body.decode()
    assert 'frazil_requests_total{operation="listNamespaces",code="200"} 1' in text
    assert 'frazil_errors_total{type="NoSuchNamespaceException"} 1' in text
    assert 'frazil_request_seconds_count{operation="loadNamespaceMetadata"} 1' in text
    assert 'le="+Inf"} 1' in text


def test_client_not_reading_its_response_is_disconnected(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with served(tmp_path / "w", limits=Limits(answer_seconds=1)) as server:
        made = server.make_table("t", "db", properties={f"p{at}": "x" * 30_000 for at in range(20)})
        with socket.socket() as slow, caplog.at_level(logging.INFO, logger="frazil.serve"):
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.settimeout(30)
            slow.connect(("127.0.0.1", server.port))
            slow.sendall(f"GET {table_path('t')} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode() * 40)
            codes: list[int] = []
            deadline = time.monotonic() + 60
            while 0 not in codes and time.monotonic() < deadline:
                time.sleep(0.05)
                lines = [one.getMessage() for one in caplog.records if one.name == "frazil.serve"]
                codes = [json.loads(one)["code"] for one in lines]
            assert 0 in codes
            taken = 0
            with suppress(ConnectionResetError):
                while part := slow.recv(1 << 20):
                    taken += len(part)
            assert taken < 40 * len(made.body)
        whole = server.get(table_path("t"))
        assert (whole.code, whole.json["metadata"]["properties"]["p19"]) == (200, "x" * 30_000)


def test_log_line_of_a_table_loaded_through_a_view_names_the_view(
    server: Served, caplog: pytest.LogCaptureFixture
) -> None:
    server.make_table("t", "db")
    with caplog.at_level(logging.INFO, logger="frazil.serve"):
        for query, code in (("db%1Fouter,db%1Finner", 200), (",", 400)):
            assert server.get(f"{table_path('t')}?referenced-by={query}").code == code
        deadline = time.monotonic() + 60
        lines: list[dict[str, Any]] = []
        while len(lines) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
            every = [json.loads(one.getMessage()) for one in caplog.records]
            lines = [one for one in every if one["operation"] == "loadTable"]
    good, bad = lines
    assert good["views"] == ["db.outer", "db.inner"]
    assert "views" not in bad


def test_unreachable_catalog_is_not_ready(tmp_path: Path) -> None:
    with served(tmp_path / "w") as server:
        assert server.get("/healthz").json == {"status": "ok"}

        def broken(parent: tuple[str, ...] = ()) -> tuple[tuple[str, ...], ...]:
            raise StorageError("Cannot reach the database")

        server.catalog.list_namespaces = broken  # type: ignore[method-assign]
        assert server.get("/healthz").code == 503
        away = server.get("/v1/namespaces")
        assert (away.code, away.error, away.headers["retry-after"]) == (503, "ServiceUnavailableException", "1")


def test_health_does_not_wait_for_requests(tmp_path: Path) -> None:
    with served(tmp_path / "w", limits=Limits(threads=1, waiting=1)) as server:
        began, goes_on = threading.Event(), threading.Event()

        def slow(namespace: tuple[str, ...]) -> dict[str, str]:
            began.set()
            assert goes_on.wait(60)
            return {}

        server.catalog.load_namespace_properties = slow  # type: ignore[method-assign]
        requests = [threading.Thread(target=server.get, args=("/v1/namespaces/db",)) for _ in range(2)]
        for request in requests:
            request.start()
        try:
            assert began.wait(60)
            assert server.get("/healthz").json == {"status": "ok"}
        finally:
            goes_on.set()
            for request in requests:
                request.join()


def test_health_does_not_wait_for_a_catalog_that_answered_before(tmp_path: Path) -> None:
    with served(tmp_path / "w") as server:
        assert server.get("/healthz").json == {"status": "ok"}
        goes_on = threading.Event()

        def slow(parent: tuple[str, ...] = ()) -> tuple[tuple[str, ...], ...]:
            assert goes_on.wait(60)
            raise StorageError("Cannot reach the database")

        server.catalog.list_namespaces = slow  # type: ignore[method-assign]
        try:
            assert server.get("/healthz").json == {"status": "ok"}
        finally:
            goes_on.set()
        wait_until(lambda: server.get("/healthz").code == 503)


def test_internal_errors_reveal_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with served(tmp_path / "w") as server:

        def broken(parent: tuple[str, ...] = ()) -> tuple[tuple[str, ...], ...]:
            raise KeyError("inner secret")

        server.catalog.list_namespaces = broken  # type: ignore[method-assign]
        failed = server.get("/v1/namespaces")
        assert (failed.code, failed.error) == (500, "InternalServerError")
        assert b"inner secret" not in failed.body
    assert any(failed.headers["x-request-id"] in one.getMessage() for one in caplog.records)


def test_other_pages_can_be_mounted_beside_the_protocol(tmp_path: Path) -> None:
    async def page(_: StarletteRequest) -> PlainTextResponse:
        return PlainTextResponse("a page")

    with served(tmp_path / "w", more_routes=[Route("/", page)]) as server:
        assert server.get("/").body == b"a page"
        assert server.get("/v1/config").code == 200


def test_secret_is_required_off_the_loopback(server: Served, tmp_path: Path) -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.com"):
        with pytest.raises(InvalidRequestError, match="no token is required"):
            check_listen(Listen(host), server.service)
    with served(tmp_path / "w", auth=Auth([Secret("a", "x" * 16)])) as guarded:
        check_listen(Listen("0.0.0.0"), guarded.service)
    for host in ("127.0.0.1", "::1", "localhost"):
        check_listen(Listen(host), server.service)
        assert is_loopback(host)
    with pytest.raises(InvalidRequestError, match="requires both"):
        check_listen(Listen(certificate="cert.pem"), server.service)


def test_small_responses_are_sent_immediately() -> None:
    with bind(Listen(port=0)) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            # What asyncio looks at before it turns off the delay of small pieces.
            assert accepted.proto == socket.IPPROTO_TCP


def test_port_in_use_is_reported() -> None:
    with bind(Listen(port=0)) as first, pytest.raises(StorageError, match="Cannot listen"):
        bind(Listen(port=first.getsockname()[1]))
