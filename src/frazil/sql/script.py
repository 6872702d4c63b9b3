"""SQL scripts as values: `BEGIN ... END` with what Spark's grammar allows inside. `spark/sql_scripts.py` makes them.

Statements are kept as their text, since each is run as if it stood alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Union


class StepKind(Enum):
    """What a statement of a script is for."""

    QUERY = "query"
    COMMAND = "command"
    DECLARE = "declare"
    SET = "set"


@dataclass(frozen=True, slots=True)
class Run:
    """A statement; `names` are the variables that it declares."""

    text: str
    kind: StepKind
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Handler:
    """DECLARE HANDLER: what runs where a statement of the block fails, and whether the block ends with it."""

    body: Block
    ends_block: bool
    conditions: frozenset[str] = frozenset()
    """Names of conditions, in upper case."""
    sql_states: frozenset[str] = frozenset()
    takes_errors: bool = False
    takes_not_found: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """Statements one after the other; what they declare ends with them."""

    steps: tuple[Step, ...]
    label: str | None = None
    handlers: tuple[Handler, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """IF and CASE: the first branch whose condition holds."""

    branches: tuple[tuple[str, Block], ...]
    otherwise: Block | None = None


@dataclass(frozen=True, slots=True)
class Loop:
    """WHILE, REPEAT and LOOP: while a condition holds before the body, or until it does after it, or for ever."""

    body: Block
    label: str | None = None
    before: str | None = None
    until: str | None = None


@dataclass(frozen=True, slots=True)
class ForEach:
    """FOR: the body once for each row of a query, whose columns are variables in it."""

    query: str
    variable: str | None
    body: Block
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Jump:
    """LEAVE what a label names, or ITERATE it."""

    label: str
    leaves: bool


Step = Union[Run, Block, Choice, Loop, ForEach, Jump]


@dataclass(frozen=True, slots=True)
class Immediate:
    """EXECUTE IMMEDIATE: an expression that gives a statement, its arguments, and the variables for its row."""

    query: str
    arguments: tuple[tuple[str | None, str], ...] = ()
    targets: tuple[str, ...] = ()


def statements_of(step: Step) -> list[str]:
    """Return the texts of a script that may name tables: statements, conditions and queries."""
    if isinstance(step, Run):
        return [step.text]
    if isinstance(step, Block):
        own = [text for one in step.steps for text in statements_of(one)]
        return own + [text for one in step.handlers for text in statements_of(one.body)]
    if isinstance(step, Choice):
        bodies = [body for _, body in step.branches] + ([] if step.otherwise is None else [step.otherwise])
        conditions = [f"select ({condition})" for condition, _ in step.branches]
        return conditions + [text for body in bodies for text in statements_of(body)]
    if isinstance(step, Loop):
        conditions = [f"select ({one})" for one in (step.before, step.until) if one is not None]
        return [*conditions, *statements_of(step.body)]
    if isinstance(step, ForEach):
        return [step.query, *statements_of(step.body)]
    return []
