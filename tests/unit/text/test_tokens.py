from __future__ import annotations

import pytest

from frazil.text.tokens import BROKEN, cut_tokens


def cut(text: str) -> list[tuple[str, str]]:
    return [(one.kind, one.value) for one in cut_tokens(text)]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("select 1", [("word", "select"), ("number", "1")]),
        ("`a b`.`c``d`", [("quoted", "a b"), ("mark", "."), ("quoted", "c`d")]),
        ("'it''s'", [("string", "it's")]),
        (r"'it\'s \\ \n \u0041 \101 \%'", [("string", "it's \\ \n A A \\%")]),
        ('"double"', [("string", "double")]),
        (r"r'raw \n'", [("string", r"raw \n")]),
        ('R"it\'s"', [("string", "it's")]),
        ("r 'x'", [("word", "r"), ("string", "x")]),
        ("$$it's$$", [("string", "it's")]),
        ("$a$ $$ $a$", [("string", " $$ ")]),
        ("1.5e-3 .5 1L 2.5BD 3. 7Y", [("number", n) for n in ("1.5e-3", ".5", "1L", "2.5BD", "3.", "7Y")]),
        ("1a", [("word", "1a")]),
        ("t.1a", [("word", "t"), ("mark", "."), ("word", "1a")]),
        ("t.12", [("word", "t"), ("number", ".12")]),
        ("a -- b\nc", [("word", "a"), ("word", "c")]),
        ("a -- b \\\n still\nc", [("word", "a"), ("word", "c")]),
        ("a /* b /* c */ d */ e", [("word", "a"), ("word", "e")]),
        ("select /*+ b */ a", [("word", "select"), ("mark", "/*+"), ("word", "b"), ("mark", "*/"), ("word", "a")]),
        ("a => 1", [("word", "a"), ("mark", "=>"), ("number", "1")]),
        ("a <=> ?", [("word", "a"), ("mark", "<=>"), ("mark", "?")]),
        ("array<array<int>>", [("word", "array"), ("mark", "<"), ("word", "array"), ("mark", "<"), ("word", "int"),
                               ("mark", ">"), ("mark", ">")]),
        (":name", [("mark", ":"), ("word", "name")]),
        ("größe", [("word", "größe")]),
        ("", []),
    ],
)  # fmt: skip
def test_text_is_tokenized_like_in_spark(text: str, expected: list[tuple[str, str]]) -> None:
    assert cut(text) == expected


@pytest.mark.parametrize("text", ["'a", '"a', "`a", "/* a", "a /* /* */"])
def test_unterminated_token_is_broken(text: str) -> None:
    assert list(cut_tokens(text))[-1].kind == BROKEN


def test_tokens_have_positions() -> None:
    text = "select  `a`, 'b'"
    assert [text[one.start : one.end] for one in cut_tokens(text)] == ["select", "`a`", ",", "'b'"]
