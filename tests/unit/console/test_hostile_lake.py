"""A lake as a stranger would make it: names, values and properties with markup, very many columns, broken files."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest

import frazil
from frazil.console.app import console_routes
from tests.support.console_lake import orders, whole_page, words_of
from tests.support.served_lake import Served, served

EVIL = "<img src=x onerror=alert(1)>\"'><script>alert(2)</script>${x}{{7*7}}\u202e\x1b[2J`/?#%2f"
ODD = f"`{EVIL.replace('`', '``')}`"
TABS = ("", "/history", "/files", "/schema", "/rows", "/explain", "/activity", "/diff")


class Elements(HTMLParser):
    """The elements and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def check_harmless(page: str) -> None:
    """Refuse a page in which something of a stranger's became markup."""
    parser = Elements()
    parser.feed(page)
    for tag, attributes in parser.found:
        assert tag not in ("img", "iframe", "object", "embed"), (tag, attributes)
        assert tag != "script" or (attributes.get("src") or "").startswith("/assets/")
        assert not [one for one in attributes if one.startswith("on")], (tag, attributes)
        for name in ("href", "action", "formaction", "src", "data-part", "data-figures"):
            place = attributes.get(name)
            assert place is None or place.startswith(("/", "?", "#", "data:image/svg+xml,%3Csvg")), (tag, name, place)
            assert place is None or not place.startswith("//")
    assert "49" not in re.findall(r"\$\{x\}(\d+)", page)
    assert "\u202e" not in page
    assert "\x1b" not in page


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("hostile") / "lake"
    with frazil.connect(folder) as lake:
        table = lake.create_table(
            ("n<b>s", EVIL),
            pa.schema([pa.field(EVIL, pa.string()), pa.field("id", pa.int64())]),
            properties={"comment": EVIL, EVIL: EVIL},
            partition_by=[ODD],
        )
        for at in range(6):
            table.append(
                pa.table({EVIL: [f"<b onclick=x>{at}", None], "id": [1, 2]}), snapshot_properties={"engine-name": EVIL}
            )
        table.create_tag(EVIL)
        table.create_branch("</title><b>")
        with table.update_schema() as update:
            update.add_column("more", "string", doc=EVIL, default=EVIL) if table.format_version > 2 else None
            update.update_doc(ODD, EVIL) if hasattr(update, "update_doc") else None
        lake.create_view(("n<b>s", f"v{EVIL}"), f"select '{EVIL.replace(chr(39), '')}' as x")
        wide = pa.schema([pa.field(f"column_{at}", pa.int64()) for at in range(10_000)])
        lake.create_table("odd.wide", wide).append(
            pa.table({name: pa.array([1], pa.int64()) for name in wide.names}, schema=wide)
        )
        broken = lake.create_table("odd.broken_metadata", "id bigint")
        Path(str(broken.metadata_location).removeprefix("file://")).write_bytes(b'{"format-version": 2, <b>')
        lost = lake.create_table("odd.lost_manifest", "id bigint, ts timestamptz, kind string")
        lost.append(orders(0, 10, 1))
        lost.append(orders(10, 10, 1))
        for one in (folder / "odd" / "lost_manifest" / "metadata").glob("*-m0.avro"):
            one.write_bytes(b"not avro <script>")
        gone = lake.create_table("odd.gone_file", "id bigint, ts timestamptz, kind string")
        gone.append(orders(0, 10, 1))
        for one in (folder / "odd" / "gone_file" / "data").rglob("*.parquet"):
            one.unlink()
        odd = lake.create_table("odd.summary", "id bigint, ts timestamptz, kind string")
        odd.append(orders(0, 1, 1), snapshot_properties={"total-records": "-<b>", "added-records": "9" * 5000})
    with sqlite3.connect(folder / "catalog.db") as database:
        database.execute(
            "insert into iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type) "
            "values ('lake', 'odd', 'nowhere', 'file:///does/not/exist.json', 'TABLE')"
        )
    with served(folder, beside=partial(console_routes, may_write=False)) as server:
        yield server


def address(*parts: str) -> str:
    return "/tables/" + quote(".".join("`" + one.replace("`", "``") + "`" for one in parts), safe="")


@pytest.mark.parametrize("tab", TABS)
def test_names_values_and_properties_are_escaped_on_every_page(hostile: Served, tab: str) -> None:
    page = whole_page(hostile, address("n<b>s", EVIL) + tab)
    check_harmless(page)
    assert "onerror" in page


