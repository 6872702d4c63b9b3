"""CALL name([parameter =>] x, ...). Arguments stay text."""

from __future__ import annotations

from frazil.sql.cursor import Cursor
from frazil.sql.statements import Argument, Call, Statement


def parse_call(cursor: Cursor) -> Statement:
    """Read what follows CALL."""
    name = cursor.name("the name of a procedure")
    cursor.accept("procedure", name)
    arguments: list[Argument] = []

    def argument() -> None:
        start = cursor.peek()
        label: str | None = None
        if cursor.peek(1).is_mark("=>"):
            label = cursor.identifier("a parameter's name")
            cursor.take()
            if any(one.name is not None and one.name.lower() == label.lower() for one in arguments):
                cursor.fail(f"the parameter {label!r} is given twice", start)
        elif arguments and arguments[-1].name is not None:
            cursor.fail("an argument without a name cannot follow one with a name", start)
        arguments.append(Argument(cursor.expression(what="an argument"), label))

    cursor.expect_mark("(")
    if not cursor.at_mark(")"):
        cursor.listed(argument)
    cursor.expect_mark(")")
    return Call(name, tuple(arguments))
