"""Pages of documentation in Markdown, cut into their blocks of code.

Iceberg's pages for Spark are not kept here. `ICEBERG_DOCS` names a folder with them: `docs/docs` of a checkout of
apache/iceberg.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

PAGES = (
    "spark-getting-started",
    "spark-configuration",
    "spark-ddl",
    "spark-queries",
    "spark-writes",
    "spark-procedures",
    "spark-structured-streaming",
)
DOCS = os.environ.get("ICEBERG_DOCS")
_FENCE = re.compile(r"^(\s*)```\s*(\S*)")
_HEADING = re.compile(r"^#{1,3} +(.*)")


class PageBlock(NamedTuple):
    """A block: its page, the heading it stands under, its number there, its language and its text."""

    page: str
    heading: str
    number: int
    language: str
    text: str

    @property
    def key(self) -> str:
        """Return what the block is known by: page, heading, number, and a hash of the text."""
        digest = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()[:8]
        return f"{self.page}/{self.heading}/{self.number}/{digest}"


def cut_page(page: str, text: str) -> list[PageBlock]:
    """Return the blocks of a page, in order. Headings below the third level belong to the one above them."""
    found: list[PageBlock] = []
    count: Counter[str] = Counter()
    heading = ""
    inside: tuple[str, list[str], str] | None = None
    for line in text.splitlines():
        fence = _FENCE.match(line)
        if inside is not None:
            if fence is None:
                inside[1].append(line.removeprefix(inside[2]))
            else:
                count[heading] += 1
                found.append(PageBlock(page, heading, count[heading], inside[0], "\n".join(inside[1])))
                inside = None
        elif fence is not None:
            inside = (fence[2], [], fence[1])
        elif (title := _HEADING.match(line)) is not None:
            heading = title[1].replace("`", "").strip()
    return found


def read_blocks(folder: Path) -> list[PageBlock]:
    """Return the blocks of all pages in a folder."""
    return [
        block
        for page in PAGES
        for block in cut_page(page.removeprefix("spark-"), (folder / f"{page}.md").read_text("utf-8"))
    ]