def test_first_page_shows_unreadable_tables_beside_the_others(hostile: Served) -> None:
    page = whole_page(hostile, "/")
    check_harmless(page)
    said = words_of(page)
    assert said.count("cannot be read") == 2
    assert "broken_metadata" in said
    assert "nowhere" in said
    assert "odd. gone_file 10" in said


def test_links_to_special_names_resolve(hostile: Served) -> None:
    page = whole_page(hostile, "/")
    links = re.findall(r'href="(/(?:tables|views)/[^"#]+)"', page)
    assert len(set(links)) == 8
    for link in set(links):
        reply = hostile.get(link)
        assert reply.code in (200, 500), link
        check_harmless(reply.body.decode())


def test_markup_in_queries_and_filters_is_escaped(hostile: Served) -> None:
    for path in (
        f"/sql?run=1&q={quote(EVIL)}",
        f"/sql?run=1&q={quote('select ' + repr('<img src=x onerror=1>') + ' as x')}",
        f"/?q={quote(EVIL)}&sort={quote(EVIL)}",
        f"{address('odd', 'gone_file')}/rows?filter={quote(EVIL)}&columns={quote(EVIL)}&at={quote(EVIL)}",
        f"{address('odd', 'gone_file')}/explain?filter={quote(EVIL)}",
        f"{address('odd', 'gone_file')}/files?partition={quote(EVIL)}&at={quote(EVIL)}",
        f"{address('odd', 'gone_file')}/schema?q={quote(EVIL)}",
    ):
        check_harmless(whole_page(hostile, path))
    for path in (f"/{quote(EVIL)}", f"/tables/{quote(EVIL)}", "/runs/<b>", "/tables/odd.wide/file?path=<b>"):
        reply = hostile.get(path.replace("<", "%3C").replace(">", "%3E"))
        assert reply.code in (400, 404), path
        check_harmless(reply.body.decode())


@pytest.mark.extended
@pytest.mark.parametrize("tab", TABS[:-1])
def test_ten_thousand_columns_are_paginated(hostile: Served, tab: str) -> None:
    page = whole_page(hostile, f"/tables/odd.wide{tab}")
    assert len(page) < 400_000
    if tab == "/schema":
        assert "column_9999" in whole_page(hostile, "/tables/odd.wide/schema?q=column_9999")
    if tab == "/rows":
        assert "column_9999" in whole_page(hostile, "/tables/odd.wide/rows?columns=column_9999")


@pytest.mark.parametrize("name", ["broken_metadata", "nowhere"])
def test_table_with_unreadable_metadata_shows_the_error(hostile: Served, name: str) -> None:
    for tab in TABS:
        said = words_of(whole_page(hostile, f"/tables/odd.{name}{tab}", code=500))
        assert "Cannot" in said
        assert "internal error of the console" not in said


def test_lost_manifest_leaves_the_metadata_pages(hostile: Served) -> None:
    said = words_of(whole_page(hostile, "/tables/odd.lost_manifest"))
    assert "Rows 20" in said
    assert "This cannot be shown" in said
    assert "Cannot" in said
    history = words_of(whole_page(hostile, "/tables/odd.lost_manifest/history"))
    assert history.count("append +10") == 2
    for tab in ("/files", "/schema", "/rows", "/explain", "/diff"):
        page = whole_page(hostile, f"/tables/odd.lost_manifest{tab}")
        assert "This cannot be shown" in page, tab
        assert "internal error of the console" not in page, tab
        check_harmless(page)


def test_lost_data_file_leaves_the_metadata_pages(hostile: Served) -> None:
    assert "This cannot be shown" in whole_page(hostile, "/tables/odd.gone_file/rows")
    page = whole_page(hostile, "/tables/odd.gone_file/files")
    link = re.search(r'href="(/tables/odd.gone_file/file\?[^"]+)"', page)
    assert link is not None
    said = words_of(whole_page(hostile, link[1].replace("&amp;", "&")))
    assert "The file itself cannot be read" in said
    assert "phone" in said


def test_invalid_summary_numbers_are_ignored(hostile: Served) -> None:
    for tab in TABS:
        page = whole_page(hostile, f"/tables/odd.summary{tab}", code=400 if tab == "/diff" else 200)
        assert "internal error of the console" not in page, tab


def test_empty_lake_explains_how_to_create_a_table(tmp_path: Path) -> None:
    frazil.connect(tmp_path / "lake").close()
    with served(tmp_path / "lake", beside=partial(console_routes, may_write=False)) as server:
        assert "There is nothing here yet" in words_of(whole_page(server, "/"))
        whole_page(server, "/sql")
