"""What is printed is text: characters that steer a terminal are written out.

Names, comments and values of a table may be untrusted. Errors, reports, lines of progress and everything that the
terminal prints go through `visible`.
"""

from __future__ import annotations

import re

_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_STEERING_OR_LINES = re.compile(f"[\t\n\u2028\u2029]|{_STEERING.pattern}")


def visible(text: str, *, keeps_lines: bool = False) -> str:
    """Write characters out that would steer a terminal or turn the order of what is read: data is text.

    Those are the control characters, the marks that embed or override directions, and halves of characters, which
    cannot be printed. Ends of lines and tabs stay where `keeps_lines`.
    """
    pattern = _STEERING if keeps_lines else _STEERING_OR_LINES
    return pattern.sub(lambda match: repr(match[0])[1:-1], text)
