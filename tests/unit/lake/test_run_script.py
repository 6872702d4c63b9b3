"""The order in which the statements of a script run, whatever runs them."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.errors import InvalidRequestError
from frazil.lake.run_script import ScriptRunner, immediate_values, is_immediate, is_script
from frazil.sql.script import Block, Choice, Immediate, Jump, Loop, Run, Step, StepKind, statements_of

pytest.importorskip("pyspark")


class Answer:
    """What a statement answers: one value, or nothing."""

    def __init__(self, value: Any = None, columns: tuple[str, ...] = ()) -> None:
        self.value = value
        self.columns = columns

    def first(self) -> tuple[Any]:
        return (self.value,)


class Counter:
    """Runs statements over one variable: `n + 1` adds to it, conditions look it up."""

    def __init__(self) -> None:
        self.n = 0
        self.done: list[str] = []

    def __call__(self, text: str) -> Answer:
        self.done.append(text)
        if text.startswith("select ("):
            left, mark, right = text.removeprefix("select (").partition(")")[0].split()
            assert left == "n"
            return Answer({"<": self.n < int(right), "=": self.n == int(right)}[mark], ("condition",))
        if text == "add":
            self.n += 1
        if text == "fail":
            raise InvalidRequestError("Cannot go on: so it is")
        return Answer(text, ("value",) if text.startswith("show") else ())


def run(*steps: Step, label: str | None = None) -> tuple[Counter, Any]:
    counter = Counter()
    return counter, ScriptRunner(None, counter).run(Block(steps, label))


def command(text: str) -> Run:
    return Run(text, StepKind.COMMAND)


ADD = command("add")


def test_the_answer_is_the_last_querys() -> None:
    counter, answer = run(Run("show 1", StepKind.QUERY), Run("show 2", StepKind.QUERY), ADD)
    assert answer.value == "show 2"
    assert counter.done == ["show 1", "show 2", "add"]
    assert run(ADD)[1] is None


def test_variables_end_with_their_block_even_after_an_error() -> None:
    declare = Run("declare a, b int", StepKind.DECLARE, ("a", "b c"))
    counter, _ = run(Block((declare, ADD)), command("after"))
    assert counter.done == [
        "declare a, b int",
        "add",
        "drop temporary variable if exists `b c`",
        "drop temporary variable if exists `a`",
        "after",
    ]
    counter = Counter()
    with pytest.raises(InvalidRequestError, match="so it is"):
        ScriptRunner(None, counter).run(Block((declare, command("fail"), command("never"))))
    assert counter.done[-1] == "drop temporary variable if exists `a`"
    assert "never" not in counter.done


def test_set_says_that_it_is_about_a_variable() -> None:
    counter, _ = run(Run("SET x = 1", StepKind.SET), Run("set (a, b) = (select 1, 2)", StepKind.SET))
    assert counter.done == ["set var x = 1", "set var (a, b) = (select 1, 2)"]


def test_the_first_branch_that_holds_is_taken() -> None:
    branches = (("n = 1", Block((command("one"),))), ("n < 5", Block((command("few"),))))
    assert run(Choice(branches))[0].done[-1] == "few"
    assert run(ADD, Choice(branches))[0].done[-1] == "one"
    other = Block((command("other"),))
    assert run(Choice(branches[:1], other))[0].done[-1] == "other"
    assert run(Choice(branches[:1]))[0].done == ["select (n = 1) as condition"]


def test_loops_test_before_or_after_their_body() -> None:
    body = Block((ADD,))
    assert run(Loop(body, before="n < 3"))[0].n == 3
    assert run(Loop(body, before="n < 0"))[0].n == 0
    assert run(Loop(body, until="n = 2"))[0].n == 2
    assert run(Loop(body, until="n < 9"))[0].n == 1


def test_labels_are_left_and_gone_on_with_from_inner_loops() -> None:
    leave = Choice((("n = 3", Block((Jump("OUTER", leaves=True),))),))
    again = Jump("outer", leaves=False)
    inner = Loop(Block((ADD, leave, again, command("never"))), "inner")
    counter, _ = run(Loop(Block((inner, command("never"))), "outer"), command("after"))
    assert counter.n == 3
    assert "never" not in counter.done
    assert counter.done[-1] == "after"


def test_a_jump_to_no_label_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="nowhere"):
        run(Jump("nowhere", leaves=True))
    assert run(Jump("self", leaves=True), ADD, label="self")[0].done == []


def test_all_texts_of_a_script_are_told() -> None:
    choice = Choice((("n = 1", Block((ADD,))),), Block((command("b"),)))
    script = Block((choice, Loop(Block((command("c"),)), until="n = 2"), Jump("x", leaves=True)))
    assert statements_of(script) == ["select (n = 1)", "add", "b", "select (n = 2)", "c"]


def test_scripts_are_told_by_their_first_word() -> None:
    assert is_script("-- a note\n /* begin */ BEGIN select 1; end")
    assert not is_script("beginning")
    assert not is_script("select 'begin'")
    assert is_immediate(" execute\n immediate 'x'")
    assert not is_immediate("execute x")


def test_arguments_are_named_all_or_none() -> None:
    def evaluate(texts: list[str]) -> tuple[Any, ...]:
        return tuple(map(int, texts))

    assert immediate_values(Immediate("q"), evaluate) is None
    assert immediate_values(Immediate("q", ((None, "1"), (None, "2"))), evaluate) == [1, 2]
    assert immediate_values(Immediate("q", (("a", "1"), ("b", "2"))), evaluate) == {"a": 1, "b": 2}
    with pytest.raises(InvalidRequestError, match="all or none"):
        immediate_values(Immediate("q", (("a", "1"), (None, "2"))), evaluate)
