"""Whatever the layout of tables, and whatever their metadata names: no job deletes a file of anybody else.

Tables with folders inside one another, shared, linked and spelt in other ways are made by chance. The model is who
wrote which file: each table its own, and a neighbour some documents outside the warehouse. Some tables are hostile:
snapshots that expire name files of all the others. Then jobs run, in any order: every file that is gone must have been
its table's own, every folder one that it emptied, and no table that reads may stop to.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import frazil
from frazil.commit.append import Append
from frazil.commit.delete_files import DeleteFiles
from frazil.commit.transaction import commit_actions
from frazil.errors import FrazilError
from frazil.spec.data_file import DataFile, FileFormat

ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})
FOLDERS = ("wh/db/a", "wh/db/a/data", "wh/db/a/data/in", "wh/db/b", "wh/x", "out/a", "out/a/metadata", "out")
DOCUMENTS = ("docs", "docs/keys")
SPELLINGS = ("{}", "file:{}", "file://{}", "file://localhost{}", "{}/", "{}/../{name}")

Place = tuple[str, bool, str]
places = st.tuples(st.sampled_from(FOLDERS), st.booleans(), st.sampled_from(SPELLINGS))
any_places = st.tuples(st.sampled_from(FOLDERS + DOCUMENTS), st.booleans(), st.sampled_from(SPELLINGS))


@dataclass(frozen=True)
class Plan:
    """How a table is laid out, and whether its metadata is hostile."""

    location: Place | None
    data: Place | None
    metadata: Place | None
    is_hostile: bool


# Where a table is, and its metadata, is the user's word; where metadata says that data is, is not.
plans = st.lists(
    st.builds(Plan, st.none() | places, st.none() | any_places, st.none() | places, st.booleans()),
    min_size=2,
    max_size=4,
)
jobs = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["expire", "orphans", "purge", "append", "overwrite"])),
    min_size=1,
    max_size=6,
)


@dataclass
class World:
    """A folder with a lake, a neighbour's documents, and who wrote what."""

    root: Path
    lake: frazil.Lake
    owners: dict[str, str] = field(default_factory=dict)
    tables: dict[str, frazil.Table] = field(default_factory=dict)

    def files(self) -> set[str]:
        """Return the files that there are, links left out."""
        found = (Path(above) / name for above, _, names in os.walk(self.root) for name in names)
        return {str(one) for one in found if "catalog.db" not in one.name and not one.is_symlink()}

    def claim(self, owner: str) -> None:
        """Note who wrote the files that are new, and let them be old."""
        for path in self.files() - self.owners.keys():
            self.owners[path] = owner
            os.utime(path, (0, 0))

    def spelt(self, place: Place) -> str:
        """Return a folder's location, perhaps through a link."""
        folder, is_linked, spelling = place
        path = self.root / folder
        if is_linked:
            top, _, rest = folder.partition("/")
            path = self.root / f"link-{top}" / rest
        return spelling.format(path, name=path.name)


def make(root: Path, made: list[Plan]) -> World:
    for name in ("docs/keys/id_rsa", "docs/old/a.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("mine")
    (root / "docs" / "empty" / "deep").mkdir(parents=True)
    for top in ("wh", "out", "docs"):
        (root / top).mkdir(exist_ok=True)
        (root / f"link-{top}").symlink_to(root / top)
    world = World(root, frazil.connect(root / "wh"))
    world.claim("neighbour")
    world.lake.create_namespace("db")
    for at, plan in enumerate(made):
        name = f"db.t{at}"
        places = {"write.data.path": plan.data, "write.metadata.path": plan.metadata}
        properties = {key: world.spelt(one) for key, one in places.items() if one is not None}
        with contextlib.suppress(FrazilError):
            location = None if plan.location is None else world.spelt(plan.location)
            table = world.lake.create_table(name, ROWS.schema, location=location, properties=properties)
            world.tables[name] = table
            world.claim(name)
            table.append(ROWS)
        world.claim(name)
    for at, plan in enumerate(made):
        name = f"db.t{at}"
        if plan.is_hostile and name in world.tables:
            others = [one for one, owner in sorted(world.owners.items()) if owner != name]
            forged = tuple(DataFile(one, FileFormat.PARQUET, 1, 1) for one in others)
            with contextlib.suppress(FrazilError):
                catalog = world.lake._catalog
                loaded = commit_actions(catalog, world.tables[name].refresh().state, Append(forged))
                commit_actions(catalog, loaded, DeleteFiles(frozenset(others)))
            world.claim(name)
    return world


def run(world: World, name: str, job: str) -> None:
    table = world.tables[name].refresh()
    if job == "append":
        table.append(ROWS)
    elif job == "overwrite":
        table.overwrite(ROWS)
    elif job == "expire":
        table.maintain.expire_snapshots(older_than="2100-01-01T00:00:00Z", retain_last=1)
    elif job == "orphans":
        table.maintain.remove_orphan_files()
    else:
        world.lake.drop_table(name, purge=True)
        del world.tables[name]


def can_be_read(table: frazil.Table) -> bool:
    try:
        return bool(table.refresh().scan().to_arrow().num_rows > 0)
    except FrazilError:
        return False


@pytest.mark.extended
@given(plans, jobs)
@settings(max_examples=25, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
def test_jobs_delete_no_files_of_other_owners(made: list[Plan], asked: list[tuple[int, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = make(Path(folder).resolve(), made)
        with world.lake:
            for at, job in asked:
                name = f"db.t{at % len(made)}"
                if name not in world.tables:
                    continue
                before = world.files()
                folders = {above for above, _, _ in os.walk(world.root)}
                readable = {one for one, table in world.tables.items() if can_be_read(table)}
                with contextlib.suppress(FrazilError):
                    run(world, name, job)
                gone = before - world.files()
                assert {world.owners[one] for one in gone} <= {name}, (job, name)
                left = {above for above, _, _ in os.walk(world.root)}
                assert all(any(one.startswith(f"{above}/") for one in gone) for above in folders - left), (job, name)
                world.claim(name)
                assert all(can_be_read(world.tables[one]) for one in readable & world.tables.keys()), (job, name)
