r"""Literals in the text of conditions, and what Spark 4 makes of them."""

from __future__ import annotations

from decimal import Decimal

STRINGS: list[tuple[str, str]] = [
    ("''", ""),
    ("'a'", "a"),
    ("'it''s'", "it's"),
    ("''''", "'"),
    (r"'it\'s'", "it's"),
    (r"'a\"b'", 'a"b'),
    (r"'a\tb\nc\rd\be'", "a\tb\nc\rd\be"),
    (r"'\0'", "\0"),
    (r"'\Z'", "\x1a"),
    (r"'a\\b'", "a\\b"),
    (r"'a\\'", "a\\"),
    (r"'\%\_'", r"\%\_"),
    (r"'\\%'", r"\%"),
    (r"'\a\x41\q'", "ax41q"),
    (r"'\101\061\177'", "A1\x7f"),
    (r"'\08\18\201'", "\x00818201"),
    (r"'\u0041\u00e9\u20ac'", "Aé€"),
    (r"'\u00e'", "u00e"),
    (r"'\U0001F600'", "\U0001f600"),
    (r"'\ud83d\ude00'", "\U0001f600"),
    (r"'\U1F600'", "U1F600"),
    ("'é'", "é"),
    ("'a\nb\tc'", "a\nb\tc"),
    (r"r'a\tb'", r"a\tb"),
    (r"R'\'", "\\"),
    ("'-- no remark /* here */'", "-- no remark /* here */"),
    ("'`\"$'", '`"$'),
]

NUMBERS: list[tuple[str, int | float | Decimal]] = [
    ("0", 0),
    ("007", 7),
    ("2147483648", 2147483648),
    ("9223372036854775808", 9223372036854775808),
    ("9" * 38, int("9" * 38)),
    ("1L", 1),
    ("1l", 1),
    ("12S", 12),
    ("127Y", 127),
    ("1.5", Decimal("1.5")),
    ("1.", Decimal(1)),
    (".50", Decimal("0.50")),
    ("1.50BD", Decimal("1.50")),
    ("1e2BD", Decimal("1E+2")),
    ("1e3", 1000.0),
    ("1.E-3", 0.001),
    (".5e1", 5.0),
    ("1.5D", 1.5),
    ("1d", 1.0),
    ("0.1F", 0.10000000149011612),
    ("1e-400", 0.0),
]
