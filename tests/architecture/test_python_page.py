"""The page of what users call from Python is what the code says."""

from __future__ import annotations

from tools.python_reference import PAGE, reference_page


def test_python_page_is_current() -> None:
    assert PAGE.read_text("utf-8") == reference_page(), "docs/python.md is old; write it: make names"
