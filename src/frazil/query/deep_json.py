"""JSON of any depth, decoded without recursion, for the trees of queries with long chains of operators."""

from __future__ import annotations

import json
import re
from typing import Any, Final

_TOKEN: Final = re.compile(r'\s*(?:([{}\[\],:])|("(?:[^"\\]|\\.)*")|([^\s{}\[\],:"]+))', re.DOTALL)


def decode_json(text: str) -> Any:
    """Decode valid JSON of any depth."""
    try:
        return json.loads(text)
    except RecursionError:
        return _decode(text)


def _decode(text: str) -> Any:
    root: list[Any] = []
    stack: list[tuple[Any, str | None]] = []
    """The open containers, each with the key for its next value."""
    current: Any = root
    key: str | None = None
    expects_key = False
    for mark, string, plain in _TOKEN.findall(text):
        if mark in ("{", "["):
            container: Any = {} if mark == "{" else []
            _put(current, key, container)
            stack.append((current, key))
            current, key, expects_key = container, None, mark == "{"
        elif mark in ("}", "]"):
            current, key = stack.pop()
            expects_key = False
        elif mark == ",":
            expects_key = isinstance(current, dict)
        elif mark == ":":
            expects_key = False
        elif expects_key:
            key = json.loads(string)
        else:
            _put(current, key, json.loads(string or plain))
    return root[0]


def _put(container: Any, key: str | None, value: Any) -> None:
    if isinstance(container, list):
        container.append(value)
    else:
        container[key] = value
