"""SQL scripts and EXECUTE IMMEDIATE over lakes: each statement is run as if it stood alone, one commit each.

Spark would run a script itself, but knows no tables of lakes; so a script that names some is walked here. Its variables
are variables of the session while it runs, under the names it gives them, and are dropped when their block ends. The
answer is that of the last query, as with Spark. An error goes to the handlers of the blocks around it, the nearest
first; errors of frazil have the names that Spark gives to the same conditions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from typing import Any

from frazil.errors import (
    InvalidRequestError,
    NamespaceAlreadyExistsError,
    NamespaceNotFoundError,
    SqlSyntaxError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from frazil.lake.on_spark import spark_room
from frazil.sql.quote_names import quote
from frazil.sql.script import Block, Choice, ForEach, Handler, Immediate, Jump, Loop, Run, Step, StepKind
from frazil.sql.tokens import cut_tokens

_SET = re.compile(r"\s*set\s+(?:(?:var|variable)\b)?", re.IGNORECASE)


_CONDITIONS: dict[type[Exception], tuple[str, str]] = {
    TableNotFoundError: ("TABLE_OR_VIEW_NOT_FOUND", "42P01"),
    TableAlreadyExistsError: ("TABLE_OR_VIEW_ALREADY_EXISTS", "42P07"),
    NamespaceNotFoundError: ("SCHEMA_NOT_FOUND", "42704"),
    NamespaceAlreadyExistsError: ("SCHEMA_ALREADY_EXISTS", "42P06"),
    SqlSyntaxError: ("PARSE_SYNTAX_ERROR", "42601"),
}
"""Spark's name of a condition, and its SQLSTATE, by the error that says the same."""
_NOT_FOUND, _INTERNAL = "02", "XX"


def is_script(text: str) -> bool:
    """Return whether a text may be a script."""
    return _first_words(text, 1) == ["BEGIN"]


def is_immediate(text: str) -> bool:
    """Return whether a text may be an EXECUTE IMMEDIATE."""
    return _first_words(text, 2) == ["EXECUTE", "IMMEDIATE"]


def _first_words(text: str, count: int) -> list[str]:
    return [token.upper for token in islice(cut_tokens(text), count)]


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
        self._handlers = 0

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
                self._handlers += len(block.handlers)
                try:
                    if isinstance(step, Run) and step.kind is StepKind.DECLARE:
                        self._run(step.text)
                        declared += step.names
                    else:
                        self._step(step)
                except _Jumped:
                    raise
                except Exception as error:
                    handler = _handler_of(error, block.handlers)
                    if handler is None:
                        raise
                else:
                    continue
                finally:
                    self._handlers -= len(block.handlers)
                self._block(handler.body)
                if handler.ends_block:
                    return
        finally:
            self._drop(declared)

    def _drop(self, names: list[str]) -> None:
        for name in reversed(names):
            self._run(f"drop temporary variable if exists {quote(name)}")

    def _step(self, step: Step) -> None:
        if isinstance(step, Run):
            found = _SET.match(step.text) if step.kind is StepKind.SET else None
            text = step.text if found is None else f"set var {step.text[found.end() :]}"
            frame = self._run(text)
            if step.kind is StepKind.QUERY and frame.columns:
                # Where somebody waits for its errors, they are looked for now.
                self._answer = self._room.run_now(frame) if self._handlers else frame
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


def _handler_of(error: Exception, handlers: tuple[Handler, ...]) -> Handler | None:
    """Return the handler that an error is for: one for its condition, one for its SQLSTATE, or one for all."""
    condition, state = _condition_of(error)
    is_not_found = state.startswith(_NOT_FOUND)
    choices: list[Callable[[Handler], bool]] = [
        lambda one: condition in one.conditions or condition.partition(".")[0] in one.conditions,
        lambda one: state in one.sql_states,
        lambda one: one.takes_not_found if is_not_found else one.takes_errors and not state.startswith(_INTERNAL),
    ]
    for chosen in choices:
        for one in handlers:
            if chosen(one):
                return one
    return None


def _condition_of(error: BaseException | None) -> tuple[str, str]:
    """Return the name of the condition that an error is, and its SQLSTATE; empty where there is none."""
    while error is not None:
        for kind, names in _CONDITIONS.items():
            if isinstance(error, kind):
                return names
        # Errors of PySpark say it themselves.
        condition, state = (getattr(error, name, None) for name in ("getCondition", "getSqlState"))
        if condition is not None and condition() is not None:
            return str(condition()).upper(), str(state() or "") if state is not None else ""
        error = error.__cause__
    return "", ""


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
