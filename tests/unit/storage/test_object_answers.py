"""Answers of an object store that mean harm."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from frazil.errors import StorageError
from frazil.storage.http import Answer
from frazil.storage.object_requests import ObjectKey, ObjectRequests, Outcome, child_text, children, parse_xml

_BOMB = '<?xml version="1.0" encoding="{}"?><!DOCTYPE a [<!ENTITY b "xxxx">]><a><Code>&b;</Code></a>'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be", "iso-8859-1"])
def test_document_type_is_refused_in_every_encoding(encoding: str) -> None:
    with pytest.raises(ET.ParseError):
        parse_xml(_BOMB.format(encoding.partition("-le")[0].partition("-be")[0]).encode(encoding))


def test_documents_are_read_with_and_without_namespaces() -> None:
    for head in ("<L>", '<L xmlns="http://s3.amazonaws.com/doc/2006-03-01/">', '<x:L xmlns:x="u">'):
        name = head[1:].split()[0].rstrip(">")
        prefix = "x:" if name.startswith("x:") else ""
        root = parse_xml(f"{head}<{prefix}Key>a &amp; b</{prefix}Key><{prefix}Key>c</{prefix}Key></{name}>".encode())
        assert child_text(root, "Key") == "a & b"
        assert [one.text for one in children(root, "Key")] == ["a & b", "c"]


@pytest.mark.parametrize("body", [b"", b"<a>", b"<a></b>", b"not xml", b"<a/><b/>", b"\x00"])
def test_invalid_document_is_refused(body: bytes) -> None:
    with pytest.raises(ET.ParseError):
        parse_xml(body)


class Circling(ObjectRequests):
    """Answers with pages that lead to each other."""

    def __init__(self, tokens: str) -> None:
        self.pages = 0
        self._tokens = itertools.cycle(tokens)

    def send(self, *_: Any, **__: Any) -> Outcome:
        self.pages += 1
        body = (
            "<ListBucketResult><IsTruncated>true</IsTruncated>"
            f"<NextContinuationToken>{next(self._tokens)}</NextContinuationToken></ListBucketResult>"
        )
        return Outcome(Answer(200, {}, body.encode()), may_have_happened=False)


@pytest.mark.parametrize("tokens", ["A", "AB", "ABC"])
def test_circular_pagination_ends(tokens: str) -> None:
    requests = Circling(tokens)
    with pytest.raises(StorageError, match="its pages repeat"):
        list(requests.list_pages(ObjectKey("bucket", "", "s3://bucket/"), prefix="", is_deep=True))
    assert requests.pages == len(tokens) + 1
