"""A served lake in front of which a guard stands: some tables are given to readers of some views alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

from tests.support.rest_lab import Asked, ScriptedService, error_json, scripted_service
from tests.support.served_lake import Served


@contextmanager
def guarded(server: Served, allowed: Mapping[str, str]) -> Iterator[ScriptedService]:
    """Pass requests on to a server; by paths of tables, the `referenced-by` without which one is refused."""
    with scripted_service() as guard:

        def answer(asked: Asked) -> Any:
            guard.asked.append(asked)
            wanted = allowed.get(asked.path)
            if asked.method == "GET" and wanted is not None and asked.query.get("referenced-by") != wanted:
                return error_json(403, "ForbiddenException", "this table is read through its view alone")
            query = f"?{urlencode(asked.query)}" if asked.query else ""
            body = json.dumps(asked.body).encode() if asked.body else None
            kept = ("content-type", "if-none-match", "idempotency-key", "x-iceberg-access-delegation")
            headers = {name: value for name, value in asked.headers.items() if name in kept}
            reply = server.ask(asked.method, asked.path + query, body, headers=headers)
            tag = {"etag": reply.headers["etag"]} if "etag" in reply.headers else {}
            return reply.code, reply.body, tag

        guard.answer = answer  # type: ignore[method-assign]
        yield guard
