"""Requests over HTTP: what is told apart when they fail, and what is never done."""

from __future__ import annotations

import datetime
import os
import pickle
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from frazil.errors import InvalidRequestError
from frazil.storage.http import AnswerLost, HttpClient, Proxy, RequestNotSent, TlsFiles
from frazil.storage.origin import Origin

Serve = Callable[[socket.socket], None]


@contextmanager
def served(serve: Serve) -> Iterator[tuple[Origin, list[int]]]:
    """Serve each connection by a function in a thread of its own; yield the server and the connections made."""
    made: list[int] = []
    listening = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []
    connections: list[socket.socket] = []

    def one(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            serve(connection)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                made.append(len(made))
                connections.append(connection)
                threads.append(threading.Thread(target=one, args=(connection,)))
                threads[-1].start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield Origin("127.0.0.1", listening.getsockname()[1], is_tls=False), made
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        accepting.join()
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(5)


def read_head(connection: socket.socket) -> bytes:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        piece = connection.recv(1)
        if piece == b"":
            raise ConnectionResetError
        head += piece
    return head


def always(answer: bytes, times: int = 1000) -> Serve:
    def serve(connection: socket.socket) -> None:
        for _ in range(times):
            read_head(connection)
            connection.sendall(answer)

    return serve


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture
def client() -> HttpClient:
    return HttpClient(connect_timeout=2, timeout=2)


def test_connection_is_reused(client: HttpClient) -> None:
    with served(always(OK)) as (origin, made):
        for _ in range(5):
            assert client.send(origin, "GET", "/", {"host": "a"}).body == b"ok"
        assert len(made) == 1


def test_closed_connection_is_not_reused(client: HttpClient) -> None:
    with served(always(OK, times=1)) as (origin, made):
        for _ in range(5):
            assert client.send(origin, "GET", "/", {"host": "a"}).body == b"ok"
            # The server closes after each answer; its word has to arrive.
            threading.Event().wait(0.02)
        assert len(made) == 5


def test_headers_are_sent_unchanged(client: HttpClient) -> None:
    heads: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        while True:
            heads.append(read_head(connection))
            connection.sendall(OK)

    with served(serve) as (origin, _):
        client.send(origin, "GET", "/a%20b?c=", {"host": "h", "x-a": "1"})
        client.send(origin, "PUT", "/", {"host": "h"}, b"")
    assert heads[0] == b"GET /a%20b?c= HTTP/1.1\r\nhost: h\r\nx-a: 1\r\n\r\n"
    assert heads[1] == b"PUT / HTTP/1.1\r\nhost: h\r\ncontent-length: 0\r\n\r\n"


def test_failed_connection_means_nothing_was_sent(client: HttpClient) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(RequestNotSent, match="no connection"):
        client.send(Origin("127.0.0.1", port, is_tls=False), "PUT", "/", {})
    with pytest.raises(RequestNotSent, match="no connection"):
        client.send(Origin("no-such-host.invalid"), "PUT", "/", {})


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nup to where?",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        b"not http at all\r\n\r\n",
        b"HTTP/1.1 twohundred OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 1000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nA: " + b"b" * 100_000 + b"\r\n\r\n",
    ],
    ids=lambda answer: answer[:50].decode().split("\r\n")[0] + str(len(answer)),
)
def test_incomplete_response_is_lost(client: HttpClient, answer: bytes) -> None:
    with served(always(answer, times=1)) as (origin, _), pytest.raises(AnswerLost):
        client.send(origin, "PUT", "/", {"host": "a"}, b"")


def test_silent_server_times_out() -> None:
    def serve(connection: socket.socket) -> None:
        threading.Event().wait(0.3)

    with served(serve) as (origin, _), pytest.raises(AnswerLost, match="timed out"):
        HttpClient(timeout=0.1).send(origin, "GET", "/", {"host": "a"})


