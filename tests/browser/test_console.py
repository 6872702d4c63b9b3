"""The console in a browser: every page in both themes, by keyboard, on a narrow screen; and its pictures for docs/."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import pyarrow as pa
import pytest

import frazil
from frazil.console.app import console_routes
from tests.architecture.source_files import ROOT
from tests.support.console_lake import orders
from tests.support.served_lake import Served, served

pytestmark = pytest.mark.slow

PICTURES = ROOT / "docs" / "console"
WRITE = "FRAZIL_WRITE_PICTURES"
"""With this variable set, the pictures in docs/ are made anew."""
TRIPS = "/tables/city.trips"
FILTER = "pickup_at+%3E%3D+%272026-01-12%27+and+trip_id+%3C+30000"
QUERY = """select zone, count(*) as trips, round(avg(km), 2) as km
from city.trips group by zone order by trips desc"""
PAGES = {
    "tables": "/",
    "glance": "/tables/city.riders",
    "growth": TRIPS,
    "history": f"{TRIPS}/history",
    "difference": f"{TRIPS}/diff",
    "files": f"{TRIPS}/files",
    "schema": f"{TRIPS}/schema",
    "rows": f"{TRIPS}/rows?filter=zone+%3D+%27Harbour%27",
    "explain": f"{TRIPS}/explain?filter={FILTER}",
    "activity": f"{TRIPS}/activity",
    "sql": f"/sql?q={quote_plus(QUERY)}",
    "view": "/views/city.busy_zones",
}
SHOWN = ("tables", "growth", "history", "files", "explain", "sql")
"""The pages whose pictures are in docs/console.md."""


class Tab:
    """A tab of the browser, which collects what the page complains of."""

    def __init__(self, page: Any, uri: str) -> None:
        self.page = page
        self.uri = uri
        self.complaints: list[str] = []
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("requestfailed", self._miss)
        page.on("dialog", self._ask)
        self.foreign: list[str] = []
        page.on("request", self._see)

    def _hear(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _miss(self, request: Any) -> None:
        # A page that is left does not wait for what it asked for.
        if request.failure != "net::ERR_ABORTED":
            self.complaints.append(f"{request.failure}: {request.url}")

    def _ask(self, dialog: Any) -> None:
        if "alert" in dialog.type:
            self.complaints.append("a script of a stranger's ran")
        dialog.accept()

    def _see(self, request: Any) -> None:
        if not request.url.startswith((self.uri, "data:")):
            self.foreign.append(request.url)

    def open(self, path: str) -> None:
        """Open a page and wait until all its parts are there."""
        self.page.goto(self.uri + path)
        self.wait()

    def wait(self) -> None:
        self.page.locator("[data-part], [data-pending]").first.wait_for(state="detached", timeout=60_000)

    def style(self, selector: str, name: str) -> str:
        found: str = self.page.locator(selector).first.evaluate(
            "(element, name) => getComputedStyle(element).getPropertyValue(name)", name
        )
        return found


@pytest.fixture(params=["light", "dark"])
def tab(request: pytest.FixtureRequest, chromium: Any, demo: Served) -> Iterator[Tab]:
    """A tab in each theme."""
    context = chromium.new_context(viewport={"width": 1240, "height": 860}, color_scheme=request.param)
    opened = Tab(context.new_page(), demo.uri)
    yield opened
    assert opened.complaints == []
    assert opened.foreign == []
    context.close()


@pytest.fixture
def light(chromium: Any, demo: Served) -> Iterator[Tab]:
    context = chromium.new_context(viewport={"width": 1240, "height": 860}, color_scheme="light")
    opened = Tab(context.new_page(), demo.uri)
    yield opened
    assert opened.complaints == []
    context.close()


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours as browsers write them, as WCAG counts it."""

    def light_of(colour: str) -> float:
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    first, second = sorted((light_of(one), light_of(other)), reverse=True)
    return (first + 0.05) / (second + 0.05)


