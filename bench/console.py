"""How soon the console's pages are painted, and what its server takes of memory: small lakes, many tables, many files.

    .venv/bin/python -m bench.console [--tables 10 1000] [--files 1000000]

Each lake has a server of its own, in a process of its own. `answer` is when the page's HTML was there, `paint` when a
browser showed something of it, `whole` when every part of it was there, all counted from the request. `first` is the
first request of a server that was just started, the others follow it. Memory is the server's: after the page, and the
most so far. Paints are measured in Chromium by Playwright, where both are installed; else they are left out.
"""

from __future__ import annotations

import argparse
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
from bench.measure import scaled
from bench.planning_table import make_planning_table

import frazil

START_SECONDS = 60
WHOLE_SECONDS = 300
PROMISED_SECONDS = 1.0
"""What a first paint may take."""


def make_many(folder: Path, tables: int) -> None:
    """Make a lake of so many tables, of three snapshots each."""
    rows = pa.table({"id": [1, 2], "kind": ["a", "b"]})
    with frazil.connect(folder) as lake:
        for at in range(tables):
            table = lake.create_table(f"db{at % 10}.events_{at:05d}", "id bigint, kind string")
            for _ in range(3):
                table.append(rows)


def make_large(folder: Path, files: int) -> None:
    """Make a lake of one table of so many files, which are described and do not exist."""
    loaded = make_planning_table(folder / "large", files, max(files // 5_000, 1))
    with frazil.connect(folder) as lake:
        lake.create_namespace("db")
        lake.register_table("db.large", str(loaded.metadata_location))


@contextmanager
def running(folder: Path) -> Iterator[tuple[str, int]]:
    """Start a console on a free port; yield its address and its process."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    options = ["--no-browser", "--open", "--port", str(port)]
    command = [sys.executable, "-m", "frazil.cli", "-w", str(folder), "ui", *options]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > end:
                    raise
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}", process.pid
    finally:
        process.terminate()
        process.wait(60)


def memory_mib(pid: int) -> tuple[int, int]:
    """Return what a process holds of memory, and the most that it held."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    found = {line.partition(":")[0]: line.split()[1] for line in lines if line.startswith(("VmRSS", "VmHWM"))}
    return int(found["VmRSS"]) // 1024, int(found["VmHWM"]) // 1024


@contextmanager
def browser() -> Iterator[Any]:
    """Yield a browser, None where there is none."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None or find_spec("playwright") is None:
        print("No Chromium with Playwright is here: paints are left out.")
        yield None
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        opened = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        opened.new_context().new_page().goto("about:blank")
        yield opened
        opened.close()


def look(opened: Any, uri: str) -> tuple[float, float | None, float | None]:
    """Return the seconds to a page's answer, its first paint and its whole."""
    if opened is None:
        began = time.perf_counter()
        urllib.request.urlopen(uri, timeout=WHOLE_SECONDS).read()
        return time.perf_counter() - began, None, None
    context = opened.new_context()
    page = context.new_page()
    began = time.perf_counter()
    page.goto(uri, wait_until="commit")
    page.locator("main").wait_for(timeout=WHOLE_SECONDS * 1000)
    page.locator("[data-part], [data-pending]").first.wait_for(state="detached", timeout=WHOLE_SECONDS * 1000)
    whole = time.perf_counter() - began
    answer = page.evaluate("() => performance.getEntriesByType('navigation')[0].responseEnd / 1000")
    # A page that is whole at once may be looked at before it is painted.
    page.wait_for_function("() => performance.getEntriesByName('first-contentful-paint').length")
    paint = page.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000")
    context.close()
    return answer, paint, whole


def seconds_text(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds:.2f} s"


def main() -> None:
    """Print a line for each page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--tables", type=int, nargs="*", default=[10, scaled(1_000)])
    parser.add_argument("--files", type=int, default=scaled(1_000_000))
    given = parser.parse_args()
    late = []
    print(f"{'lake':22}{'page':26}{'answer':>9}{'paint':>9}{'whole':>9}{'memory':>10}{'most':>10}", flush=True)
    with tempfile.TemporaryDirectory() as name, browser() as opened:
        lakes: list[tuple[str, Path, list[tuple[str, str]]]] = []
        for count in given.tables:
            folder = Path(name) / f"tables-{count}"
            make_many(folder, count)
            last = f"/tables/db0.events_{(count - 1) // 10 * 10:05d}"
            lakes.append((f"{count:,} tables", folder, [("/", "/ first"), ("/", "/"), (last, "a table")]))
        if given.files:
            folder = Path(name) / "files"
            make_large(folder, given.files)
            pages = [("", "a table, first"), *((f"/{one}", one) for one in ("history", "files", "schema", "explain"))]
            pages.append(("/explain?filter=ts+%3E%3D+%272022-01-08%27", "explain a filter"))
            lakes.append(
                (f"{given.files:,} files", folder, [(f"/tables/db.large{tail}", title) for tail, title in pages])
            )
        for title, folder, pages in lakes:
            with running(folder) as (uri, pid):
                for path, what in pages:
                    answer, paint, whole = look(opened, uri + path)
                    now, most = memory_mib(pid)
                    if (paint or answer) > PROMISED_SECONDS:
                        late.append(f"{title}: {what}")
                    print(
                        f"{title:22}{what:26}{seconds_text(answer):>9}{seconds_text(paint):>9}{seconds_text(whole):>9}"
                        f"{now:>6} MiB{most:>6} MiB",
                        flush=True,
                    )
    if late:
        sys.exit(f"painted after more than {PROMISED_SECONDS:g} s: {', '.join(late)}")


if __name__ == "__main__":
    main()
