"""Deletes objects: one by one, or a thousand per request if the store can.

Missing objects are ignored. If a bulk request, or one object of it, is refused, the objects are deleted one by one,
which
gives each its own error.
"""

from __future__ import annotations

import base64
import hashlib
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from typing import Final
from xml.sax.saxutils import escape as escape_xml

from frazil.errors import StorageError
from frazil.storage.object_requests import (
    NO_BUCKET,
    ObjectKey,
    ObjectRequests,
    child_text,
    children,
    error_of,
    parse_xml,
)

MAX_BULK: Final = 1000
"""The maximum number of objects in one bulk request."""
_MAX_ANSWER_BYTES: Final = 1 << 24
_NOT_IN_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def delete_object(requests: ObjectRequests, key: ObjectKey) -> None:
    """Delete an object; ignore a missing one, fail if the bucket does not exist."""
    outcome = requests.send("DELETE", key)
    if outcome.is_success:
        return
    if outcome.answer is None or outcome.status != 404:
        raise requests.failed_write("delete", key, outcome)
    if error_of(outcome.answer)[0] in NO_BUCKET:
        raise requests.refused("delete", key, outcome)


def delete_objects(requests: ObjectRequests, places: Iterable[ObjectKey]) -> dict[str, StorageError]:
    """Delete as many objects as possible; return the errors of the others by location."""
    failed: dict[str, StorageError] = {}
    batches: dict[str, list[ObjectKey]] = {}
    for key in places:
        batch = batches.setdefault(key.bucket, [])
        batch.append(key)
        if len(batch) == MAX_BULK:
            failed |= _delete_batch(requests, batches.pop(key.bucket))
    for batch in batches.values():
        failed |= _delete_batch(requests, batch)
    return failed


def _delete_batch(requests: ObjectRequests, places: list[ObjectKey]) -> dict[str, StorageError]:
    failed: dict[str, StorageError] = {}
    singly: list[ObjectKey] = []
    in_bulk: list[ObjectKey] = []
    for key in places:
        is_fit = requests.service.has_bulk_delete and not _NOT_IN_XML.search(key.key)
        (in_bulk if is_fit else singly).append(key)
    if len(in_bulk) > 1:
        in_bulk = _delete_in_bulk(requests, in_bulk, failed)
    for key in [*singly, *in_bulk]:
        try:
            delete_object(requests, key)
        except StorageError as error:
            failed[key.location] = error
    return failed


def _delete_in_bulk(
    requests: ObjectRequests, places: list[ObjectKey], failed: dict[str, StorageError]
) -> list[ObjectKey]:
    """Delete objects of one bucket by one request; return those that remain."""
    names = "".join(f"<Object><Key>{_xml_text(key.key)}</Key></Object>" for key in places)
    body = f"<Delete><Quiet>true</Quiet>{names}</Delete>".encode()
    digest = base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
    outcome = requests.send(
        "POST",
        ObjectKey(places[0].bucket, "", places[0].location),
        query=(("delete", ""),),
        headers={"content-md5": digest, "content-type": "application/xml"},
        body=body,
        max_bytes=_MAX_ANSWER_BYTES,
    )
    answer = outcome.answer
    if answer is None or outcome.may_have_happened:
        # The server is unreachable or failing; a thousand more requests would not help.
        failed |= {key.location: requests.failed_write("delete", key, outcome) for key in places}
        return []
    if not answer.is_success or not answer.is_read:
        return places
    try:
        root = parse_xml(answer.body)
    except ET.ParseError:
        return places
    remaining = {child_text(child, "Key"): child_text(child, "Code") for child in children(root, "Error")}
    return [key for key in places if remaining.get(key.key, "NoSuchKey") != "NoSuchKey"]


def _xml_text(text: str) -> str:
    # XML parsers would normalize these characters.
    return escape_xml(text, {"\t": "&#9;", "\n": "&#10;", "\r": "&#13;"})
