"""No text of a value is read as SQL."""

from __future__ import annotations

from uuid import UUID

import pytest

from frazil.errors import UnsupportedError
from frazil.spec import types
from frazil.spec.types import BINARY, BOOLEAN, INT, STRING, VariantType
from frazil.spec.types import UUID as UUID_TYPE
from frazil.sql.quote_names import quote, quote_if_needed
from frazil.sql.sql_literals import STORED_LITERALS, shown_literal, stored_literal, text_literal
from frazil.sql.type_names import escape
from frazil.text.tokens import STRING as STRING_TOKEN
from frazil.text.tokens import cut_tokens

TEXTS = ["${env:HOME}", "it's", '"', "\\", "\\'", "a\nb", "\x00\x1f\x85", "$$x$$", "--", "/*", "\u2028", "𝄞", ""]


@pytest.mark.parametrize("text", TEXTS)
def test_literal_has_no_ambiguous_sign(text: str) -> None:
    for made in (text_literal(text), stored_literal(text, STRING), shown_literal(text, STRING)):
        assert not set('$\\"\n\x00') & set(made)
        pieces = [token for token in cut_tokens(made) if token.kind == STRING_TOKEN]
        assert all("'" not in piece.value for piece in pieces)


@pytest.mark.parametrize("text", TEXTS)
def test_text_in_shown_statements_can_be_pasted(text: str) -> None:
    (token,) = cut_tokens(f"'{escape(text)}'")
    assert token.value == text
    assert "${" not in escape(text)


def test_values_of_other_types_keep_their_form() -> None:
    assert shown_literal(None, INT) == "cast(null as int)"
    assert shown_literal(7, INT) == "cast('7' as int)"
    assert shown_literal(b"\x01", BINARY) == "X'01'"
    assert stored_literal(True, BOOLEAN) == shown_literal(True, BOOLEAN) == "true"
    assert stored_literal(UUID(int=1), UUID_TYPE) == f"X'{UUID(int=1).hex}'"
    assert shown_literal(UUID(int=1), UUID_TYPE) == f"cast('{UUID(int=1)}' as string)"


def test_keywords_are_quoted_as_names() -> None:
    assert quote("null") == "`null`"
    assert quote("a`b") == "`a``b`"
    assert quote_if_needed("plain") == "plain"
    assert quote_if_needed("a b") == "`a b`"


def test_every_type_has_a_literal_or_is_refused_by_name() -> None:
    classes = {found for found in vars(types).values() if isinstance(found, type) and issubclass(found, types.Type)}
    assert set(STORED_LITERALS) == classes - {types.Type, types.PrimitiveType, types.NestedType}
    with pytest.raises(UnsupportedError, match="type variant"):
        stored_literal(b"", VariantType())
