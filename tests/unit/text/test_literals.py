r"""Words and literals of conditions, as Spark SQL reads them: the expectations are what Spark 4 answers.

`tests/spark/test_condition_language.py` asks Spark for the same texts.
"""

from __future__ import annotations

from decimal import Decimal

import pytest

from frazil.text.literals import read_hex, read_number, read_text
from frazil.text.tokens import cut_tokens
from tests.support.condition_texts import NUMBERS, STRINGS


@pytest.mark.parametrize(("text", "meaning"), STRINGS, ids=[text for text, _ in STRINGS])
def test_string_literal_equals_spark(text: str, meaning: str) -> None:
    [token] = cut_tokens(text)
    assert token.kind == "string"
    assert read_text(token.text) == meaning


@pytest.mark.parametrize(("text", "meaning"), NUMBERS, ids=[text for text, _ in NUMBERS])
def test_number_literal_has_the_value_and_type_of_spark(text: str, meaning: object) -> None:
    [token] = cut_tokens(text)
    assert token.kind == "number"
    value = read_number(token.text)
    assert (value, type(value)) == (meaning, type(meaning))


def test_sign_is_part_of_the_smallest_numbers() -> None:
    assert read_number("9223372036854775808L", "-") == -(2**63)
    assert read_number("128Y", "-") == -128
    assert read_number("0.10BD", "-") == Decimal("-0.10")


@pytest.mark.parametrize(
    "number", ["9223372036854775808L", "128Y", "32768S", "1e39F", "1.5S", "1e3L", "9" * 39, "0." + "1" * 39, "1e39BD"]
)
def test_numbers_that_spark_refuses_are_refused(number: str) -> None:
    with pytest.raises(ValueError, match="number"):
        read_number(number)


def test_lexing_takes_linear_time() -> None:
    assert len(list(cut_tokens("'" + "''" * 500_000 + "'"))) == 1
    assert len(list(cut_tokens("'" + r"\'" * 500_000 + "'"))) == 1
    assert len(list(cut_tokens("/*" + "*" * 500_000 + "*/x"))) == 1


def test_binary_literals_are_pairs_of_digits() -> None:
    assert read_hex("00fF") == b"\x00\xff"
    for wrong in ("0", "0g", "6 1", "61 62"):
        with pytest.raises(ValueError, match="pairs of hexadecimal digits"):
            read_hex(wrong)
