"""Which engine a change of rows runs on, this process or Spark, and why.

"local"   in this process; what it does not know is an error that names Spark as the way
"spark"   on Spark
"auto"    here, unless: the data is a Spark DataFrame; the text says something that only Spark knows; or what the
          plan says must be read is more than `AUTO_BYTES`, and Spark is installed. A text that reads like no SQL at
          all is an error, for which no JVM starts; a session that is there is asked
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal, TypeAlias

from frazil.commit.action import PlannedChange
from frazil.errors import InvalidRequestError, TextSyntaxError, UnsupportedError
from frazil.loaded import LoadedTable
from frazil.scan.tasks import FileScanTask
from frazil.verbs.on_spark import active_session, is_spark_frame
from frazil.verbs.write_rows import is_here_only

Engine: TypeAlias = Literal["auto", "local", "spark"]
ENGINES = ("auto", "local", "spark")
AUTO_BYTES = 2 << 30
"""What `auto` reads in this process at most, where Spark is there to read more."""


@dataclass(frozen=True, slots=True)
class Choice:
    """An engine, why it was chosen, and the plan where it is this process."""

    engine: Literal["local", "spark"]
    reason: str
    plan: Any = None

    def run(self) -> PlannedChange | None:
        """Carry the plan out in this process, up to the commit."""
        planned: PlannedChange | None = self.plan.run()
        return planned

    def explain(self, what: str) -> str:
        """Return the choice as text: what, where and why, and what is read."""
        lines = [what, f"  engine: {self.engine}, since {self.reason}"]
        if self.plan is not None:
            tasks = self.plan.read_tasks
            lines.append(f"  filter: {self.plan.predicate}")
            lines.append(
                f"  files to read: {len(tasks)}, with {sum(task.data_file.record_count for task in tasks)} rows in "
                f"{read_bytes(tasks)} bytes"
            )
            whole = getattr(self.plan, "whole", [])
            if whole:
                lines.append(f"  files that go by their metadata: {len(whole)}")
        return "\n".join(lines)


def check_engine(engine: object, state: LoadedTable | None = None, data: Any = None) -> None:
    """Refuse a name that is no engine's, and an engine that can take neither these data nor this table."""
    if engine not in ENGINES:
        raise InvalidRequestError(
            f"Cannot use the engine {engine!r}", hint=f"The engines are: {', '.join(map(repr, ENGINES))}."
        )
    if engine == "local" and is_spark_frame(data):
        raise InvalidRequestError(
            "Cannot use a Spark DataFrame without Spark", hint='Hand over df.toArrow(), or use engine="spark".'
        )
    if engine == "spark" and state is not None and is_here_only(state):
        raise UnsupportedError(
            f"Cannot change {state.name} on Spark: its files are in the memory of this process",
            hint='Use engine="local".',
        )


def read_bytes(tasks: Sequence[FileScanTask]) -> int:
    """Return how large the files of tasks are."""
    return sum(task.data_file.file_size_in_bytes for task in tasks)


def choose_engine(engine: Engine, state: LoadedTable, data: Any, plan: Callable[[], Any]) -> Choice:
    """Return where a change runs. `plan` compiles it for this process, and refuses what only Spark knows."""
    check_engine(engine, state, data)
    if is_spark_frame(data):
        return Choice("spark", "the data is a Spark DataFrame")
    if engine == "spark":
        return Choice("spark", "it was asked for")
    if engine == "local":
        return Choice("local", "it was asked for", plan())
    has_spark = find_spec("pyspark") is not None and not is_here_only(state)
    try:
        made = plan()
    except (UnsupportedError, TextSyntaxError) as problem:
        if not has_spark or (isinstance(problem, TextSyntaxError) and active_session() is None):
            raise
        return Choice("spark", f"this process cannot: {problem.message.splitlines()[0]}")
    size = read_bytes(made.read_tasks)
    if has_spark and size > AUTO_BYTES:
        return Choice("spark", f"{size} bytes must be read, more than the {AUTO_BYTES} that are read here")
    return Choice("local", f"{size} bytes of {len(made.read_tasks)} files must be read", made)
