"""The lexer cuts random texts where Spark's own lexer does."""

from __future__ import annotations

import os
import random
from itertools import takewhile

import pytest
from pyspark.sql import SparkSession

from frazil.text.tokens import BROKEN, cut_tokens
from tests.spark.compiled_java import compiled_class

pytestmark = pytest.mark.spark

TEXTS = int(os.environ.get("FRAZIL_LEXED_TEXTS", "5000"))
PIECES = [
    *("'", '"', "`", "''", '""', "``", "\\", "\\'", "\\\\", "r'", 'R"', "$", "$$", "$a$", "$A$", "$1$"),
    *("/*", "*/", "/*+", "--", "\\\n", "\n", "\r", " ", "\t", "\u00a0", "\u3000", "\x1f", "\x0b", "\u0085"),
    *("1", "12", ".", ".5", "1.5", "e", "E", "e5", "e+", "+", "-", "1e-3", "L", "S", "y", "BD", "b", "D", "F", "_"),
    *("a", "Abc", "select", "é", "ß", "²", "٣", "\U0001d54f", "\U0001f600", "x'1F'", "a.b", "s3://", "abc://x/y?z=1&b"),
    *("<", ">", "=", "!", "<=>", "|", "&", "^", "%", "~", ":", "::", "->", "=>", "|>", "<<", ">>", ">>>"),
    *("(", ")", "[", "]", "{", "}", ",", ";", "?", "@", "#", "array<", "map<", "struct<", "u0041", "\\u0041", "\\101"),
]
JAVA = """
import org.antlr.v4.runtime.*;
import org.apache.spark.sql.catalyst.parser.*;

public class CutTexts {
    public static String cut(String joined) {
        String[] texts = joined.split("\\uE000", -1);
        StringBuilder answer = new StringBuilder();
        for (int i = 0; i < texts.length; i++) {
            SqlBaseLexer lexer = new SqlBaseLexer(new UpperCaseCharStream(CharStreams.fromString(texts[i])));
            lexer.removeErrorListeners();
            if (i > 0) answer.append('\\n');
            for (Token token = lexer.nextToken(); token.getType() != Token.EOF; token = lexer.nextToken()) {
                if (token.getChannel() != Token.DEFAULT_CHANNEL && !lexer.has_unclosed_bracketed_comment) continue;
                answer.append(token.getStartIndex()).append(' ').append(token.getStopIndex() + 1).append(' ');
                answer.append(lexer.has_unclosed_bracketed_comment ? 1 : 0).append(' ');
                answer.append(SqlBaseLexer.VOCABULARY.getSymbolicName(token.getType())).append(' ');
            }
        }
        return answer.toString();
    }
}
"""


def make_text(dice: random.Random) -> str:
    return "".join(dice.choice(PIECES) for _ in range(dice.randint(1, 14)))


def spark_spans(answer: str) -> list[tuple[int, int, str]]:
    """Return the tokens of one text, with the parts of strings in dollars joined."""
    words = answer.split()
    spans: list[tuple[int, int, str]] = []
    opening: int | None = None
    for start, end, is_unclosed, name in zip(*(words[place::4] for place in range(4)), strict=True):
        if is_unclosed == "1":
            spans.append((int(start), int(end), BROKEN))
            break
        if name == "BEGIN_DOLLAR_QUOTED_STRING":
            opening = int(start)
        elif name == "END_DOLLAR_QUOTED_STRING" and opening is not None:
            spans.append((opening, int(end), "STRING"))
            opening = None
        elif opening is None:
            spans.append((int(start), int(end), name))
    return spans if opening is None else [*spans, (opening, -1, BROKEN)]


def test_random_texts_are_cut_where_spark_cuts_them(spark: SparkSession) -> None:
    dice = random.Random(40)
    texts = [make_text(dice) for _ in range(TEXTS)]
    lexer = compiled_class(spark, JAVA, "CutTexts")
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    method = lexer.getMethods()[0]
    assert method.getName() == "cut"
    wrong = []
    for start in range(0, len(texts), 10_000):
        batch = texts[start : start + 10_000]
        arguments = spark.sparkContext._gateway.new_array(jvm.java.lang.Object, 1)  # type: ignore[union-attr]
        arguments[0] = "\ue000".join(batch)
        answers = method.invoke(None, arguments).split("\n")
        for text, answer in zip(batch, answers, strict=True):
            spans = spark_spans(answer)
            ours = list(cut_tokens(text))
            whole = list(takewhile(lambda token: token.kind != BROKEN, ours))
            agrees = [(token.start, token.end) for token in whole] == [span[:2] for span in spans[: len(whole)]]
            if len(whole) < len(ours):
                # A quote or comment that does not end is a token of Spark that no rule of its grammar takes.
                agrees = agrees and spans[len(whole)][2] in (BROKEN, "UNRECOGNIZED")
            else:
                agrees = agrees and len(whole) == len(spans)
            if not agrees:
                wrong.append((text, [token[:2] for token in ours], spans))
    assert not wrong, "\n".join(map(repr, wrong[:20]))
