"""Remedies for a table's problems, as commands in SQL, Python and the shell, and as runs from the console."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from frazil.catalog.names import Identifier
from frazil.errors import NotFoundError
from frazil.maintenance.report import Problem
from frazil.sql.quote_names import quote_path
from frazil.sql.type_names import escape
from frazil.table.table import Table

_OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {"equality-deletes": {"delete-file-threshold": "1"}}
"""Options of a procedure by the kind of problem that it should solve."""
_FLAGS: Final[Mapping[str, str]] = {"old-metadata-files": "old_metadata"}
"""A keyword to be set to true, by the kind of problem."""
PROCEDURES: Final = (
    *("rewrite_data_files", "rewrite_position_delete_files", "rewrite_manifests"),
    *("expire_snapshots", "remove_orphan_files", "optimize"),
)


@dataclass(frozen=True, slots=True)
class Remedy:
    """A procedure with the arguments that a problem requires."""

    procedure: str
    kind: str = ""

    @property
    def options(self) -> Mapping[str, str]:
        """Options of the procedure."""
        return _OPTIONS.get(self.kind, {})

    @property
    def flag(self) -> str | None:
        """A keyword to be set to true."""
        return _FLAGS.get(self.kind)

    def texts(self, table: Identifier, warehouse: str) -> list[tuple[str, str]]:
        """Return the commands, each with the place where it is typed and its text."""
        name = quote_path(table)
        python = [f"{key.replace('-', '_')}={value}" for key, value in self.options.items()]
        call = [f"table => '{escape(name)}'"]
        shell = [
            *("frazil", "-w", warehouse.removeprefix("file://"), "maintain", self.procedure.replace("_", "-"), name)
        ]
        if self.options:
            pairs = ", ".join(f"'{key}', '{value}'" for key, value in self.options.items())
            call.append(f"options => map({pairs})")
            for key, value in self.options.items():
                shell += ["--option", f"{key}={value}"]
        if self.flag is not None:
            python.append(f"{self.flag}=True")
            shell.append(f"--{self.flag.replace('_', '-')}")
        commands = [
            ("Python", f"lake.table({name!r}).maintain.{self.procedure}({', '.join(python)})"),
            ("Shell", shlex.join(shell)),
        ]
        if self.flag is None and self.procedure != "optimize":
            commands.insert(0, ("SQL", f"CALL lake.system.{self.procedure}({', '.join(call)})"))
        return commands

    def run(self, table: Table, *, dry_run: bool) -> Any:
        """Run the procedure, or report what it would do."""
        procedure: Callable[..., Any] = getattr(table.maintain, self.procedure)
        more: dict[str, Any] = {"options": dict(self.options)} if self.options else {}
        if self.flag is not None:
            more[self.flag] = True
        return procedure(dry_run=dry_run, **more)


def remedy_of(problem: Problem) -> Remedy | None:
    """Return the remedy for a problem, or None if no procedure helps."""
    return None if problem.procedure not in PROCEDURES else Remedy(problem.procedure, problem.kind)


def named_remedy(procedure: str, problem: str) -> Remedy:
    """Return a procedure that may be run from a page, by its name."""
    if procedure not in PROCEDURES:
        raise NotFoundError(f"Cannot run {procedure[:60]!r}: the console has no such procedure")
    return Remedy(procedure, problem if problem in _OPTIONS or problem in _FLAGS else "")
