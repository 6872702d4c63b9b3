from __future__ import annotations

import json
import re
from pathlib import Path

import frazil
from tests.support.console_lake import whole_page, words_of
from tests.support.served_lake import Served


def test_first_page_lists_every_table_with_its_figures(console: Served) -> None:
    said = words_of(whole_page(console, "/"))
    assert "shop. orders 1,490" in said
    assert "shop. small 30" in said
    assert "web. empty 0 0 B 0" in said
    assert "v3" in said


def test_first_page_can_be_searched_and_sorted(console: Served) -> None:
    assert "orders" not in words_of(whole_page(console, "/?q=SMA"))
    page = whole_page(console, "/?sort=-rows")
    assert page.index('data-name="shop.orders"') < page.index('data-name="shop.small"') < page.index("web.empty")
    assert "No table has a name with" in words_of(whole_page(console, "/?q=nothing"))


def test_health_of_all_tables_is_loaded_after_the_first_page(console: Served) -> None:
    rows: dict[str, str] = {}
    for _ in range(100):
        answer = json.loads(console.get("/?part=figures&since=0").body)
        rows |= answer["rows"]
        if answer["ready"] == answer["of"] == 3:
            break
    assert "1 to do" in rows["shop.small"]
    assert "healthy" in rows["web.empty"]


def test_table_page_shows_recommended_maintenance_and_its_command(console: Served) -> None:
    said = words_of(whole_page(console, "/tables/shop.small"))
    assert "small-files" in said
    assert "CALL lake.system.rewrite_data_files(table =&gt; &#39;shop.small&#39;)" in said
    assert "lake.table(&#39;shop.small&#39;).maintain.rewrite_data_files()" in said
    assert "maintain rewrite-data-files shop.small" in said
    assert "Show the dry run" in said
    assert "Run now" not in said


def test_table_page_shows_growth_layout_and_references(console: Served) -> None:
    page = whole_page(console, "/tables/shop.orders")
    said = words_of(page)
    assert 'aria-label="Rows: 100 at first, 1.5k now"' in page
    assert "days(ts)" in said
    assert "Orders of the shop" in said
    assert "audit" in said


def test_unknown_page_is_reported(console: Served) -> None:
    assert console.get("/nothing").code == 404
    missing = console.get("/tables/shop.nothing")
    assert missing.code == 404
    assert b"shop.nothing" in missing.body


def snapshots(lake_folder: Path) -> list[int]:
    with frazil.connect(lake_folder) as lake:
        return [one.snapshot_id for one in lake.table("shop.orders").snapshots]


def test_history_is_a_graph_with_branches_and_tags(console: Served, lake_folder: Path) -> None:
    page = whole_page(console, "/tables/shop.orders/history")
    for one in snapshots(lake_folder):
        assert f"Choose snapshot {one} to compare" in page
    assert page.count('class="fz-lanes"') == 7
    said = words_of(page)
    assert "append +500" in said
    assert "delete −10" in said
    assert "audit" in said
    assert "five" in said


def test_snapshots_are_compared_by_rows_columns_and_files(console: Served, lake_folder: Path) -> None:
    first, *_, last = snapshots(lake_folder)
    said = words_of(whole_page(console, f"/tables/shop.orders/diff?from={first}&to={last}"))
    assert "+1,400 added, −10 removed" in said
    assert "+5 (" in said
    # Named the other way round, the older one still comes first.
    assert f"From {first}" in words_of(whole_page(console, f"/tables/shop.orders/diff?from={last}&to={first}"))


def test_snapshots_of_two_branches_are_compared_as_far_as_possible(console: Served, lake_folder: Path) -> None:
    with frazil.connect(lake_folder) as lake:
        refs = lake.table("shop.orders").refs
    path = f"/tables/shop.orders/diff?from={refs['audit'].snapshot_id}&to={refs['main'].snapshot_id}"
    said = words_of(whole_page(console, path))
    assert "is not an ancestor" in said
    assert "+1 (" in said


