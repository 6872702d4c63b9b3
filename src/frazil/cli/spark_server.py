"""`frazil spark-server`: a Spark driver with the lake, for clients of Spark Connect and JDBC."""

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
from frazil.lake.on_spark import check_pyspark

TOKEN_VARIABLE = "FRAZIL_SPARK_TOKEN"
_LOOK_SECONDS = 1.0


def spark_server(
    context: typer.Context,
    connect: Annotated[
        int | None, typer.Option("--connect", help="Serve Spark Connect on this port; 0 is any, Spark's own is 15002")
    ] = None,
    thrift: Annotated[
        int | None, typer.Option("--thrift", help="Serve JDBC on this port; 0 is any, Hive's own is 10000")
    ] = None,
    host: Annotated[
        str, typer.Option("--host", help="Where to listen; Connect on others than this machine needs a token")
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(
            "--token", envvar=TOKEN_VARIABLE, help="Ask clients of Connect for this. Better given by the environment"
        ),
    ] = None,
    is_open: Open = False,
    token_file: TokenFile = None,
    trusts_network: Annotated[
        bool,
        typer.Option("--trust-network", help="Serve JDBC on others than this machine, though it asks for no password"),
    ] = False,
    name: Annotated[str, typer.Option("--name", help="The lake's name in SQL")] = "lake",
    master: Annotated[str, typer.Option("--master", help="Where Spark runs")] = "local[*]",
    settings: Annotated[
        list[str] | None, typer.Option("--conf", help="NAME=VALUE, a setting of Spark's. May be repeated")
    ] = None,
) -> None:
    """Run a Spark driver that has the lake, for clients of Spark Connect and of JDBC.

    \b
    frazil -w warehouse spark-server --connect 15002
    frazil -w warehouse spark-server --connect 15002 --thrift 10000

    Clients need nothing of frazil: SparkSession.builder.remote("sc://localhost:15002"), jdbc:hive2://localhost:10000.
    Ctrl-C or SIGTERM end it.
    """
    with opened(context, makes=True) as (lake, _):
        if connect is None and thrift is None:
            raise wrong_usage("Cannot serve Spark: no port was given", "Give --connect, --thrift or both.")
        if connect is not None and not is_loopback(host) and not token:
            raise InvalidRequestError(
                f"Cannot serve Spark Connect on {host} without a token: whoever reaches it can run programs here",
                hint=f"Set {TOKEN_VARIABLE}, or listen on 127.0.0.1.",
            )
        if thrift is not None and not is_loopback(host) and not trusts_network:
            raise InvalidRequestError(
                f"Cannot serve JDBC on {host}: it asks for no password, and a client can run programs here",
                hint="Listen on 127.0.0.1, or give --trust-network if a network or a proxy keeps strangers out.",
            )
        is_needed = connect is not None and not token and is_loopback(host)
        made = new_token(is_needed=is_needed, is_open=is_open, token_file=token_file)
        ports = (_port(host, connect), _port(host, thrift))
        with _driver(lake, host, ports, token or made, master, _pairs(settings)) as spark:
            _serve(spark, lake, name, host, ports, is_guarded=bool(token or made), made=made)


def _port(host: str, asked: int | None) -> int | None:
    """Return the port that was asked for; for 0, one that is free."""
    if asked != 0:
        return asked
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def _pairs(given: list[str] | None) -> dict[str, str]:
    found = {}
    for pair in given or []:
        name, equals, value = pair.partition("=")
        if not equals or not name.startswith("spark."):
            raise wrong_usage(f"Cannot take {pair!r} as a setting: it is not spark.NAME=VALUE")
        found[name] = value
    return found


@contextmanager
def _driver(
    lake: Any,
    host: str,
    ports: tuple[int | None, int | None],
    token: str | None,
    master: str,
    settings: dict[str, str],
) -> Iterator[Any]:
    """Start Spark for the time of a server; what it keeps for itself goes with it."""
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
    # Programs of clients run in the Python that frazil runs in.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    made = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}",
        **systems.settings_of(location, stores),
    }
    if is_loopback(host) and master.startswith("local"):
        made |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if ports[0] is not None:
        made |= clients.connect_settings(host, ports[0], token)
    if ports[1] is not None:
        made |= clients.thrift_settings(host, ports[1])
    spark = clients.start_driver(master, "frazil spark-server", {**made, **settings})
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
    made: str | None,
) -> None:
    from frazil.sessions import attach as attaching
    from frazil.spark.jvm import serve_clients as clients

    address = f"[{host}]" if ":" in host else host
    with ExitStack() as ends, _asked_to_stop() as stopped:
        attaching.attach(spark, lake, name)
        ends.callback(attaching.detach, spark)
        if ports[0] is not None:
            clients.start_connect(spark)
            ends.callback(clients.stop_connect, spark)
            guard = "clients give the token" if is_guarded else _guard(host)
            _say(f"Spark Connect on sc://{address}:{ports[0]} ({guard})")
            if made is not None:
                # PySpark sends a token in the clear to this name alone.
                show_address(f"sc://localhost:{ports[0]}/;token={made}")
                sys.stdout.flush()
        if ports[1] is not None:
            server = clients.start_thrift(spark)
            ends.callback(server.stop)
            _say(f"JDBC on jdbc:hive2://{address}:{ports[1]} ({_guard(host)})")
        _say(f"The lake is {name!r}. Whoever is let in reads and writes it, and runs programs, as this user.")
        while not stopped.wait(_LOOK_SECONDS):
            if clients.has_ended(spark):
                raise EngineError("Cannot go on serving: Spark's process has ended")
        _say("Stopping.")


def _guard(host: str) -> str:
    if is_loopback(host):
        return "nobody is asked who they are; any user of this machine may come in"
    return "nobody is asked who they are; a network or a proxy must keep strangers out"


@contextmanager
def _asked_to_stop() -> Iterator[threading.Event]:
    """Give an event that SIGTERM and ctrl-C set."""
    stopped = threading.Event()
    before = {signal_number: signal.getsignal(signal_number) for signal_number in (signal.SIGTERM, signal.SIGINT)}
    try:
        for number in before:
            signal.signal(number, lambda *_: stopped.set())
        yield stopped
    finally:
        for key, handler in before.items():
            signal.signal(key, handler)


def _say(text: str) -> None:
    typer.echo(text, err=True)
    sys.stderr.flush()
