r"""Cut the text of a condition into tokens, and read its literals, as Spark SQL 4 does.

Strings are in single quotes, a quote inside is doubled, and a backslash escapes: `\t \n \r \b \0 \Z`, octal `\101`,
`\u0041`, `\U00000041`; `\%` and `\_` keep the backslash, for LIKE; before any other character it vanishes. `r'…'` is
taken as it is. Numbers: `1` and `1L`, `1S`, `1Y` are whole, `1.5` and `1.5BD` decimals, `1e3` and `1.5D` doubles,
`1.5F` floats. Text in double quotes is refused: to Spark it is a string or a name, as the session says.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Collection
from decimal import Decimal
from typing import Any

from frazil.errors import InvalidRequestError, TextSyntaxError
from frazil.spec.text_place import syntax_error
from frazil.spec.token_cursor import END, QUOTED, STRING, WORD, Token, TokenCursor

WHAT = "the condition"
MAX_DIGITS = 38
"""How many digits a decimal of Spark's has."""
_MAX_NUMBER = 400
_SPACE = "[ \t\n\f\r\v\u00a0\u1680\u2000-\u200a\u2028\u202f\u205f\u3000]"
_TOKEN = re.compile(
    rf"""
    (?P<space>{_SPACE}+ | --(?:\\\n|[^\r\n])* | /\*(?!\+)(?:(?!/\*|\*/).)*\*/)
  | (?P<hex>[xX]'[^']*')
  | (?P<string>[rR]'[^']*' | '(?:[^'\\]|\\.|'')*')
  | (?P<quoted>`(?:[^`]|``)+`)
  | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:BD|[LSYFD])?(?![0-9A-Za-z_]))
  | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<parameter>:[A-Za-z_][A-Za-z0-9_]*)
  | (?P<mark><=>|<=|>=|<>|!=|==|\|\||::|/(?!\*)|[=<>().,!+*%&|^~-])
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_ESCAPED = re.compile(r"''|\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))|([^'\\]+|\\\Z)", re.DOTALL)
_LETTERS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_NUMBER = re.compile(r"([0-9.]+(?:e[+-]?[0-9]+)?)(bd|[lsyfd])?", re.IGNORECASE)
_WHOLE_BITS = {"y": 8, "s": 16, "l": 64}


def cut(text: str, what: str = WHAT, hint: str | None = None) -> list[Token]:
    """Return the tokens of a condition, and one for its end; refuse what no token begins with."""
    tokens, start = [], 0
    while start < len(text):
        match = _TOKEN.match(text, start)
        if match is None:
            raise _refusal(text, start, what, hint)
        if match.lastgroup != "space":
            tokens.append(Token(str(match.lastgroup), match.group(), start, match.end()))
        start = match.end()
    tokens.append(Token(END, "", len(text), len(text)))
    return tokens


def _refusal(text: str, start: int, what: str, hint: str | None) -> TextSyntaxError:
    char, reason = text[start], f"unexpected {text[start]!r}"
    if char == '"':
        reason = "double quotes are not used here, since engines differ on what they mean"
        hint = "Write text in single quotes, and names bare or in backticks."
    elif char in "'`":
        reason = "the quoted text does not end"
    elif text.startswith("/*", start):
        reason = "the comment is a hint, holds another comment or does not end"
    elif char.isdigit():
        reason = "a number ends where a word begins"
    elif char.isalpha():
        hint = "Names that are not plain words go in backticks."
    return syntax_error(what, text, start, reason, hint=hint)


class LiteralCursor(TokenCursor):
    """A cursor over tokens of `cut`, with what conditions and expressions read alike: names and strings."""

    def take_name(self, reserved: Collection[str]) -> str | None:
        """Step over one part of a name and return it without quotes; None where none comes."""
        token = self.peek()
        if token.kind == QUOTED:
            return self.take().text[1:-1].replace("``", "`")
        return self.take().text if token.kind == WORD and token.word not in reserved else None

    def strings(self) -> str:
        """Return the value of a string; strings that follow each other are one."""
        values = []
        while self.peek().kind == STRING:
            values.append(self.read(read_text, self.take()))
        return "".join(values)

    def read(self, reader: Callable[..., Any], token: Token, *more: str) -> Any:
        """Return what a function reads of a token's text; its refusal points at the token."""
        try:
            return reader(token.text, *more)
        except InvalidRequestError as problem:
            raise self.error(problem.message, token) from None


def read_text(token: str) -> str:
    """Return the text that a quoted string of Spark SQL stands for."""
    if token[0] in "rR":
        return token[2:-1]
    inner = token[1:-1]
    if "'" not in inner and "\\" not in inner:
        return inner
    parts = []
    for match in _ESCAPED.finditer(inner):
        short, long, octal, letter, plain = match.groups()
        if plain is not None:
            parts.append(plain)
        elif letter is not None:
            parts.append(_LETTERS.get(letter, letter))
        elif octal is not None:
            parts.append(chr(int(octal, 8)))
        else:
            parts.append("'" if short is None and long is None else _character(int(short or long, 16)))
    # Two escapes may be the halves of one character, as in UTF-16.
    return re.sub("[\ud800-\udbff][\udc00-\udfff]", _joined, "".join(parts))


def _character(point: int) -> str:
    if point > 0x10FFFF:
        raise InvalidRequestError(f"\\U{point:08x} is no character")
    return chr(point)


def _joined(match: re.Match[str]) -> str:
    return match.group().encode("utf-16", "surrogatepass").decode("utf-16")


def read_number(token: str, sign: str = "") -> int | float | Decimal:
    """Return the value of a number's text with Spark's type: whole numbers as int, doubles and floats as float."""
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


def read_hex(token: str) -> bytes:
    """Return the bytes of X'…'."""
    digits = token[2:-1]
    if len(digits) % 2 or not re.fullmatch("[0-9a-fA-F]*", digits):
        raise InvalidRequestError("X'…' holds pairs of hexadecimal digits")
    return bytes.fromhex(digits)
