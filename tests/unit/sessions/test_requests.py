"""The protocol between Spark's side and Python: what the Java sources send is what `sessions/requests.py` declares."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

import frazil
from frazil.errors import EngineError
from frazil.sessions import requests as r
from frazil.sessions.answers import HANDLERS, REQUESTS

JAVA = Path(frazil.__file__).parent / "spark" / "java"
METHOD = re.compile(r"^  (?:(?:\w+ )*(?:[\w.\[\]]+ ))?(\w+)\(([^;{]*)\)[^;{]*\{$(.*?)^  \}$", re.M | re.S)
WITH, PUT = re.compile(r'\.with\(\s*"([\w-]+)"'), re.compile(r'\.put\(\s*"([\w-]+)"')
NESTED: dict[str, set[type[msgspec.Struct]]] = {
    "expression": {r.Expression},
    "assignments": {r.Assignment},
    "clauses": {r.Clause},
    "term": {r.Term},
    "limits": {r.Limits},
    "changes": {r.Changes},
    "change": set(r.ColumnChange.__subclasses__()) | {r.SetProperty, r.RemoveProperty},
    "other": {r.OtherChange},
}
"""Methods that make a piece of a request, and the pieces."""


@dataclass(frozen=True)
class Method:
    """A Java method."""

    file: str
    name: str
    parameters: str
    body: str

    @property
    def keys(self) -> set[str]:
        """The keys that it adds to a request."""
        return set(WITH.findall(self.body))

    @property
    def calls(self) -> set[str]:
        return set(re.findall(r"\b(\w+)\(", self.body))

    @property
    def is_maker(self) -> bool:
        """Whether it makes requests of a verb that its caller names."""
        return self.parameters.startswith("String verb")

    @property
    def takes_request(self) -> bool:
        return bool(re.search(r"\bRequest request\b", self.parameters))


def methods() -> Iterator[Method]:
    for path in sorted(JAVA.rglob("*.java")):
        for name, parameters, body in METHOD.findall(path.read_text("utf-8")):
            yield Method(path.stem, name, " ".join(parameters.split()), body)


METHODS = list(methods())
MAKERS = {method.name for method in METHODS if method.is_maker} - {"call", "align", "ask"}


def keys_of_makers(name: str) -> set[str]:
    """Return the keys that a maker adds, with those of the makers that it calls."""
    if name == "Request":
        return set()
    own = [method for method in METHODS if method.name == name and method.is_maker]
    keys: set[str] = set().union(*(method.keys for method in own))
    inner = {called for method in own for called in method.calls & (MAKERS | {"Request"}) if called != name}
    return keys.union(*map(keys_of_makers, inner))


def keys_of_helpers(method: Method) -> set[str]:
    """Return the keys that are added by the methods of the same file that a method hands its request to."""
    helpers = [
        other
        for other in METHODS
        if other.file == method.file and other.takes_request and other.name in method.calls and other != method
    ]
    keys: set[str] = set()
    return keys.union(*(helper.keys | keys_of_helpers(helper) for helper in helpers))


def sent() -> dict[str, set[str]]:
    """Return the keys that the Java sources send, by verb."""
    keys: dict[str, set[str]] = {}
    site = re.compile(rf'\b({"|".join([*sorted(MAKERS), "Request"])})\(\s*"([\w-]+)"')
    for method in METHODS:
        makers = site.findall(method.body)
        for maker, verb in makers:
            known = keys.setdefault(verb, set())
            known |= keys_of_makers(maker) | keys_of_helpers(method) | method.keys
    return keys


def declared(struct: type[msgspec.Struct]) -> dict[str, bool]:
    """Return the keys of a struct, and whether each is required."""
    keys = {field.encode_name: field.required for field in msgspec.structs.fields(struct)}
    if struct.__struct_config__.tag is not None:
        keys["kind"] = True
    return keys


def test_java_sends_the_verbs_that_python_handles() -> None:
    assert sent().keys() == REQUESTS.keys()


@pytest.mark.parametrize("verb", REQUESTS)
def test_java_sends_the_declared_keys_of_requests(verb: str) -> None:
    keys, known = sent()[verb], declared(REQUESTS[verb])
    assert keys - known.keys() == set(), "Java sends keys that the request does not declare"
    assert {key for key, is_required in known.items() if is_required} - keys == set(), "Java never sends these"
    assert known.keys() - keys == set(), "no Java sends these optional keys"


@pytest.mark.parametrize("name", NESTED)
def test_java_sends_the_declared_keys_of_nested_records(name: str) -> None:
    keys = {key for method in METHODS if method.name == name for key in PUT.findall(method.body)}
    known: dict[str, bool] = {}
    for struct in NESTED[name]:
        known |= declared(struct)
    assert keys == known.keys()


def test_every_request_has_a_handler() -> None:
    def leaves(kind: type[r.Request]) -> Iterator[type[r.Request]]:
        yield from (
            [kind] if not kind.__subclasses__() else (one for sub in kind.__subclasses__() for one in leaves(sub))
        )

    assert set(leaves(r.Request)) == set(HANDLERS)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{}", "Object missing required field `catalog`"),
        ('{"catalog":"l","lake":"1","name":["t"],"purpose":"reed"}', r"Invalid enum value 'reed' - at `\$.purpose`"),
        ('{"catalog":"l","lake":"1","name":["t"],"nme":1}', "Object contains unknown field `nme`"),
        ('{"catalog":"l","lake":"1","name":["t",2]}', r"Expected `str`, got `int` - at `\$.name\[1\]`"),
        ('{"catalog":"l","lake":"1","name":null}', r"Expected `array`, got `null` - at `\$.name`"),
        ('{"catalog":"l"', "Input data was truncated"),
        ('{"catalog":"\ud800"}', "surrogates not allowed"),
    ],
)
def test_malformed_request_is_refused_with_verb_and_path(text: str, reason: str) -> None:
    with pytest.raises(EngineError, match=rf"Cannot answer the request 'load': .*{reason}"):
        r.decode("load", r.Load, text)


def test_missing_optional_key_is_null() -> None:
    text = '{"catalog":"l","lake":"1","name":["db","t"],"version":null,"micros":null,"changes":null}'
    assert r.decode("load", r.Load, text) == r.Load(catalog="l", lake="1", name=("db", "t"))


def test_alter_table_changes_are_distinguished_by_kind() -> None:
    changes = '[{"kind":"RenameColumn","column":["a","b"],"to":"c"},{"kind":"OtherChange","name":"ClusterBy"}]'
    request = r.decode("alter", r.Alter, f'{{"catalog":"l","lake":"1","name":["t"],"changes":{changes}}}')
    assert request.changes == (r.RenameColumn(column=("a", "b"), to="c"), r.OtherChange(name="ClusterBy"))
    changes = '[{"kind":"RenameColumn","column":["a"],"type":"int"}]'
    with pytest.raises(EngineError, match=r"unknown field `type` - at `\$.changes\[0\]`"):
        r.decode("alter", r.Alter, f'{{"catalog":"l","lake":"1","name":["t"],"changes":{changes}}}')
