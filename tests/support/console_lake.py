"""A small lake with a history: appends, deletes, branches, schema changes."""

from __future__ import annotations

import datetime
import re
import time
from pathlib import Path

import pyarrow as pa

import frazil
from tests.support.served_lake import Reply, Served


def orders(first: int, count: int, day: int) -> pa.Table:
    noon = datetime.datetime(2026, 1, day, 12, tzinfo=datetime.UTC)
    return pa.table(
        {
            "id": pa.array(range(first, first + count), pa.int64()),
            "ts": pa.array([noon] * count, pa.timestamp("us", "UTC")),
            "kind": [("web", "shop", "phone")[at % 3] for at in range(count)],
        }
    )


def make_lake(folder: Path) -> None:
    """Make `shop.orders` (partitions, branch, tag, deletes, two schemas), `shop.small` (small files), `web.empty`."""
    with frazil.connect(folder) as lake:
        table = lake.create_table(
            "shop.orders",
            "id bigint not null, ts timestamptz, kind string",
            partition_by=["day(ts)"],
            format_version=3,
            properties={"comment": "Orders of the shop", "write.delete.mode": "merge-on-read"},
        )
        for day in range(1, 6):
            table.append(orders(day * 1000, 100 * day, day))
        table.create_tag("five")
        table.create_branch("audit")
        table.append(orders(9000, 10, 6), branch="audit")
        table.delete("id between 1000 and 1009")
        with table.update_schema() as update:
            update.add_column("note", "string", doc="what the customer said")
        small = lake.create_table("shop.small", "id bigint, ts timestamptz, kind string")
        for at in range(6):
            small.append(orders(at, 5, 1))
        lake.create_table("web.empty", "id bigint")
        lake.create_view("shop.kinds", "select kind, count(*) n from shop.orders group by kind")


def whole_page(server: Served, path: str, *, code: int = 200) -> str:
    """Return a page once all its parts are there."""
    end = time.monotonic() + 60
    while True:
        reply: Reply = server.get(path)
        text = reply.body.decode()
        assert reply.code == code, f"{path}: {reply.code} {re.sub('<[^>]+>', ' ', text)[-1500:]}"
        if "data-part=" not in text:
            return text
        assert time.monotonic() < end, path
        time.sleep(0.1)


def words_of(page: str) -> str:
    """Return what a page says, without markup."""
    text = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())
