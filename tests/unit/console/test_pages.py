from __future__ import annotations

import json

from tests.console_lake import whole_page, words_of
from tests.served_lake import Served


def test_the_first_page_lists_every_table_with_its_figures(console: Served) -> None:
    said = words_of(whole_page(console, "/"))
    assert "shop. orders 1,490" in said
    assert "shop. small 30" in said
    assert "web. empty 0 0 B 0" in said
    assert "v3" in said


def test_the_first_page_searches_and_sorts(console: Served) -> None:
    assert "orders" not in words_of(whole_page(console, "/?q=SMA"))
    page = whole_page(console, "/?sort=-rows")
    assert page.index('data-name="shop.orders"') < page.index('data-name="shop.small"') < page.index("web.empty")
    assert "No table has a name with" in words_of(whole_page(console, "/?q=nothing"))


def test_health_of_all_tables_follows_the_first_page(console: Served) -> None:
    rows: dict[str, str] = {}
    for _ in range(100):
        answer = json.loads(console.get("/?part=figures&since=0").body)
        rows |= answer["rows"]
        if answer["ready"] == answer["of"] == 3:
            break
    assert "1 to do" in rows["shop.small"]
    assert "healthy" in rows["web.empty"]


def test_a_table_s_page_says_what_its_health_needs_and_how_to_run_it(console: Served) -> None:
    said = words_of(whole_page(console, "/tables/shop.small"))
    assert "small-files" in said
    assert "CALL lake.system.rewrite_data_files(table =&gt; &#39;shop.small&#39;)" in said
    assert "lake.table(&#39;shop.small&#39;).maintain.rewrite_data_files()" in said
    assert "maintain rewrite-data-files shop.small" in said
    assert "Show the dry run" in said
    assert "Run now" not in said


def test_a_table_s_page_shows_growth_shape_and_references(console: Served) -> None:
    page = whole_page(console, "/tables/shop.orders")
    said = words_of(page)
    assert 'aria-label="Rows: 100 at first, 1.5k now"' in page
    assert "days(ts)" in said
    assert "Orders of the shop" in said
    assert "audit" in said


def test_a_page_that_is_not_there_says_so(console: Served) -> None:
    assert console.get("/nothing").code == 404
    missing = console.get("/tables/shop.nothing")
    assert missing.code == 404
    assert b"shop.nothing" in missing.body
