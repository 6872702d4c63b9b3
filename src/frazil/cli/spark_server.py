"""`frazil spark-server`: a Spark driver with the lake for clients of Spark Connect and JDBC."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Annotated, Any

import typer

from frazil.cli.find_java import check_java
from frazil.cli.serve_command import is_loopback
from frazil.cli.session import opened, wrong_usage
from frazil.cli.start_token import Open, TokenFile, new_token, show_address
from frazil.errors import EngineError, InvalidRequestError
from frazil.verbs.on_spark import check_pyspark

TOKEN_VARIABLE = "FRAZIL_SPARK_TOKEN"
_POLL_SECONDS = 1.0


def spark_server(
    context: typer.Context,
    connect: Annotated[
        int | None, typer.Option("--connect", help="Serve Spark Connect on this port: 15002, or 0 for any")
    ] = None,
    thrift: Annotated[int | None, typer.Option("--thrift", help="Serve JDBC on this port: 10000, or 0 for any")] = None,
    host: Annotated[
        str, typer.Option("--host", help="The address to listen on; Connect requires a token except on the loopback")
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            envvar=TOKEN_VARIABLE,
            help="Require this token for Connect. Preferably set it in the environment",
        ),
    ] = None,
    is_open: Open = False,
    token_file: TokenFile = None,
    trusts_network: Annotated[
        bool,
        typer.Option("--trust-network", help="Serve JDBC beyond this machine, although it has no authentication"),
    ] = False,
    name: Annotated[str, typer.Option("--name", help="The lake's name in SQL")] = "lake",
    master: Annotated[str, typer.Option("--master", help="The Spark master")] = "local[*]",
    settings: Annotated[
        list[str] | None, typer.Option("--conf", help="NAME=VALUE, a Spark setting. May be repeated")
    ] = None,
) -> None:
    """Run a Spark driver with the lake, for clients of Spark Connect and of JDBC.

    \b
    frazil -w warehouse spark-server --connect 15002
    frazil -w warehouse spark-server --connect 15002 --thrift 10000

    Clients need no frazil: SparkSession.builder.remote("sc://localhost:15002"), jdbc:hive2://localhost:10000.
    Ctrl-C or SIGTERM stops it.
    """
    with opened(context, makes=True) as (lake, _):
        if connect is None and thrift is None:
            raise wrong_usage("Cannot serve Spark: no port was set", "Pass --connect, --thrift or both.")
        if connect is not None and not is_loopback(host) and not token:
            raise InvalidRequestError(
                f"Cannot serve Spark Connect on {host} without a token: any client can run programs on this machine",
                hint=f"Set {TOKEN_VARIABLE}, or listen on 127.0.0.1.",
            )
        if thrift is not None and not is_loopback(host) and not trusts_network:
            raise InvalidRequestError(
                f"Cannot serve JDBC on {host}: it has no authentication, and clients can run programs on this machine",
                hint="Listen on 127.0.0.1, or pass --trust-network if a network or a proxy restricts access.",
            )
        needs_token = connect is not None and not token and is_loopback(host)
        generated = new_token(is_needed=needs_token, is_open=is_open, token_file=token_file)
        ports = (_port(host, connect), _port(host, thrift))
        with _driver(lake, host, ports, token or generated, master, _pairs(settings)) as spark:
            _serve(spark, lake, name, host, ports, is_guarded=bool(token or generated), generated=generated)


def _port(host: str, requested: int | None) -> int | None:
    """Return the requested port or, for 0, a free one."""
    if requested != 0:
        return requested
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def _pairs(texts: list[str] | None) -> dict[str, str]:
    pairs = {}
    for pair in texts or []:
        name, equals, value = pair.partition("=")
        if not equals or not name.startswith("spark."):
            raise wrong_usage(f"Cannot take {pair!r} as a setting: it is not spark.NAME=VALUE")
        pairs[name] = value
    return pairs


@contextmanager
def _driver(
    lake: Any,
    host: str,
    ports: tuple[int | None, int | None],
    token: str | None,
    master: str,
    settings: dict[str, str],
) -> Iterator[Any]:
    """Start Spark for the lifetime of a server; its temporary files are removed afterwards."""
    check_pyspark()
    check_java()
    from frazil.cli.start import allow_pandas

    allow_pandas()
    from frazil.spark.jvm import file_systems as systems
    from frazil.spark.jvm import serve_clients as clients
    from frazil.storage.choose import stores_of

    stores = stores_of(lake.catalog.storage)
    location = systems.place_of_files(lake.catalog.warehouse, stores)
    systems.add_package(settings, location)
    folder = tempfile.mkdtemp(prefix="frazil-spark-")
    # Clients' programs run in the Python of this process.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    defaults = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}",
        **systems.settings_of(location, stores),
    }
    if is_loopback(host) and master.startswith("local"):
        defaults |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if ports[0] is not None:
        defaults |= clients.connect_settings(host, ports[0], token)
    if ports[1] is not None:
        defaults |= clients.thrift_settings(host, ports[1])
    spark = clients.start_driver(master, "frazil spark-server", {**defaults, **settings})
    try:
        yield spark
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _serve(
    spark: Any,
    lake: Any,
    name: str,
    host: str,
    ports: tuple[int | None, int | None],
    *,
    is_guarded: bool,
    generated: str | None,
) -> None:
    from frazil.sessions import attach as attaching
    from frazil.spark.jvm import serve_clients as clients

    address = f"[{host}]" if ":" in host else host
    with ExitStack() as ends, _stop_requested() as stopped:
        attaching.attach(spark, lake, name)
        ends.callback(attaching.detach, spark)
        if ports[0] is not None:
            clients.start_connect(spark)
            ends.callback(clients.stop_connect, spark)
            guard = "a token is required" if is_guarded else _guard(host)
            _print_line(f"Spark Connect on sc://{address}:{ports[0]} ({guard})")
            if generated is not None:
                # PySpark sends a token unencrypted only to this name.
                show_address(f"sc://localhost:{ports[0]}/;token={generated}")
                sys.stdout.flush()
        if ports[1] is not None:
            server = clients.start_thrift(spark)
            ends.callback(server.stop)
            _print_line(f"JDBC on jdbc:hive2://{address}:{ports[1]} ({_guard(host)})")
        _print_line(f"The lake is {name!r}. Clients read and write it, and run programs, as this user.")
        while not stopped.wait(_POLL_SECONDS):
            if clients.has_ended(spark):
                raise EngineError("Cannot continue serving: Spark's process has ended")
        _print_line("Stopping.")


def _guard(host: str) -> str:
    if is_loopback(host):
        return "no authentication; any user of this machine has access"
    return "no authentication; a network or a proxy must restrict access"


@contextmanager
def _stop_requested() -> Iterator[threading.Event]:
    """Yield an event that SIGTERM and ctrl-C set."""
    stopped = threading.Event()
    before = {signal_number: signal.getsignal(signal_number) for signal_number in (signal.SIGTERM, signal.SIGINT)}
    try:
        for number in before:
            signal.signal(number, lambda *_: stopped.set())
        yield stopped
    finally:
        for key, handler in before.items():
            signal.signal(key, handler)


def _print_line(text: str) -> None:
    typer.echo(text, err=True)
    sys.stderr.flush()
