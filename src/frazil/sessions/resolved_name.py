"""A name of a statement as Spark resolved it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from frazil.commit.update_schema import UpdateSchema
from frazil.sessions import requests as r
from frazil.table.sql_session import FullName, Relation
from frazil.table.view import View

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class ResolvedName:
    """A name that Spark resolved: a table at a state, one of its metadata tables, or a view."""

    relation: Relation | None
    full_name: FullName
    view: View | None = None
    frame: DataFrame | None = None
    """The view's query as Spark resolved it."""
    changes: r.Changes | None = None
    """The changes of the table that are read in its place."""
    evolution: UpdateSchema | None = None
    """What a MERGE adds to the schema in its own commit."""
