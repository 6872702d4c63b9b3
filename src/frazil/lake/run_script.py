"""SQL scripts and EXECUTE IMMEDIATE over lakes: each statement is run as if it stood alone, one commit each.

Spark would run a script itself, but knows no tables of lakes; so a script that names some is walked here. Its variables
are variables of the session while it runs, under the names it gives them, and are dropped when their block ends. The
answer is that of the last query, as with Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from frazil.errors import InvalidRequestError
from frazil.lake.on_spark import spark_room
from frazil.sql.parse_types import quote
from frazil.sql.script import Block, Choice, ForEach, Immediate, Jump, Loop, Run, Step, StepKind

_SPACE = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
_SCRIPT = re.compile(rf"{_SPACE}begin\b", re.IGNORECASE | re.DOTALL)
_IMMEDIATE = re.compile(rf"{_SPACE}execute\s+immediate\b", re.IGNORECASE | re.DOTALL)
_SET = re.compile(r"\s*set\s+(?:(?:var|variable)\b)?", re.IGNORECASE)


def is_script(text: str) -> bool:
    """Return whether a text may be a script."""
    return _SCRIPT.match(text) is not None


def is_immediate(text: str) -> bool:
    """Return whether a text may be an EXECUTE IMMEDIATE."""
    return _IMMEDIATE.match(text) is not None


class _Jumped(Exception):
    def __init__(self, jump: Jump) -> None:
        self.jump = jump


class ScriptRunner:
    """Runs scripts; `run` runs one statement of them and returns its DataFrame."""

    def __init__(self, spark: Any, run: Callable[[str], Any]) -> None:
        self._spark = spark
        self._run = run
        self._room = spark_room("sql_scripts")
        self._answer: Any = None

    def run(self, script: Block) -> Any:
        """Run a script; return the DataFrame of its last query, None where it has none."""
        self._answer = None
        try:
            self._block(script)
        except _Jumped as problem:
            if problem.jump.label.lower() != script.label:
                raise InvalidRequestError(
                    f"Cannot jump to {problem.jump.label!r} in a script: nothing around it has that label"
                ) from None
        return self._answer

    def _block(self, block: Block) -> None:
        declared: list[str] = []
        try:
            for step in block.steps:
                if isinstance(step, Run) and step.kind is StepKind.DECLARE:
                    self._run(step.text)
                    declared += step.names
                else:
                    self._step(step)
        finally:
            self._drop(declared)

    def _drop(self, names: list[str]) -> None:
        for name in reversed(names):
            self._run(f"drop temporary variable if exists {quote(name)}")

    def _step(self, step: Step) -> None:
        if isinstance(step, Run):
            text = _SET.sub("set var ", step.text, count=1) if step.kind is StepKind.SET else step.text
            frame = self._run(text)
            if step.kind is StepKind.QUERY and frame.columns:
                self._answer = frame
        elif isinstance(step, Block):
            self._labelled(step.label, step)
        elif isinstance(step, Choice):
            self._choose(step)
        elif isinstance(step, Loop):
            self._loop(step)
        elif isinstance(step, ForEach):
            self._for_each(step)
        else:
            raise _Jumped(step)

    def _labelled(self, label: str | None, body: Block) -> bool:
        """Run a body; return whether it was left by its label."""
        try:
            self._block(body)
        except _Jumped as problem:
            if problem.jump.label.lower() != label:
                raise
            return problem.jump.leaves
        return False

    def _holds(self, condition: str) -> bool:
        return self._run(f"select ({condition}) as condition").first()[0] is True

    def _choose(self, choice: Choice) -> None:
        for condition, body in choice.branches:
            if self._holds(condition):
                self._block(body)
                return
        if choice.otherwise is not None:
            self._block(choice.otherwise)

    def _loop(self, loop: Loop) -> None:
        while loop.before is None or self._holds(loop.before):
            if self._labelled(loop.label, loop.body):
                return
            if loop.until is not None and self._holds(loop.until):
                return

    def _for_each(self, step: ForEach) -> None:
        frame = self._run(step.query)
        variables = self._room.declare_row(self._spark, frame, step.variable)
        declared: list[str] = []
        try:
            for name, kind in variables.items():
                self._run(f"declare variable {quote(name)} {kind}")
                declared.append(name)
            names = ", ".join(quote(name) for name in variables)
            values = self._room.row_values(variables, step.variable)
            for row in frame.collect():
                view = self._room.register_row(self._spark, row, frame)
                try:
                    self._run(f"set var ({names}) = (select {values} from {view})")
                finally:
                    self._spark.catalog.dropTempView(view)
                if self._labelled(step.label, step.body):
                    return
        finally:
            self._drop(declared)


def immediate_values(immediate: Immediate, evaluate: Callable[[list[str]], tuple[Any, ...]]) -> Any:
    """Return the arguments of an EXECUTE IMMEDIATE as `spark.sql(text, args)` takes them."""
    if not immediate.arguments:
        return None
    names = [name for name, _ in immediate.arguments]
    values = evaluate([text for _, text in immediate.arguments])
    if all(name is None for name in names):
        return list(values)
    if any(name is None for name in names):
        raise InvalidRequestError(
            "Cannot run EXECUTE IMMEDIATE with some arguments named and others not: name all or none"
        )
    return dict(zip(names, values, strict=True))