@pytest.mark.parametrize("name", list(PAGES))
def test_every_page_renders_in_both_themes(tab: Tab, name: str, request: pytest.FixtureRequest) -> None:
    tab.open(PAGES[name])
    assert tab.page.locator("h1").count() == 1
    assert tab.page.locator(".problem").count() == 0
    theme = request.node.callspec.params["tab"]
    background, ink = tab.style("body", "background-color"), tab.style("main", "color")
    assert contrast(background, ink) > 7
    muted = tab.page.locator("main .muted, main small, main dt").first
    if muted.count():
        assert contrast(tab.style("main .muted, main small, main dt", "color"), background) > 4.5
    # Nothing is wider than the page but what scrolls by itself.
    assert tab.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    for unnamed in tab.page.locator("button, a, input:not([type=hidden]), textarea, svg[role=img]").all():
        assert unnamed.evaluate(
            "(one) => one.textContent?.trim() || one.getAttribute('aria-label') || one.labels?.length > 0 || one.title"
        ), unnamed.evaluate("(one) => one.outerHTML")
    if os.environ.get(WRITE) and name in SHOWN:
        tab.page.screenshot(path=PICTURES / f"{name}-{theme}.png", animations="disabled")


def test_documentation_pictures_exist() -> None:
    page = (ROOT / "docs" / "console.md").read_text("utf-8")
    for picture in re.findall(r"\(console/([\w-]+\.png)\)", page):
        assert (PICTURES / picture).stat().st_size < 200_000
    assert len(re.findall(r"\(console/", page)) >= len(SHOWN)


@pytest.mark.parametrize("name", list(PAGES))
def test_every_page_fits_a_narrow_screen(chromium: Any, demo: Served, name: str) -> None:
    context = chromium.new_context(viewport={"width": 390, "height": 800}, has_touch=True)
    tab = Tab(context.new_page(), demo.uri)
    tab.open(PAGES[name])
    assert tab.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    assert tab.complaints == []
    context.close()


def test_pages_work_without_javascript(chromium: Any, demo: Served) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    for path in PAGES.values():
        for _ in range(20):
            page.goto(demo.uri + path)
            if not page.locator("[data-part]").count():
                break
        assert page.locator("[data-part]").count() == 0
        assert page.locator("h1").count() == 1
    page.goto(f"{demo.uri}/?sort=-rows")
    assert page.locator("#tables tbody tr").first.get_attribute("data-name") == "city.trips"
    context.close()


def test_table_list_can_be_searched_and_sorted_in_place(light: Tab) -> None:
    light.open("/")
    page = light.page
    page.keyboard.press("/")
    page.keyboard.type("ride")
    assert [one.get_attribute("data-name") for one in page.locator("#tables tbody tr:visible").all()] == ["city.riders"]
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.press("Escape")
    page.locator("thead [data-key=rows]").click()
    assert page.locator("#tables tbody tr").first.get_attribute("data-name") == "city.trips"
    assert "sort=-rows" in page.url
    page.locator("thead [data-key=name]").click()
    page.locator("thead [data-key=name]").click()
    assert page.locator("#tables tbody tr").first.get_attribute("data-name") == "city.riders"


def test_everything_is_reachable_by_keyboard(light: Tab) -> None:
    light.open("/")
    page = light.page
    for _ in range(2):
        page.keyboard.press("j")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert page.url.endswith("/tables/city.trips")
    for letter, name in zip("hfsreat", ["history", "files", "schema", "rows", "explain", "activity", ""], strict=True):
        page.keyboard.press("g")
        with page.expect_navigation():
            page.keyboard.press(letter)
        light.wait()
        assert page.url.endswith(f"/tables/city.trips{'/' if name else ''}{name}")
    page.keyboard.press("?")
    assert page.get_by_role("dialog").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    with page.expect_navigation():
        page.keyboard.press("q")
    assert page.url.endswith("/sql")


def test_chosen_theme_persists(light: Tab) -> None:
    light.open("/")
    before = light.style("body", "background-color")
    light.page.get_by_role("button", name="Change between light and dark").click()
    after = light.style("body", "background-color")
    assert before != after
    light.open("/sql")
    assert light.style("body", "background-color") == after


def test_selecting_two_snapshots_shows_their_difference(light: Tab) -> None:
    light.open(f"{TRIPS}/history")
    page = light.page
    boxes = page.locator("input[name=snapshot]")
    button = page.get_by_role("button", name="Compare")
    assert button.is_disabled()
    boxes.nth(1).check()
    boxes.nth(4).check()
    # A third takes the place of the first.
    boxes.nth(3).check()
    chosen = [boxes.nth(at).get_attribute("value") for at in (4, 3)]
    with page.expect_navigation():
        button.click()
    light.wait()
    assert page.url.endswith(f"from={chosen[0]}&to={chosen[1]}")
    assert "added" in page.get_by_label("Rows").inner_text()