def test_slow_drip_server_times_out() -> None:
    def serve(connection: socket.socket) -> None:
        read_head(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(1000):
            connection.sendall(b"1\r\nx\r\n")

    ticks = iter(range(0, 10_000, 3))
    client = HttpClient(timeout=30, clock=lambda: next(ticks))
    with served(serve) as (origin, _), pytest.raises(AnswerLost, match="timed out"):
        client.send(origin, "GET", "/", {"host": "a"}, max_bytes=100)


def test_refusal_before_the_body_was_read_is_received(client: HttpClient) -> None:
    def serve(connection: socket.socket) -> None:
        read_head(connection)
        connection.sendall(b"HTTP/1.1 412 Precondition Failed\r\nContent-Length: 2\r\n\r\nno")
        threading.Event().wait(0.1)

    with served(serve) as (origin, _):
        answer = client.send(origin, "PUT", "/", {"host": "a"}, b"x" * 50_000_000)
    assert (answer.status, answer.body) == (412, b"no")


def test_success_before_the_body_was_read_is_not_trusted(client: HttpClient) -> None:
    def serve(connection: socket.socket) -> None:
        read_head(connection)
        connection.sendall(OK)
        threading.Event().wait(0.1)

    with served(serve) as (origin, _), pytest.raises(AnswerLost, match="before it had received the whole request"):
        client.send(origin, "PUT", "/", {"host": "a"}, b"x" * 50_000_000)


@pytest.mark.parametrize(
    ("min_bytes", "max_bytes", "is_read"), [(0, 2, True), (2, 2, True), (0, 1, False), (3, 9, False)]
)
@pytest.mark.parametrize(
    "coding", [b"Content-Length: 2\r\n\r\nok", b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"]
)
def test_body_of_unexpected_length_is_not_returned(
    client: HttpClient, coding: bytes, min_bytes: int, max_bytes: int, is_read: bool
) -> None:
    with served(always(b"HTTP/1.1 200 OK\r\n" + coding)) as (origin, _):
        answer = client.send(origin, "GET", "/", {"host": "a"}, min_bytes=min_bytes, max_bytes=max_bytes)
        assert answer.is_read is is_read
        assert answer.body == (b"ok" if is_read else b"")
        assert client.send(origin, "GET", "/", {"host": "a"}).body == b"ok", "the next answer starts at its start"


def test_redirects_are_not_followed(client: HttpClient) -> None:
    with served(always(OK)) as (other, made):
        text = f"HTTP/1.1 307 Elsewhere\r\nLocation: {other}/\r\nContent-Length: 0\r\n\r\n"
        with served(always(text.encode())) as (origin, _):
            assert client.send(origin, "GET", "/", {"authorization": "secret"}).status == 307
        assert made == []


def test_proxies_of_the_environment_are_not_used(client: HttpClient, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(always(OK)) as (proxy, made), served(always(OK)) as (origin, _):
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, str(proxy))
        assert client.send(origin, "GET", "/", {"host": "a"}).body == b"ok"
        assert made == []


def test_proxy_gets_the_absolute_url_of_a_plain_server() -> None:
    heads: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        heads.append(read_head(connection))
        connection.sendall(OK)

    with served(serve) as (proxy, _):
        client = HttpClient(connect_timeout=2, timeout=2, proxy=Proxy(proxy, "Basic canary"))
        assert client.send(Origin("store.example", 9000, is_tls=False), "GET", "/b/k?x=1", {"host": "a"}).body == b"ok"
    assert heads[0].startswith(b"GET http://store.example:9000/b/k?x=1 HTTP/1.1\r\n")
    assert b"proxy-authorization: Basic canary" in heads[0]
    assert "canary" not in repr(Proxy(proxy, "Basic canary"))
    assert b"canary" not in pickle.dumps(Proxy(proxy, "Basic canary"))


def test_proxy_tunnels_to_a_tls_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = own_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    heads: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        heads.append(read_head(connection))
        connection.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        with context.wrap_socket(connection, server_side=True) as secure:
            heads.append(read_head(secure))
            secure.sendall(OK)

    with served(serve) as (proxy, _):
        client = HttpClient(connect_timeout=2, timeout=2, proxy=Proxy(proxy, "Basic canary"))
        assert client.send(Origin("localhost"), "GET", "/k", {"host": "localhost", "authorization": "s"}).body == b"ok"
    assert heads[0].startswith(b"CONNECT localhost:443 HTTP/1.")
    assert b"Basic canary" in heads[0]
    assert b"authorization: s" not in heads[0]
    assert heads[1].startswith(b"GET /k HTTP/1.1\r\n")
    assert b"canary" not in heads[1]


def test_proxy_refusal_means_nothing_was_sent() -> None:
    with served(always(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")) as (proxy, _):
        client = HttpClient(connect_timeout=2, timeout=2, proxy=Proxy(proxy))
        with pytest.raises(RequestNotSent, match="407"):
            client.send(Origin("localhost"), "PUT", "/k", {"host": "localhost"})


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def test_tls_connection_is_reused(
    client: HttpClient, version: ssl.TLSVersion, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = own_certificate(tmp_path)
    # Where OpenSSL looks for those it trusts: the client vouches for this one, and checks it as it does any other.
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = context.maximum_version = version
    context.load_cert_chain(certificate)

    def serve(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secure:
            always(OK, times=5)(secure)

    with served(serve) as (origin, made):
        secure_origin = Origin("localhost", origin.port)
        for _ in range(5):
            assert client.send(secure_origin, "PUT", "/", {"host": "a"}).body == b"ok"
        assert len(made) == 1, "what TLS sends beside the answers does not end a connection"
        with pytest.raises(RequestNotSent, match=r"(?i)certificate"):
            client.send(Origin("127.0.0.1", origin.port), "GET", "/", {"authorization": "secret"})


def test_untrusted_certificate_is_refused(client: HttpClient, tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own_certificate(tmp_path))

    def serve(connection: socket.socket) -> None:
        with suppress(ssl.SSLError), context.wrap_socket(connection, server_side=True) as secure:
            secure.recv(1)

    with served(serve) as (origin, _), pytest.raises(RequestNotSent, match=r"(?i)certificate"):
        client.send(Origin("localhost", origin.port), "GET", "/", {"authorization": "secret"})


@pytest.mark.parametrize("ending", [b"", b"no record of TLS"])
def test_broken_tls_connection_may_have_carried_the_request(ending: bytes, tmp_path: Path) -> None:
    certificate = own_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def serve(connection: socket.socket) -> None:
        secure = context.wrap_socket(connection, server_side=True)
        read_head(secure)
        with socket.socket(fileno=secure.detach()) as plain:
            plain.sendall(ending)

    client = HttpClient(connect_timeout=2, timeout=2, tls=TlsFiles(str(certificate)))
    with served(serve) as (origin, _), pytest.raises(AnswerLost):
        client.fetch("POST", f"https://localhost:{origin.port}/", {}, b"{}")


def test_client_certificate_is_sent_on_request(tmp_path: Path) -> None:
    certificate = str(own_certificate(tmp_path))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.load_verify_locations(certificate)
    context.verify_mode = ssl.CERT_REQUIRED

    def serve(connection: socket.socket) -> None:
        with suppress(ssl.SSLError), context.wrap_socket(connection, server_side=True) as secure:
            always(OK)(secure)

    with served(serve) as (origin, _):
        url = f"https://localhost:{origin.port}/"
        assert HttpClient(tls=TlsFiles(certificate, certificate)).fetch("GET", url, {}).body == b"ok"
        with pytest.raises((AnswerLost, RequestNotSent)):
            HttpClient(tls=TlsFiles(certificate)).fetch("GET", url, {})


@pytest.mark.parametrize("kind", ["key", "certificate"])
def test_encrypted_key_is_refused_without_a_prompt(tmp_path: Path, kind: str) -> None:
    key = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"hidden")
    )
    certificate = own_certificate(tmp_path)
    path = tmp_path / "key.pem"
    path.write_bytes(key if kind == "key" else key + certificate.read_bytes())
    files = TlsFiles(None, str(certificate if kind == "key" else path), str(path))
    with served(always(OK)) as (origin, _), pytest.raises(RequestNotSent):
        HttpClient(tls=files).fetch("GET", f"https://localhost:{origin.port}/", {})


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("/a%20b/c%1Fd?x=%2F&y=a+b#part", b"GET /a%20b/c%1Fd?x=%2F&y=a+b HTTP/1.1"),
        ("", b"GET / HTTP/1.1"),
        ("/a b/\u00e9?\u00e9", b"GET /a%20b/%C3%A9?%C3%A9 HTTP/1.1"),
        ("/a/../b", b"GET /a/../b HTTP/1.1"),
    ],
)
def test_url_is_requested_as_written(client: HttpClient, url: str, line: bytes) -> None:
    heads: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        heads.append(read_head(connection))
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nuntil the end")

    with served(serve) as (origin, _):
        assert client.fetch("GET", f"{origin}{url}", {"x": "y"}).body == b"until the end"
    host = f"host: {origin.authority}".encode()
    assert heads[0].split(b"\r\n")[:4] == [line, host, b"accept-encoding: identity", b"x: y"]


@pytest.mark.parametrize("url", ["ftp://host/", "path", "http://", "http://[::1/", "http://h:port/", "http://a b/"])
def test_invalid_url_is_refused(client: HttpClient, url: str) -> None:
    with pytest.raises(InvalidRequestError, match="Cannot reach"):
        client.fetch("GET", url, {})


def test_document_is_complete_or_lost(client: HttpClient) -> None:
    for answer in (
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        b"HTTP/1.1 500 Oh\r\nContent-Length: 10\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n",
    ):
        with served(always(answer, times=1)) as (origin, _), pytest.raises(AnswerLost):
            client.fetch("GET", str(origin), {})


def test_chunked_document_leaves_the_connection_usable(client: HttpClient) -> None:
    body = os.urandom(3_000_000)
    for coding in (
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body),
        b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body),
    ):
        with served(always(b"HTTP/1.1 200 OK\r\n" + coding)) as (origin, made):
            for _ in range(3):
                assert client.fetch("GET", str(origin), {}).body == body
            assert len(made) == 1
            client.close()


def test_secret_for_a_tls_server_is_not_sent_to_a_plain_one(client: HttpClient) -> None:
    heard: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        heard.append(connection.recv(4096))
        connection.sendall(OK)

    with served(serve) as (origin, _), pytest.raises(RequestNotSent):
        client.send(Origin("127.0.0.1", origin.port), "GET", "/", {"authorization": "secret"})
    assert b"secret" not in b"".join(heard)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 1e9])
def test_timeouts_are_bounded(seconds: float) -> None:
    with pytest.raises(InvalidRequestError, match="timeouts"):
        HttpClient(timeout=seconds)
    with pytest.raises(InvalidRequestError, match="timeouts"):
        HttpClient(connect_timeout=seconds)


def own_certificate(folder: Path) -> Path:
    """Write a certificate for localhost that is signed by itself, and its key, into one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(int.from_bytes(os.urandom(8)) | 1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "server.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return path