def test_files_are_shown_by_size_partition_and_deletes(console: Served) -> None:
    page = whole_page(console, "/tables/shop.orders/files")
    said = words_of(page)
    assert "Data files 5" in said
    assert "Delete files 1 10 rows" in said
    assert "Partitions by size: 5, the largest 2026-01-05" in page
    assert "10–30%: 1" in page
    listed = words_of(whole_page(console, "/tables/shop.orders/files?partition=ts_day%3D2026-01-02"))
    assert "Files of ts_day=2026-01-02" in listed
    assert "Data files 5" in words_of(whole_page(console, "/tables/shop.orders/files?at=five"))


def test_data_file_page_has_bounds_and_row_groups(console: Served) -> None:
    page = whole_page(console, "/tables/shop.orders/files")
    link = re.search(r'href="(/tables/shop.orders/file\?[^"]+)"', page)
    assert link is not None
    said = words_of(whole_page(console, link[1].replace("&amp;", "&")))
    assert "Row groups 1" in said
    assert "2026-01-0" in said
    assert "phone" in said


def test_foreign_file_is_not_opened(console: Served, lake_folder: Path) -> None:
    reply = console.get(f"/tables/shop.orders/file?path={lake_folder}/catalog.db")
    assert reply.code == 404
    assert b"not in this state" in reply.body


def test_schema_page_shows_statistics_and_versions(console: Served) -> None:
    said = words_of(whole_page(console, "/tables/shop.orders/schema"))
    assert "1 id long required 0 0% 1000 5499" in said
    assert "what the customer said" in said
    assert "added note string" in said
    assert "kind" not in words_of(whole_page(console, "/tables/shop.orders/schema?q=note")).split("Versions")[0]


def test_rows_can_be_filtered_paged_and_read_at_any_snapshot(console: Served) -> None:
    page = whole_page(console, "/tables/shop.orders/rows?filter=id+%3D+1010")
    assert "1010" in words_of(page)
    assert "Rows 1 to 1 " in words_of(page) + " "
    assert "No rows match" in words_of(whole_page(console, "/tables/shop.orders/rows?filter=id+%3D+1000"))
    assert "Rows 1 to 1" in words_of(whole_page(console, "/tables/shop.orders/rows?filter=id+%3D+1000&at=five"))
    assert "Rows 51 to 100" in words_of(whole_page(console, "/tables/shop.orders/rows?page=2"))
    wrong = words_of(whole_page(console, "/tables/shop.orders/rows?filter=nothing+%3D+1"))
    assert "Cannot find column" in wrong
    assert "Show rows" in wrong


def test_explain_shows_what_pruned_each_file(console: Served) -> None:
    page = whole_page(console, "/tables/shop.orders/explain?filter=ts+%3E%3D+%272026-01-05%27+and+id+%3C+0")
    said = words_of(page)
    assert "1 pruned by column bounds" in said
    assert "4 in manifests pruned by partition summary" in said
    assert "Files to read 0" in said


def test_sql_runs_in_its_own_process(console: Served) -> None:
    page = words_of(whole_page(console, "/sql?run=1&q=select+count(*)+as+n+from+shop.orders"))
    assert "1490" in page
    assert "Cannot" in words_of(whole_page(console, "/sql?run=2&q=drop+table+shop.orders"))


def test_query_from_a_cross_site_link_is_shown_but_not_run(console: Served) -> None:
    reply = console.ask(
        "GET", "/sql?q=select+40%2B2", headers={"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    )
    assert reply.code == 200
    assert b"press Run" in reply.body
    assert b"Answer" not in reply.body


def test_activity_shows_commits_by_writer_and_frequency(console: Served) -> None:
    said = words_of(whole_page(console, "/tables/shop.orders/activity"))
    assert "6 append, 1 delete" in said or "6 append" in said
    assert "Last hour 7" in said


def test_view_page_shows_its_query(console: Served) -> None:
    assert "group by kind" in words_of(whole_page(console, "/views/shop.kinds"))
    assert "/views/shop.kinds" in whole_page(console, "/")


def test_pages_of_an_empty_table_explain_that_it_is_empty(console: Served) -> None:
    for page in ("", "/history", "/files", "/schema", "/rows", "/explain", "/activity"):
        whole_page(console, f"/tables/web.empty{page}")
