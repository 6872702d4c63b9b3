r"""Literals of Spark SQL: what strings, numbers and hexadecimal digits stand for.

Strings are in quotes, a quote inside is doubled, and a backslash escapes: `\t \n \r \b \0 \Z`, octal `\101` to
`\177`, `\u0041`, `\U00000041`; `\%` and `\_` keep the backslash, for LIKE; before any other character it vanishes.
`r'…'` and `$$…$$` stand for themselves. Numbers: `1` and `1L`, `1S`, `1Y` are whole, `1.5` and `1.5BD` decimals, `1e3`
and `1.5D` doubles, `1.5F` floats.
"""

from __future__ import annotations

import re
import struct
from decimal import Decimal

from frazil.errors import InvalidRequestError

MAX_DIGITS = 38
"""The largest number of digits of a Spark decimal."""
_MAX_NUMBER = 400
_PLAIN_DIGITS = 19
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_LETTERS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_NUMBER = re.compile(r"([0-9.]+(?:e[+-]?[0-9]+)?)(bd|[lsyfd])?", re.IGNORECASE)
_WHOLE_BITS = {"y": 8, "s": 16, "l": 64}


def read_text(token: str) -> str:
    """Return the text that a string of Spark SQL stands for."""
    quote = token[0]
    if quote in "rR":
        return token[2:-1]
    if quote == "$":
        tag = token.index("$", 1) + 1
        return token[tag:-tag]
    inner = token[1:-1]
    if quote not in inner and "\\" not in inner:
        return inner
    parts: list[str] = []
    offset = 0
    # A doubled quote is plain text between escapes; an escaped backslash before it does not change that.
    for match in _ESCAPED.finditer(inner):
        parts += [inner[offset : match.start()].replace(quote * 2, quote), _unescaped(match)]
        offset = match.end()
    parts.append(inner[offset:].replace(quote * 2, quote))
    # Two escapes may be the halves of one character, as in UTF-16.
    return re.sub("[\ud800-\udbff][\udc00-\udfff]", _joined, "".join(parts))


def quote_text(text: str) -> str:
    """Return a text as a string of Spark SQL, which `read_text` reads."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _unescaped(match: re.Match[str]) -> str:
    short, long, octal, letter = match.groups()
    if letter is not None:
        return _LETTERS.get(letter, letter)
    return chr(int(octal, 8)) if octal is not None else _character(int(short or long, 16))


def _character(point: int) -> str:
    if point > 0x10FFFF:
        raise InvalidRequestError(f"\\U{point:08x} is not a character")
    return chr(point)


def _joined(match: re.Match[str]) -> str:
    return match.group().encode("utf-16", "surrogatepass").decode("utf-16")


def read_number(token: str, sign: str = "") -> int | float | Decimal:
    """Return the value of a number's text with Spark's type: whole numbers as int, doubles and floats as float."""
    if len(token) < _PLAIN_DIGITS and token.isdecimal():
        return int(sign + token)
    match = _NUMBER.fullmatch(token)
    if match is None or len(token) > _MAX_NUMBER:
        raise InvalidRequestError("the number has too many digits")
    digits, suffix = sign + match[1], (match[2] or "").lower()
    if suffix in _WHOLE_BITS:
        return _whole(digits, _WHOLE_BITS[suffix])
    if suffix in ("f", "d") or (suffix == "" and "e" in digits.lower()):
        return _binary(digits, is_float=suffix == "f")
    return _decimal(digits, is_whole=suffix == "" and "." not in digits)


def _whole(digits: str, bits: int) -> int:
    if not digits.lstrip("-").isdigit():
        raise InvalidRequestError("a whole number has no fraction")
    value = int(digits)
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise InvalidRequestError(f"the number does not fit {bits} bits")
    return value


def _binary(digits: str, *, is_float: bool) -> float:
    value = float(digits)
    try:
        found: float = struct.unpack("<f", struct.pack("<f", value))[0] if is_float else value
    except OverflowError:
        found = float("inf")
    if found in (float("inf"), float("-inf")):
        raise InvalidRequestError(f"the number does not fit a {'float' if is_float else 'double'}")
    return found


def _decimal(digits: str, *, is_whole: bool) -> int | Decimal:
    exponent = int(digits.lower().partition("e")[2] or 0)
    value = Decimal(digits) if abs(exponent) <= MAX_DIGITS else None
    if value is None or sum(digits_of(value)) > MAX_DIGITS:
        raise InvalidRequestError(f"the number has too many digits: Spark's decimals have {MAX_DIGITS}")
    return int(value) if is_whole else value


def digits_of(value: Decimal) -> tuple[int, int]:
    """Return how many digits a decimal has before and after its point, as Spark counts them for its type."""
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    return max(0, len(digits) + int(exponent)), scale


def read_hex(digits: str) -> bytes:
    """Return the bytes of X'…', from the text in quotes."""
    if len(digits) % 2 or not re.fullmatch("[0-9a-fA-F]*", digits):
        raise InvalidRequestError("X'…' holds pairs of hexadecimal digits")
    return bytes.fromhex(digits)
