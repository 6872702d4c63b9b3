"""Who may see the console, and what it may change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlencode

import pytest

import frazil
from frazil.console.app import PAGES, console_routes
from frazil.serve.auth import Auth, Right, Secret
from tests.support.console_lake import make_lake, whole_page, words_of
from tests.support.served_lake import Reply, Served, served

TOKEN = "a-token-that-is-long-enough"
READER = "a-token-for-those-who-read"


def post(server: Served, path: str, form: Mapping[str, str], **headers: str) -> Reply:
    sent = {"content-type": "application/x-www-form-urlencoded", **{k.replace("_", "-"): v for k, v in headers.items()}}
    return server.ask("POST", path, urlencode(form).encode(), headers=sent)


def form_token(page: str) -> str:
    found = re.search(r'name="form_token" value="([^"]+)"', page)
    assert found is not None
    return found[1]


@pytest.fixture
def writing(tmp_path: Path) -> Iterator[Served]:
    make_lake(tmp_path / "lake")
    with served(tmp_path / "lake", beside=partial(console_routes, may_write=True)) as server:
        yield server


@pytest.fixture(scope="module")
def asking(lake_folder: Path) -> Iterator[Served]:
    """A console that asks for a token, and may write."""
    auth = Auth([Secret("admin", TOKEN, Right.WRITE), Secret("reader", READER, Right.READ)])
    with served(lake_folder, auth=auth, beside=partial(console_routes, may_write=True)) as server:
        yield server


def test_content_security_policy_forbids_foreign_scripts_styles_and_frames(console: Served) -> None:
    for path in ("/", "/tables/shop.orders", "/sql", "/nothing", "/assets/console.css"):
        headers = console.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers


def test_no_page_has_inline_script_or_style(console: Served) -> None:
    paths = ["/", "/sql?run=1&q=select+1", "/tables/shop.small"]
    paths += [f"/tables/shop.orders/{one}" for one in ("history", "diff", "files", "schema", "rows", "explain")]
    for path in paths:
        page = whole_page(console, path)
        assert not re.search(r"<script(?![^>]* src=)", page), path
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:", page), path


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8182", "127.0.0.1.evil.example", "[::2]:80", ""])
def test_other_host_names_are_refused(console: Served, host: str) -> None:
    reply = console.ask("GET", "/", headers={"host": host})
    assert reply.code == 403
    assert b"shop" not in reply.body


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"},
    ],
)
def test_cross_site_requests_are_refused(console: Served, headers: dict[str, str]) -> None:
    for path in ("/", "/tables/shop.orders/rows", "/sql?run=1&q=select+1"):
        reply = console.ask("GET", path, headers=headers)
        assert reply.code == 403
        assert b"shop" not in reply.body


def test_external_links_may_lead_to_pages(console: Served) -> None:
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert console.ask("GET", "/tables/shop.orders", headers=headers).code == 200


def test_form_requires_the_token_and_origin_of_the_console(writing: Served) -> None:
    token = form_token(whole_page(writing, "/tables/shop.small"))
    path = "/tables/shop.small/maintain/rewrite_data_files"
    assert post(writing, path, {"how": "run"}).code == 403
    assert post(writing, path, {"how": "run", "form_token": "x"}).code == 403
    assert post(writing, path, {"how": "run", "form_token": token}, origin="http://evil.example").code == 403
    cross = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}
    assert post(writing, path, {"how": "run", "form_token": token}, **cross).code == 403
    assert len(writing.catalog.load_table(("shop", "small")).metadata.snapshots) == 6


def test_dry_run_changes_nothing_and_shows_the_effect(console: Served, lake_folder: Path) -> None:
    token = form_token(whole_page(console, "/tables/shop.small"))
    before = console.catalog.load_table(("shop", "small")).metadata_location
    files = sorted(lake_folder.rglob("*"))
    reply = post(console, "/tables/shop.small/maintain/rewrite_data_files", {"how": "dry", "form_token": token})
    assert reply.code == 303
    said = words_of(whole_page(console, reply.headers["location"]))
    assert "rewritten data files count 6" in said
    assert "Nothing was changed" in said
    assert console.catalog.load_table(("shop", "small")).metadata_location == before
    assert [one for one in sorted(lake_folder.rglob("*")) if "-wal" not in one.name and one not in files] == []


def test_read_only_console_runs_nothing(console: Served) -> None:
    token = form_token(whole_page(console, "/tables/shop.small"))
    reply = post(console, "/tables/shop.small/maintain/rewrite_data_files", {"how": "run", "form_token": token})
    assert reply.code == 403
    assert b"read-only" in reply.body
    assert len(console.catalog.load_table(("shop", "small")).metadata.snapshots) == 6


def test_writable_console_runs_recommended_maintenance(writing: Served, tmp_path: Path) -> None:
    page = whole_page(writing, "/tables/shop.small")
    assert "Run now" in page
    form = {"how": "run", "form_token": form_token(page)}
    reply = post(writing, "/tables/shop.small/maintain/rewrite_data_files", form)
    assert "added data files count 1" in words_of(whole_page(writing, reply.headers["location"]))
    assert "healthy" in words_of(whole_page(writing, "/tables/shop.small"))
    assert "rewrite_data_files run done" in words_of(whole_page(writing, "/tables/shop.small/activity"))
    with frazil.connect(tmp_path / "lake") as lake:
        assert lake.table("shop.small").scan().count() == 30


def test_unlisted_procedures_cannot_be_run(writing: Served) -> None:
    token = form_token(whole_page(writing, "/tables/shop.small"))
    for name in ("rewrite_table_path", "_load", "add_files", "__init__"):
        reply = post(writing, f"/tables/shop.small/maintain/{name}", {"how": "run", "form_token": token})
        assert reply.code == 404


def test_unauthenticated_requests_see_only_the_sign_in_form(asking: Served) -> None:
    for method, pattern in PAGES:
        path = "/" + pattern.replace("*", "shop.orders")
        reply = asking.get(path) if method == "GET" else post(asking, path, {})
        assert reply.code in (401, 403), path
        assert b"orders" not in re.sub(rb'name="back" value="[^"]*"', b"", reply.body)
        assert b"console0" not in reply.body, "where the lake is, is told to nobody unknown"
    assert asking.ask("GET", "/", headers={"authorization": "Bearer wrong-wrong-wrong"}).code == 401


def test_typed_token_opens_a_session(asking: Served) -> None:
    token = form_token(asking.get("/tables/shop.orders").body.decode())
    form = {"form_token": token, "back": "/tables/shop.orders"}
    assert post(asking, "/sign-in", {**form, "token": "wrong-wrong-wrong-wrong"}).code == 401
    reply = post(asking, "/sign-in", {**form, "token": TOKEN})
    assert reply.code == 303
    assert reply.headers["location"] == "/tables/shop.orders"
    cookie = reply.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert TOKEN not in cookie
    value = {"cookie": cookie.partition(";")[0]}
    assert asking.ask("GET", "/tables/shop.orders", headers=value).code == 200
    post(asking, "/sign-out", {"form_token": token}, **value)
    assert asking.ask("GET", "/tables/shop.orders", headers=value).code == 401


@pytest.mark.parametrize("back", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)"])
def test_sign_in_redirects_to_no_other_site(asking: Served, back: str) -> None:
    token = form_token(asking.get("/").body.decode())
    reply = post(asking, "/sign-in", {"form_token": token, "back": back, "token": TOKEN})
    assert reply.headers["location"] == "/"


def test_reader_token_runs_nothing(asking: Served) -> None:
    reader = {"authorization": f"Bearer {READER}"}
    page = asking.ask("GET", "/tables/shop.small", headers=reader).body.decode()
    assert "Run now" not in page
    token = form_token(asking.get("/").body.decode())
    path = "/tables/shop.small/maintain/rewrite_data_files"
    assert post(asking, path, {"how": "run", "form_token": token}, **reader).code == 403


def test_no_template_disables_escaping() -> None:
    for template in (files("frazil.console") / "templates").iterdir():
        text = template.read_text("utf-8")
        assert not re.search(r"\|\s*(safe|tojson|xmlattr)\b|autoescape|Markup", text), template.name
