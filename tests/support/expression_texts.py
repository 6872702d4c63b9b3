"""Random expressions over a few columns, for both engines to compute: `make_expression` gives their text."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

COLUMNS: dict[str, pa.DataType] = {
    "i": pa.int32(),
    "l": pa.int64(),
    "d": pa.float64(),
    "f": pa.float32(),
    "p": pa.decimal128(9, 2),
    "q": pa.decimal128(20, 4),
    "s": pa.string(),
    "b": pa.bool_(),
    "dt": pa.date32(),
    "ts": pa.timestamp("us", "UTC"),
}
DDL = "i int, l bigint, d double, f float, p decimal(9,2), q decimal(20,4), s string, b boolean, dt date, ts timestamp"
_UTC = datetime.UTC
ROWS: list[dict[str, Any]] = [
    {
        "i": 0, "l": 5, "d": 0.5, "f": 0.25, "p": Decimal("0.10"), "q": Decimal("3.0001"), "s": "ab", "b": True,
        "dt": datetime.date(2024, 2, 29), "ts": datetime.datetime(2024, 2, 29, 5, 30, 1, 120000, tzinfo=_UTC),
    },
    {
        "i": -7, "l": -3, "d": float("nan"), "f": -0.0, "p": Decimal("-34.56"), "q": Decimal("0.0000"), "s": " Straße ",
        "b": False, "dt": datetime.date(1969, 12, 31), "ts": datetime.datetime(1969, 12, 31, 23, 59, 59, tzinfo=_UTC),
    },
    dict.fromkeys(COLUMNS),
    {
        "i": 12, "l": 2**40, "d": -2.5, "f": 1.5, "p": Decimal("99.99"), "q": Decimal("-12345.6789"), "s": "",
        "b": None, "dt": datetime.date(1970, 1, 1), "ts": None,
    },
    {
        "i": 2**31 - 1, "l": -(2**63), "d": 1e300, "f": 3.0e38, "p": Decimal("9999999.99"),
        "q": Decimal("9999999999999999.9999"), "s": "12", "b": True, "dt": None,
        "ts": datetime.datetime(2024, 1, 1, tzinfo=_UTC),
    },
]  # fmt: skip
_LITERALS = {
    "whole": ["0", "1", "-3", "7L", "2147483647", "100"],
    "exact": ["0.5", "1.10", "3BD", "0.001"],
    "binary": ["0.5D", "1e3", "2.5D"],
    "text": ["'a'", "''", "'É'", "'12'"],
    "truth": ["true", "false", "b"],
    "day": ["date '2024-01-31'", "date '1969-12-31'"],
    "moment": ["timestamp '2024-02-29 05:30:01.12'", "timestamp '1970-01-01'"],
}
_NAMES = {
    "whole": ["i", "l"],
    "exact": ["p", "q"],
    "binary": ["d", "f"],
    "text": ["s"],
    "truth": ["b"],
    "day": ["dt"],
    "moment": ["ts"],
}
_KINDS = list(_NAMES)
_REPLACED = ["'a'", "'ß'"]
_PARTS = ["quarter", "dayofyear", "dayofweek", "weekday", "weekofyear"]
_UNITS = ["'year'", "'QUARTER'", "'mon'", "'week'"]
REGEXES = ["'^a'", "'b$'", "'^[a-c]+$'", "'S.r'", "'a|1'", "'\\\\d{2}'", "'(?:ab)*$'", "'^$'", "'[^a]'", "'.'"]
TEXTS = [
    *(f"date_trunc('{unit}', ts)" for unit in ("yyyy", "yy", "mm", "dd", "day", "hour", "minute", "second")),
    *(
        f"date_trunc('{unit}', timestamp '1969-12-31 23:59:59.123456')"
        for unit in ("millisecond", "microsecond", "week")
    ),
    *(f"date_trunc('week', date '{day}')" for day in ("2024-01-01", "2023-12-31", "1970-01-04", "0001-01-01")),
    *(f"trunc(date '{day}', '{unit}')" for day in ("1969-11-30", "2024-12-30") for unit in ("yyyy", "mm", "week")),
    *(f"weekofyear(date '{day}')" for day in ("2021-01-03", "2021-01-04", "2020-12-31", "2024-12-30")),
    *(f"add_months(date '{day}', {n})" for day in ("2024-01-31", "2023-03-31", "0001-01-31") for n in (1, -1, 12, 25)),
    "last_day(date '2023-02-01')",
    *("to_date('2024-02-29')", "to_date('x')", "to_timestamp('2024-02-29 01:02:03')", "to_timestamp(dt)", "to_date(s)"),
    *("date(ts)", "timestamp(dt)", "int('12')", "bigint(i)", "double(p)", "decimal(i)", "string(i)", "boolean(i)"),
    *("smallint(i)", "tinyint(i)", "float(i)", "binary(s)", "int(d)", "date('2024-02-29')", "unix_date(dt)"),
    *("concat_ws(',')", "concat_ws(null, s)", "concat_ws(',', s, null, 'x', '')", "concat_ws(s, 'a', 'b')"),
    *("instr(s, '')", "instr('', '')", "locate('', s)", "position('a', s)", "instr('ßaß', 'ß')"),
    *("repeat(s, 3)", "repeat(s, -1)", "repeat('ab', i)", "translate('abcabc', 'abca', '12')", "translate(s, '', 'x')"),
    *(
        f"substring_index('{text}', '{mark}', {n})"
        for text in ("aaaa", "a.b.c", ".a.", "")
        for mark in ("aa", ".", "")
        for n in (-3, -2, -1, 0, 1, 2, 3)
    ),
    *("ascii('')", "ascii('é')", "ascii(s)", "ascii('🙂')", "octet_length('é')", "character_length('🙂é')"),
    *("md5(s)", "sha(s)", "sha1('')", "crc32('é')", "md5(binary(s))", "hex(binary(s))", "hex(l)", "hex(-1)", "hex(s)"),
    *(f"sha2(s, {bits})" for bits in (0, 224, 256, 384, 512)),
    *("s ilike 'A%'", "s ilike '%SS%'", "'Straße' ilike '%SE'", "'a_b' ilike 'A!_B' escape '!'", "'AB' not ilike 'a_'"),
    *(f"{text} rlike {one}" for one in REGEXES for text in ("s", "'ab\\n'", "'ab\\r\\n'", "'\\n'", "'x\\u0085'", "''")),
    *(f"{text} rlike 'b$'" for text in ("'ab\\u2028'", "'ab\\n\\n'", "'ab\\r'", "'ab\\u000b'")),
    *("'a.c' rlike 'a\\\\.c'", "'a\\nc' rlike 'a.c'", "'🙂' rlike '^.$'", "regexp_like(s, 'a')", "s not regexp 'a+?b'"),
    *(
        "i & 7",
        "i | 8",
        "i ^ l",
        "~i",
        "~l",
        "~1",
        "i & l",
        "1 + 2 & 3",
        "1 | 2 ^ 3 & 4",
        "-i & 3",
        "i & null",
        "5Y & 3S",
    ),
    *("i & 1 = 1", "not i & 1 = 0", "i between 1 & 3 and 8 | 4", "1 | 1 || 'x'", "- ~ 5", "2 * 3 & 4 + 1"),
    *("sqrt(d)", "sqrt(-1)", "sqrt(p)", "sqrt(2)", "sign(d)", "sign(f)", "signum(p)", "sign(-3)", "sqrt(i)", "sign(l)"),
    *(
        f"try_cast({text} as int)"
        for text in ("'12'", "' 12 '", "'1.5'", "'x'", "''", "'é'", "l", "d", "q", "'2147483648'")
    ),
    *("try_cast('x' as double)", "try_cast('1e2' as double)", "try_cast('inf' as double)", "try_cast('' as double)"),
    *("try_cast('12.345' as decimal(4,1))", "try_cast('x' as decimal(4,1))", "try_cast('12345' as decimal(4,1))"),
    *(
        "try_cast('yes' as boolean)",
        "try_cast('maybe' as boolean)",
        "try_cast('2024-02-30' as date)",
        "try_cast('x' as date)",
    ),
    *(
        "try_cast('2024-02-29' as date)",
        "try_cast(p as decimal(3,1))",
        "try_cast(d as decimal(5,2))",
        "try_cast(i as tinyint)",
    ),
    *(
        "try_cast(i as string)",
        "try_cast(s as int)",
        "try_cast(null as int)",
        "try_cast('x' as timestamp)",
        "try_cast(b as int)",
    ),
    *("try_cast(d as bigint)", "try_cast(f as int)", "unix_seconds(ts)", "unix_millis(ts)", "unix_micros(ts)"),
    *("date_diff(dt, date '2024-01-01')", "dayofweek(ts)", "weekday(ts)", "quarter(ts)", "dayofyear(ts)"),
]
"""Functions in their corners."""
_PATTERNS = ["'%a%'", "'_b'", "'a%'", "'%'", "''"]


def make_expression(chance: random.Random, kind: str | None = None, depth: int = 3) -> str:
    """Return the text of a random expression, of a kind of values or of any."""
    kind = kind or chance.choice(_KINDS)
    if depth <= 0 or chance.random() < 0.15:
        if chance.random() < 0.08:
            return "null"
        return chance.choice(_NAMES[kind] * 2 + _LITERALS[kind])

    def some(wanted: str) -> str:
        return make_expression(chance, wanted, depth - 1)

    number = chance.choice(["whole", "exact", "binary", "whole"])
    shared: list[Callable[[], str]] = [
        lambda: f"case when {some('truth')} then {some(kind)} else {some(kind)} end",
        lambda: f"coalesce({some(kind)}, {some(kind)})",
        lambda: f"if({some('truth')}, {some(kind)}, {some(kind)})",
        lambda: f"nullif({some(kind)}, {some(kind)})",
        lambda: f"({some(kind)})",
    ]
    own: dict[str, list[Callable[[], str]]] = {
        "whole": [
            lambda: f"{some('whole')} {chance.choice(['+', '-', '*', '%', 'div'])} {some('whole')}",
            lambda: f"-({some('whole')})",
            lambda: f"length({some('text')})",
            lambda: f"cast({some(number)} as {chance.choice(['int', 'bigint'])})",
            lambda: f"{chance.choice(['year', 'month', 'day'])}({some('day')})",
            lambda: f"{chance.choice(['hour', 'minute', 'second'])}({some('moment')})",
            lambda: f"abs({some('whole')})",
            lambda: f"datediff({some('day')}, {some('day')})",
            lambda: f"greatest({some('whole')}, {some('whole')})",
            lambda: f"{some('whole')} {chance.choice(['&', '|', '^'])} {some('whole')}",
            lambda: f"~({some('whole')})",
            lambda: f"{chance.choice(_PARTS)}({some(chance.choice(['day', 'moment']))})",
            lambda: f"{chance.choice(['instr', 'locate'])}({some('text')}, {some('text')})",
            lambda: f"{chance.choice(['ascii', 'octet_length', 'crc32'])}({some('text')})",
            lambda: f"try_cast({some(number)} as {chance.choice(['int', 'bigint', 'tinyint'])})",
            lambda: f"{chance.choice(['unix_seconds', 'unix_millis'])}({some('moment')})",
        ],
        "exact": [
            lambda: f"{some('exact')} {chance.choice(['+', '-', '*', '/', '%'])} {some('exact')}",
            lambda: f"{some('exact')} {chance.choice(['+', '-', '*', '/'])} {some('whole')}",
            lambda: f"cast({some(number)} as decimal({chance.choice(['10,2', '38,10', '5,1'])}))",
            lambda: f"round({some('exact')}, {chance.choice([0, 1, 3])})",
            lambda: f"floor({some('exact')})",
        ],
        "binary": [
            lambda: f"{some('binary')} {chance.choice(['+', '-', '*', '/', '%'])} {some(number)}",
            lambda: f"{some('whole')} / {some('whole')}",
            lambda: f"cast({some(number)} as double)",
            lambda: f"round({some('binary')}, {chance.choice([0, 1, 2])})",
            lambda: f"least({some('binary')}, {some(number)})",
            lambda: f"{chance.choice(['sqrt', 'sign'])}({some(number)})",
        ],
        "text": [
            lambda: f"{some('text')} || {some('text')}",
            lambda: f"{chance.choice(['upper', 'lower', 'trim', 'ltrim', 'rtrim', 'reverse'])}({some('text')})",
            lambda: f"substring({some('text')}, {chance.choice([-2, 0, 1, 2])}, {chance.choice([0, 1, 3])})",
            lambda: f"replace({some('text')}, {chance.choice(_REPLACED)}, 'z')",
            lambda: f"{chance.choice(['lpad', 'rpad'])}({some('text')}, {chance.choice([0, 3, 9])}, 'xy')",
            lambda: f"{chance.choice(['left', 'right'])}({some('text')}, {chance.choice([-1, 0, 2])})",
            lambda: f"cast({chance.choice([some('whole'), some('exact'), some('day'), some('truth')])} as string)",
            lambda: f"cast({some('moment')} as string)",
            lambda: f"concat_ws({some('text')}, {some('text')}, {some('text')})",
            lambda: f"repeat({some('text')}, {chance.choice([-1, 0, 2])})",
            lambda: f"translate({some('text')}, 'ab ', {chance.choice(_REPLACED)})",
            lambda: f"substring_index({some('text')}, {chance.choice(_REPLACED)}, {chance.choice([-1, 0, 2])})",
            lambda: f"{chance.choice(['md5', 'sha1', 'hex', 'btrim'])}({some('text')})",
            lambda: f"hex({some('whole')})",
        ],
        "truth": [
            lambda: f"{some(number)} {chance.choice(['=', '<>', '<', '<=', '>', '>=', '<=>'])} {some(number)}",
            lambda: f"{some('text')} {chance.choice(['=', '<', '>=', '<=>'])} {some('text')}",
            lambda: f"{some('day')} {chance.choice(['=', '<', '>='])} {some(chance.choice(['day', 'moment']))}",
            lambda: f"({some('truth')} {chance.choice(['and', 'or'])} {some('truth')})",
            lambda: f"not ({some('truth')})",
            lambda: f"{some(chance.choice(_KINDS))} is {chance.choice(['null', 'not null'])}",
            lambda: f"({some('truth')}) is {chance.choice(['true', 'not false'])}",
            lambda: f"{some('whole')} in ({some('whole')}, 5, null)",
            lambda: f"{some(number)} between {some(number)} and {some(number)}",
            lambda: f"{some('text')} like {chance.choice(_PATTERNS)}",
            lambda: f"{chance.choice(['startswith', 'endswith', 'contains'])}({some('text')}, 'a')",
            lambda: f"isnan({some('binary')})",
            lambda: f"{some('text')} ilike {chance.choice(_PATTERNS)}",
            lambda: f"{some('text')} rlike {chance.choice(REGEXES)}",
        ],
        "day": [
            lambda: f"{chance.choice(['date_add', 'date_sub'])}({some('day')}, {chance.choice(['i', '3', '-40'])})",
            lambda: f"cast({some('moment')} as date)",
            lambda: "cast('2024-02-29' as date)",
            lambda: f"trunc({some('day')}, {chance.choice(_UNITS)})",
            lambda: f"last_day({some('day')})",
            lambda: f"add_months({some('day')}, {chance.choice(['i', '1', '-13'])})",
            lambda: f"to_date({some('moment')})",
        ],
        "moment": [
            lambda: f"cast({some('day')} as timestamp)",
            lambda: "cast('2024-02-29 01:02:03.5Z' as timestamp)",
            lambda: f"date_trunc({chance.choice(_UNITS)}, {some(chance.choice(['day', 'moment']))})",
        ],
    }
    return chance.choice(own[kind] * 2 + shared)()
