"""Thrift's binary protocol: every value comes back as it was, and no bytes cost more than they are worth."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.catalog.hive.connection import Host, parse_hosts
from frazil.catalog.hive.thrift_binary import (
    BOOL,
    BYTE,
    DOUBLE,
    I16,
    I32,
    I64,
    LIST,
    MAP,
    REPLY,
    SET,
    STRING,
    STRUCT,
    MessageReader,
    ThriftError,
    ThriftList,
    ThriftMap,
    ThriftStruct,
    encode_message,
    text_value,
    texts_value,
)

_PLAIN: dict[int, st.SearchStrategy[Any]] = {
    BOOL: st.booleans(),
    BYTE: st.integers(-(2**7), 2**7 - 1),
    DOUBLE: st.floats(allow_nan=False),
    I16: st.integers(-(2**15), 2**15 - 1),
    I32: st.integers(-(2**31), 2**31 - 1),
    I64: st.integers(-(2**63), 2**63 - 1),
    STRING: st.binary(max_size=20),
}


def values(kind: int, depth: int) -> st.SearchStrategy[Any]:
    """Values of a type."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    inner = st.sampled_from([*_PLAIN, *([STRUCT, LIST, MAP] if depth > 0 else [])])
    if kind == STRUCT:
        fields = st.dictionaries(st.integers(1, 30), inner.flatmap(lambda one: typed(one, depth - 1)), max_size=4)
        return fields.map(ThriftStruct)
    if kind == MAP:
        return st.tuples(inner, inner).flatmap(
            lambda kinds: st.lists(st.tuples(values(kinds[0], depth - 1), values(kinds[1], depth - 1)), max_size=3).map(
                lambda pairs: ThriftMap(kinds[0], kinds[1], tuple(pairs))
            )
        )
    return inner.flatmap(
        lambda one: st.lists(values(one, depth - 1), max_size=3).map(lambda items: ThriftList(one, tuple(items), kind))
    )


def typed(kind: int, depth: int) -> st.SearchStrategy[tuple[int, Any]]:
    return values(kind, depth).map(lambda value: (kind, value))


def reader_of(data: bytes) -> Callable[[int], bytes]:
    """A source of exactly as many bytes as asked for, as a connection is."""
    at = 0

    def read(count: int) -> bytes:
        nonlocal at
        if at + count > len(data):
            raise ConnectionError("the server closed the connection")
        at += count
        return data[at - count : at]

    return read


def answer(value: ThriftStruct) -> bytes:
    """The bytes of a reply, made of those of a call."""
    data = bytearray(encode_message("get", value, 7))
    data[3] = REPLY
    return bytes(data)


@given(values(STRUCT, 3))
def test_structs_round_trip(value: ThriftStruct) -> None:
    assert MessageReader(reader_of(answer(value))).read_message("get", 7) == (REPLY, value)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_decoded_or_refused(data: bytes) -> None:
    for whole in (data, answer(ThriftStruct())[:-1] + data):
        try:
            MessageReader(reader_of(whole)).read_message("get", 7)
        except (ThriftError, ConnectionError):
            continue


@given(values(STRUCT, 2), st.data())
def test_truncated_message_is_refused(value: ThriftStruct, data: st.DataObject) -> None:
    whole = answer(value)
    end = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises((ThriftError, ConnectionError)):
        MessageReader(reader_of(whole[:end])).read_message("get", 7)


@pytest.mark.parametrize(
    "field",
    [
        struct.pack(">bhi", STRING, 1, 2**31 - 1),
        struct.pack(">bhi", STRING, 1, -1),
        struct.pack(">bhbi", LIST, 1, I32, 2**31 - 1),
        struct.pack(">bhbi", SET, 1, I32, -5),
        struct.pack(">bhbbi", MAP, 1, STRING, STRING, 2**31 - 1),
        struct.pack(">bh", 99, 1),
        struct.pack(">bh", STRUCT, 1) * 100,
        struct.pack(">bhbi", LIST, 1, LIST, 1) + struct.pack(">bi", LIST, 1) * 100,
    ],
    ids=["long text", "negative text", "long list", "negative set", "long map", "unknown type", "deep", "deep list"],
)
def test_impossible_lengths_and_depths_are_refused(field: bytes) -> None:
    data = answer(ThriftStruct())[:-1] + field
    with pytest.raises((ThriftError, ConnectionError)):
        MessageReader(reader_of(data)).read_message("get", 7)


def test_an_answer_to_another_call_is_refused() -> None:
    for name, sequence in (("put", 7), ("get", 8)):
        with pytest.raises(ThriftError, match="it answers"):
            MessageReader(reader_of(answer(ThriftStruct()))).read_message(name, sequence)
    with pytest.raises(ThriftError, match="not a Thrift message"):
        MessageReader(reader_of(b"HTTP/1.1 400")).read_message("get", 7)


def test_unknown_fields_are_kept() -> None:
    table = ThriftStruct(
        {1: text_value("t"), 9: texts_value({"a": "b"}), 77: (I64, 5), 78: (SET, ThriftList(I16, (1,), SET))}
    )
    changed = table.changed({9: texts_value({"c": "d"}), 1: (STRING, None)})
    assert changed.fields == {9: texts_value({"c": "d"}), 77: table.fields[77], 78: table.fields[78]}


def test_text_that_is_not_utf_8_round_trips() -> None:
    found = ThriftStruct({1: (STRING, b"\xff\xfe")}).text(1)
    assert text_value(found) == (STRING, b"\xff\xfe")


@pytest.mark.parametrize(
    ("uri", "hosts"),
    [
        ("thrift://a:1", (Host("a", 1),)),
        ("thrift://a", (Host("a", 9083),)),
        ("thrift://a:1,thrift://b:2, c", (Host("a", 1), Host("b", 2), Host("c", 9083))),
        ("thrift://[::1]:7/", (Host("::1", 7),)),
        ("THRIFT://a:1", (Host("a", 1),)),
    ],
)
def test_addresses(uri: str, hosts: tuple[Host, ...]) -> None:
    assert parse_hosts(uri, ValueError) == hosts