def test_partition_map_links_to_the_files_of_a_partition(light: Tab) -> None:
    light.open(f"{TRIPS}/files")
    with light.page.expect_navigation():
        light.page.locator("svg a").first.click()
    light.wait()
    listed = light.page.locator("#listed")
    assert "pickup_at_day=2026-01-14" in listed.inner_text()
    with light.page.expect_navigation():
        listed.get_by_role("link").first.click()
    assert "Row groups" in light.page.locator("main").inner_text()


def test_maintenance_finding_can_be_previewed_run_and_resolved(chromium: Any, tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "lake") as lake:
        table = lake.create_table("shop.small", "id bigint, ts timestamptz, kind string")
        for at in range(6):
            table.append(orders(at, 5, 1))
    with served(tmp_path / "lake", beside=partial(console_routes, may_write=True)) as server:
        context = chromium.new_context()
        tab = Tab(context.new_page(), server.uri)
        tab.open("/tables/shop.small")
        tab.page.get_by_role("button", name="Show the dry run").click()
        tab.page.wait_for_url("**/runs/*")
        tab.wait()
        assert "Nothing was changed" in tab.page.locator("main").inner_text()
        tab.page.get_by_role("link", name="Back to the table's health").click()
        tab.wait()
        tab.page.get_by_role("button", name="Run now").click()
        tab.page.wait_for_url("**/runs/*")
        tab.wait()
        assert "Done" in tab.page.locator("main").inner_text()
        tab.open("/tables/shop.small")
        assert "healthy" in tab.page.get_by_label("Health").inner_text()
        assert tab.complaints == []
        context.close()


def test_untrusted_names_and_values_execute_no_script(chromium: Any, tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)>\"'><script>alert(2)</script>"
    with frazil.connect(tmp_path / "lake") as lake:
        table = lake.create_table(("n", evil), f"id bigint, `{evil}` string", properties={evil: evil, "comment": evil})
        for _ in range(2):
            table.append(pa.table({"id": [1], evil: [evil]}), snapshot_properties={"engine-name": evil})
        table.create_tag(evil)
    with served(tmp_path / "lake", beside=partial(console_routes, may_write=False)) as server:
        context = chromium.new_context()
        tab = Tab(context.new_page(), server.uri)
        tab.open("/")
        link = tab.page.locator("#tables a").first.get_attribute("href")
        for page in ("", "/history", "/diff", "/files", "/schema", "/rows", "/explain", "/activity"):
            tab.open(f"{link}{page}")
            assert tab.page.locator("main img, main script").count() == 0
        tab.open("/sql?q=select+'%3Cimg+src%3Dx+onerror%3Dalert(1)%3E'+as+x")
        assert tab.page.locator("main img").count() == 0
        assert tab.complaints == []
        context.close()


def test_cross_site_pages_receive_no_data(chromium: Any, demo: Served) -> None:
    context = chromium.new_context()
    page = context.new_page()
    page.route("http://evil.example/**", lambda route: route.fulfill(content_type="text/html", body="<p>evil</p>"))
    page.goto("http://evil.example/")
    told = page.evaluate(
        """async (uri) => {
            const tried = [];
            for (const options of [{}, {mode: 'no-cors'}, {method: 'POST', mode: 'no-cors', body: 'how=run'}]) {
                try { const got = await fetch(uri + '/', options); tried.push(got.type + (await got.text())); }
                catch (error) { tried.push('refused'); }
            }
            return tried;
        }""",
        demo.uri,
    )
    assert all("city" not in one for one in told)
    frame = page.evaluate(
        """(uri) => new Promise((done) => {
            const frame = document.createElement('iframe');
            const text = () => { try { return frame.contentDocument?.body?.innerText ?? ''; } catch { return ''; } };
            frame.src = uri;
            frame.onload = () => done(text());
            document.body.append(frame);
        })""",
        demo.uri,
    )
    assert "city" not in frame
    context.close()
