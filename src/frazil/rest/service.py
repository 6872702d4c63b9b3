"""The configuration of a service: its operations, and their paths.

`GET /v1/config` is requested first. Its overrides may name another address and a prefix; `endpoints` lists the
operations. A service that lists none has the oldest ones: namespaces, tables, register, rename, metrics and commits of
several tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote

from frazil.catalog.names import Identifier, Namespace
from frazil.codec.json_fields import JsonObject
from frazil.codec.json_text import parse_json
from frazil.errors import CorruptTableError, InvalidRequestError, ServiceError, UnsupportedError
from frazil.rest import settings as names
from frazil.rest.settings import Settings
from frazil.storage.http import Answer

HEADING: Final = "REST catalog protocol"
REFERENCED_BY: Final = "referenced-by"
_DEFAULT_SEPARATOR: Final = "%1F"
_N: Final = "/v1/{prefix}/namespaces/{namespace}"
_T: Final = f"{_N}/tables/{{table}}"
_V: Final = f"{_N}/views/{{view}}"

CREATE_TABLE: Final = f"POST {_N}/tables"
TABLE_EXISTS: Final = f"HEAD {_T}"
NAMESPACE_EXISTS: Final = f"HEAD {_N}"
UPDATE_NAMESPACE: Final = f"POST {_N}/properties"
RENAME_TABLE: Final = "POST /v1/{prefix}/tables/rename"
REGISTER: Final = f"POST {_N}/register"
UNREGISTER: Final = f"POST {_T}/unregister"
REPORT_METRICS: Final = f"POST {_T}/metrics"
COMMIT_MANY: Final = "POST /v1/{prefix}/transactions/commit"
CREDENTIALS: Final = f"GET {_T}/credentials"
SIGN: Final = f"POST {_T}/sign"
PLAN: Final = f"POST {_T}/plan"
FETCH_PLAN: Final = f"GET {_T}/plan/{{plan-id}}"
CANCEL_PLAN: Final = f"DELETE {_T}/plan/{{plan-id}}"
FETCH_TASKS: Final = f"POST {_T}/tasks"
LIST_VIEWS: Final = f"GET {_N}/views"
LOAD_VIEW: Final = f"GET {_V}"
CREATE_VIEW: Final = f"POST {_N}/views"
REPLACE_VIEW: Final = f"POST {_V}"
DROP_VIEW: Final = f"DELETE {_V}"
VIEW_EXISTS: Final = f"HEAD {_V}"
RENAME_VIEW: Final = "POST /v1/{prefix}/views/rename"
REGISTER_VIEW: Final = f"POST {_N}/register-view"

_ASSUMED: Final = frozenset(
    {
        "GET /v1/{prefix}/namespaces", f"GET {_N}", "POST /v1/{prefix}/namespaces", UPDATE_NAMESPACE, f"DELETE {_N}",
        f"GET {_N}/tables", f"GET {_T}", CREATE_TABLE, f"POST {_T}", f"DELETE {_T}", RENAME_TABLE, REGISTER,
        REPORT_METRICS, COMMIT_MANY,
    }
)  # fmt: skip
_VIEWS: Final = frozenset({LIST_VIEWS, LOAD_VIEW, CREATE_VIEW, REPLACE_VIEW, DROP_VIEW, RENAME_VIEW})


@dataclass(frozen=True, slots=True)
class Service:
    """The address and the operations of a service."""

    base: str
    """The address, without a trailing slash."""
    prefix: str
    separator: str
    """The separator of namespace parts, escaped for a path."""
    endpoints: frozenset[str]

    def has(self, endpoint: str) -> bool:
        """Return whether the service has an operation."""
        return endpoint in self.endpoints

    def check(self, endpoint: str, what: str) -> None:
        """Refuse an operation that the service does not have."""
        if endpoint not in self.endpoints:
            raise UnsupportedError(f"Cannot {what}: the catalog service at {self.base} does not have this operation")

    @property
    def root(self) -> str:
        """The address of everything but the configuration."""
        return f"{self.base}/v1/{self.prefix}" if self.prefix else f"{self.base}/v1"

    @property
    def namespaces(self) -> str:
        """The address of all namespaces."""
        return f"{self.root}/namespaces"

    def namespace(self, namespace: Namespace) -> str:
        """Return the address of a namespace."""
        return f"{self.namespaces}/{self.separator.join(escape(step) for step in namespace)}"

    def table(self, identifier: Identifier) -> str:
        """Return the address of a table."""
        return f"{self.namespace(identifier[:-1])}/tables/{escape(identifier[-1])}"

    def view(self, identifier: Identifier) -> str:
        """Return the address of a view."""
        return f"{self.namespace(identifier[:-1])}/views/{escape(identifier[-1])}"

    def parent_text(self, namespace: Namespace) -> str:
        """Return a namespace as text for queries."""
        return unquote(self.separator).join(namespace)

    def reader_query(self, views: Sequence[Identifier]) -> dict[str, str]:
        """Return the query with the views through which something is read, the outermost first; empty without views.

        Names are separated by commas, so commas inside names are escaped before the whole text is.
        """
        texts = (self.parent_text(view).replace("%", "%25").replace(",", "%2C") for view in views)
        return {REFERENCED_BY: ",".join(texts)} if views else {}


def identifier_json(identifier: Identifier) -> dict[str, Any]:
    """Return a name as JSON for requests."""
    return {"namespace": list(identifier[:-1]), "name": identifier[-1]}


def escape(text: str) -> str:
    """Escape a name as a path segment; refuse one that would lead to another segment."""
    if text in (".", ".."):
        raise InvalidRequestError(
            f"Cannot use the name {text!r} at a catalog service: in a URL it is a relative path segment"
        )
    return quote(text, safe="-_.~")


def read_service(base: str, settings: Settings, reply: Answer) -> tuple[Service, Settings]:
    """Parse a service's configuration; return it with the settings including its defaults and overrides."""
    answer = read_object(reply, "the service's configuration")
    merged = settings.merged(_texts(answer, "defaults"), _texts(answer, "overrides"))
    listed = answer.raw("endpoints", None)
    endpoints = _ASSUMED | (_VIEWS if merged.truth(names.VIEWS_SUPPORTED, default=False) else frozenset())
    if isinstance(listed, list) and listed:
        endpoints = frozenset(" ".join(item.split()) for item in listed if isinstance(item, str))
    uri = _texts(answer, "overrides").get(names.URI, base).rstrip("/")
    # The prefix is used unescaped: some services have slashes in it.
    prefix = merged.get(names.PREFIX, "").strip("/")
    lifetime = answer.raw("idempotency-key-lifetime", None)
    if isinstance(lifetime, str):
        merged = merged.merged({}, {names.IDEMPOTENCY_LIFETIME: lifetime})
    return Service(uri.removesuffix("/v1"), prefix, merged.get(names.SEPARATOR, _DEFAULT_SEPARATOR), endpoints), merged


def _texts(answer: JsonObject, field: str) -> dict[str, str]:
    """Return a map of texts; some services omit it or send nulls in it."""
    mapping: Any = answer.raw(field, None)
    if not isinstance(mapping, Mapping):
        return {}
    return {name: value for name, value in mapping.items() if isinstance(name, str) and isinstance(value, str)}


def read_object(reply: Answer, what: str) -> JsonObject:
    """Return the JSON object of a response."""
    try:
        return JsonObject(parse_json(reply.body, where=what, heading=HEADING), where=what, heading=HEADING)
    except CorruptTableError as problem:
        raise ServiceError(
            f"Cannot read {what}: {problem.message}", hint="Is that the address of a catalog service?"
        ) from problem
