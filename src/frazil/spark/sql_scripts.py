"""SQL scripts and EXECUTE IMMEDIATE, taken apart by Spark's own parser: statements come out as their text.

Spark says what each part of a script is and where it stands in the text (`sql/script.py` has the values); running it is
the business of `lake/run_script.py`. What Spark's parser refuses is left to Spark to refuse.
"""

from __future__ import annotations

import uuid
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession

from frazil.errors import UnsupportedError
from frazil.spark.sql_names import parse_text
from frazil.sql.quote_names import quote
from frazil.sql.script import Block, Choice, ForEach, Handler, Immediate, Jump, Loop, Run, Step, StepKind

_COMMANDS = ("Insert", "Update", "Delete", "Merge", "Create", "Replace", "Drop", "Alter", "Set", "Truncate", "Refresh")
_NO_QUERY = frozenset({"Command", "ParsedStatement"})
_WITHOUT_HANDLERS = 3
"""How many parts a block has where Spark has no handlers: its statements, its label, and whether it is a scope."""


def read_script(spark: SparkSession, text: str) -> Block | None:
    """Return the script that a text is; None where Spark reads it as something else, or not at all."""
    try:
        plan = parse_text(spark, "parsePlan", text)
    except (ParseException, Py4JJavaError):
        return None
    return _Reader(text).block(plan) if _kind(plan) == "CompoundBody" else None


def read_immediate(spark: SparkSession, text: str) -> Immediate | None:
    """Return what an EXECUTE IMMEDIATE says; None where the text is none, or not one of this form."""
    try:
        plan = parse_text(spark, "parsePlan", text)
    except ParseException:
        return None
    if _kind(plan) != "UnresolvedExecuteImmediate":
        return None
    reader = _Reader(text)
    arguments = []
    for one in _items(plan.productElement(1)):
        is_named = _kind(one) == "Alias"
        arguments.append((str(one.name()) if is_named else None, reader.text(one.child() if is_named else one)))
    targets = tuple(reader.text(one) for one in _items(plan.productElement(2)))
    return Immediate(reader.text(plan.productElement(0)), tuple(arguments), targets)


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text

    def text(self, node: Any) -> str:
        """Return the part of the text that a node was read from."""
        origin = node.origin()
        return self._text[int(origin.startIndex().get()) : int(origin.stopIndex().get()) + 1]

    def block(self, node: Any) -> Block:
        """Return a block of statements."""
        handlers: list[Handler] = []
        if node.productArity() > _WITHOUT_HANDLERS:
            pairs = _items(node.conditions().toList())
            named = {str(one.productElement(0)).upper(): str(one.productElement(1)) for one in pairs}
            handlers = [self._handler(one, named) for one in _items(node.handlers())]
        return Block(tuple(self.step(one) for one in _items(node.collection())), _label(node), tuple(handlers))

    def _handler(self, node: Any, named: dict[str, str]) -> Handler:
        triggers = node.exceptionHandlerTriggers()
        names = {str(one).upper() for one in _items(triggers.conditions().toList())}
        states = [str(one) for one in _items(triggers.sqlStates().toList())]
        return Handler(
            self.block(node.body()),
            str(node.handlerType().toString()).upper() == "EXIT",
            frozenset(names - named.keys()),
            frozenset(states + [named[one] for one in names & named.keys()]),
            bool(triggers.sqlException()),
            bool(triggers.notFound()),
        )

    def step(self, node: Any) -> Step:
        """Return a statement of a script."""
        kind = _kind(node)
        if kind == "SingleStatement":
            return self._single(node)
        if kind == "CompoundBody":
            return self.block(node)
        if kind in ("IfElseStatement", "SearchedCaseStatement", "SimpleCaseStatement"):
            return self._choice(node, kind)
        if kind in ("WhileStatement", "RepeatStatement"):
            condition = self.text(node.condition())
            is_while = kind == "WhileStatement"
            return Loop(
                self.block(node.body()),
                _label(node),
                condition if is_while else None,
                None if is_while else condition,
            )
        if kind == "LoopStatement":
            return Loop(self.block(node.body()), _label(node))
        if kind == "ForStatement":
            variable = node.variableName()
            name = str(variable.get()) if variable.isDefined() else None
            return ForEach(self.text(node.query()), name, self.block(node.body()), _label(node))
        if kind in ("LeaveStatement", "IterateStatement"):
            return Jump(str(node.label()), kind == "LeaveStatement")
        raise UnsupportedError(
            f"Cannot run a script over tables of lakes with {self.text(node).split(' ')[0].upper()} in it",
            hint="Run its statements one by one.",
        )

    def _choice(self, node: Any, kind: str) -> Choice:
        if kind == "SimpleCaseStatement":
            value = self.text(node.caseVariableExpression())
            conditions = [f"({value}) = ({self.text(one)})" for one in _items(node.conditionExpressions())]
        else:
            conditions = [self.text(one) for one in _items(node.conditions())]
        bodies = [self.block(one) for one in _items(node.conditionalBodies())]
        last = node.elseBody()
        otherwise = self.block(last.get()) if last.isDefined() else None
        return Choice(tuple(zip(conditions, bodies, strict=True)), otherwise)

    def _single(self, node: Any) -> Run:
        plan, text = node.parsedPlan(), self.text(node)
        kind = _kind(plan)
        if kind == "CreateVariable":
            return Run(text, StepKind.DECLARE, tuple(_declared(plan.productElement(0))))
        if kind == "SetVariable":
            return Run(text, StepKind.SET)
        is_command = kind.startswith(_COMMANDS) or any(one in _NO_QUERY for one in _traits(plan))
        return Run(text, StepKind.COMMAND if is_command and kind != "Call" else StepKind.QUERY)


def run_now(frame: DataFrame) -> DataFrame:
    """Run a query where it stands, and return a frame of what it found."""
    return frame.localCheckpoint()


def declare_row(spark: SparkSession, frame: DataFrame, variable: str | None) -> dict[str, str]:
    """Return the variables of a FOR over a query, a struct of its row and its columns, with their types."""
    schema = frame._jdf.schema()
    found = {} if variable is None else {variable: str(schema.sql())}
    for at, name in enumerate(frame.columns):
        if name.lower() not in {one.lower() for one in found}:
            found[name] = str(schema.apply(at).dataType().sql())
    return found


def register_row(spark: SparkSession, row: Any, frame: DataFrame) -> str:
    """Make a temporary view of one row; return its name, which nobody can guess."""
    name = f"frazil_{uuid.uuid4().hex}"
    spark.createDataFrame([row], frame.schema).createOrReplaceTempView(name)
    return name


def row_values(variables: dict[str, str], variable: str | None) -> str:
    """Return the expressions for the variables of a FOR."""
    return ", ".join("struct(*)" if name == variable else quote(name) for name in variables)


def _declared(names: Any) -> list[str]:
    """Return the names that a declaration makes; there is one, or a list of them."""
    nodes = _items(names) if hasattr(names, "size") else [names]
    found = []
    for one in nodes:
        parts = one.nameParts()
        found.append(str(parts.apply(parts.size() - 1)))
    return found


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(at) for at in range(sequence.size())]


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _traits(node: Any) -> list[str]:
    found: list[str] = []
    kind = node.getClass()
    while kind is not None:
        found += [str(one.getSimpleName()) for one in kind.getInterfaces()]
        found.append(str(kind.getSimpleName()))
        kind = kind.getSuperclass()
    return found


def _label(node: Any) -> str | None:
    label = node.label()
    return str(label.get()).lower() if label.isDefined() else None
