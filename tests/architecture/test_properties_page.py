"""The page of properties says truly which of them are honoured."""

from __future__ import annotations

import re

from frazil.spec import properties
from frazil.spec.property_kinds import ColumnProperty, Property
from frazil.spec.unused_properties import NOT_HONOURED
from tests.architecture.source_files import source_files

BY_NAME = {"comment", "format-version"}
"""What code knows by its name rather than by its constant."""


def test_honoured_properties_are_read_by_the_code() -> None:
    words: set[str] = set()
    for file in source_files():
        if not file.name.startswith(("spec/property", "spec/properties", "jar/options")):
            words.update(re.findall(r"\b[A-Z][A-Z_]+\b", file.text))
    constants: dict[str, set[str]] = {}
    for constant, value in vars(properties).items():
        if isinstance(value, Property | ColumnProperty):
            constants.setdefault(value.name, set()).add(constant)
    read = {name for name, found in constants.items() if found & words}
    assert set(constants) - read - BY_NAME == set(NOT_HONOURED)
