"""Tables that many tests start from are made once and copied for each.

    @cache
    def made(version: int) -> frazil.Table: ...          # commits, and is never handed to a test

    table = copy_table(made(3))                          # files of its own, in a lake of its own

A copy has the same files under the same names, so a test may damage, rewrite or purge it and no other sees it.
"""

from __future__ import annotations

import frazil


def copy_table(table: frazil.Table, lake: frazil.Lake | None = None) -> frazil.Table:
    """Return a table of a memory lake as a table of another, a new one unless it is given."""
    loaded = table.refresh().state
    assert loaded.metadata_location is not None
    lake = frazil.connect("memory:") if lake is None else lake
    storage = lake.catalog.storage
    for file in loaded.storage.list(table.location):
        storage.create(file.path, loaded.storage.read(file.path))
    lake.create_namespace(".".join(loaded.identifier[:-1]))
    return lake.register_table(table.name, loaded.metadata_location)
