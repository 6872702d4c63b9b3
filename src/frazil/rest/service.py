"""What a service says about itself: its configuration, which operations it has, and the paths they are at.

`GET /v1/config` comes first. Its overrides may name another address and a prefix; `endpoints` lists the operations, and
a service that lists none has the old ones: namespaces, tables, register, rename, metrics and commits of several tables.
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
    """Where a service is, and what it has."""

    base: str
    """The address, without a slash at its end."""
    prefix: str
    separator: str
    """What stands between the parts of a namespace, escaped as in a path."""
    endpoints: frozenset[str]

    def has(self, endpoint: str) -> bool:
        """Return whether the service has an operation."""
        return endpoint in self.endpoints

    def check(self, endpoint: str, what: str) -> None:
        """Refuse an operation that the service does not have."""
        if endpoint not in self.endpoints:
            raise UnsupportedError(f"Cannot {what}: the catalog service at {self.base} has no such operation")

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
        """Return a namespace as one text, as queries have it."""
        return unquote(self.separator).join(namespace)

    def reader_query(self, views: Sequence[Identifier]) -> dict[str, str]:
        """Return the query that says by which views something is read, the outermost first; none without a view.

        Commas stand between names, so one inside of a name is escaped before the whole is.
        """
        texts = (self.parent_text(view).replace("%", "%25").replace(",", "%2C") for view in views)
        return {REFERENCED_BY: ",".join(texts)} if views else {}


def identifier_json(identifier: Identifier) -> dict[str, Any]:
    """Return a name as requests have it."""
    return {"namespace": list(identifier[:-1]), "name": identifier[-1]}


def escape(text: str) -> str:
    """Return a name as a part of a path; one that leads to another part is refused."""
    if text in (".", ".."):
        raise InvalidRequestError(f"Cannot use the name {text!r} at a catalog service: in an address it means a step")
    return quote(text, safe="-_.~")


def read_service(base: str, settings: Settings, reply: Answer) -> tuple[Service, Settings]:
    """Return what a service's configuration says, and the settings with its defaults and overrides."""
    answer = read_object(reply, "the service's configuration")
    merged = settings.merged(_texts(answer, "defaults"), _texts(answer, "overrides"))
    found = answer.raw("endpoints", None)
    endpoints = _ASSUMED | (_VIEWS if merged.truth(names.VIEWS_SUPPORTED, default=False) else frozenset())
    if isinstance(found, list) and found:
        endpoints = frozenset(" ".join(item.split()) for item in found if isinstance(item, str))
    uri = _texts(answer, "overrides").get(names.URI, base).rstrip("/")
    # The prefix is a part of the path as it is: some services have slashes in it.
    prefix = merged.get(names.PREFIX, "").strip("/")
    lifetime = answer.raw("idempotency-key-lifetime", None)
    if isinstance(lifetime, str):
        merged = merged.merged({}, {names.IDEMPOTENCY_LIFETIME: lifetime})
    return Service(uri.removesuffix("/v1"), prefix, merged.get(names.SEPARATOR, _DEFAULT_SEPARATOR), endpoints), merged


def _texts(answer: JsonObject, field: str) -> dict[str, str]:
    """Return a map of texts; some services leave it out, or have null in it."""
    found: Any = answer.raw(field, None)
    if not isinstance(found, Mapping):
        return {}
    return {name: value for name, value in found.items() if isinstance(name, str) and isinstance(value, str)}


def read_object(reply: Answer, what: str) -> JsonObject:
    """Return the JSON object of an answer."""
    try:
        return JsonObject(parse_json(reply.body, where=what, heading=HEADING), where=what, heading=HEADING)
    except CorruptTableError as problem:
        raise ServiceError(
            f"Cannot read {what}: {problem.message}", hint="Is that the address of a catalog service?"
        ) from problem
