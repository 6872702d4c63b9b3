"""Properties that do nothing here stay on the table, for engines that heed them, and stop nothing."""

from __future__ import annotations

import pytest

import frazil
from frazil.spec.properties import TABLE_PROPERTIES
from frazil.spec.unused_properties import NOT_HONOURED

VALUES = {"boolean": "true", "enum": "auto", "int, bytes": "16"}


@pytest.mark.parametrize("name", NOT_HONOURED)
def test_ineffective_property_is_kept(name: str) -> None:
    kind = TABLE_PROPERTIES[name].value_type
    value = VALUES.get(kind.title, "1000")
    assert kind.parse(value) is not None
    with frazil.connect("memory:", catalog="memory") as lake:
        table = lake.create_table("db.t", "id bigint", properties={name: value})
        table.append([{"id": 1}, {"id": 2}])
        table.delete("id = 1", engine="local")
        assert lake.table("db.t").properties[name] == value
        assert lake.table("db.t").scan().to_arrow().to_pylist() == [{"id": 2}]
