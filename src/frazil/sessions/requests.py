"""The protocol between Spark's side and Python: what each verb of `spark/java` takes, and what its answer holds.

Java sends a verb and a JSON object (`Request.java`). The verb is the name of a class here in kebab-case, and so are its
keys. A key that is unknown or missing is an error with the verb and the path; `null` stands for a key that is left out
only where the type says so. Frames, expressions and columns are handed over as Java objects beside the JSON, by index.
"""

from __future__ import annotations

import re
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from frazil.errors import EngineError

Json: TypeAlias = dict[str, Any]


class Part(msgspec.Struct, kw_only=True, rename="kebab", forbid_unknown_fields=True):
    """An object of the protocol: a request, a piece of one, or an answer."""


class Request(Part):
    """A call of Python by Spark's side."""


# Pieces


class Expression(Part):
    """An expression that Spark has resolved; `index` is its place among the Java objects."""

    index: int
    names: tuple[str, ...]
    text: str | None = None
    """Its SQL, or None if it holds a subquery or has no text."""


class Assignment(Part):
    """A column and the value that it is set to."""

    column: str
    value: Expression


class Clause(Part):
    """A clause of a MERGE."""

    when: Literal["matched", "not_matched", "not_matched_by_source"]
    do: Literal["update", "delete", "insert"]
    where: Expression | None = None
    values: tuple[Assignment, ...] = ()


class Term(Part):
    """A partition transform; an argument is a column's path or a literal."""

    name: str
    arguments: tuple[tuple[str, ...] | str | int, ...]


class Changes(Part):
    """The window of a change feed, and how its rows are shown."""

    start_version: str | None = None
    end_version: str | None = None
    start_us: int | None = None
    end_us: int | None = None
    has_start: bool = True
    has_end: bool = True
    deduplication: str = "dropcarryovers"
    updates: bool = False


class NamedStream(Part):
    """A table as a stream, as it was when the query named it. Java keeps it and sends it back."""

    schema: Json
    uuid: str
    name: tuple[str, ...]
    branch: str | None
    options: dict[str, str]
    changes: Changes | None


class Limits(Part):
    """How much a batch of a stream may read."""

    files: int | None = None
    rows: int | None = None
    bytes: int | None = None


class TableChange(Part, tag_field="kind"):
    """A change that Spark's ALTER TABLE asks for, tagged with the name of Spark's class."""


class SetProperty(TableChange):
    """SET TBLPROPERTIES, or LOCATION."""

    property: str
    value: str


class RemoveProperty(TableChange):
    """UNSET TBLPROPERTIES."""

    property: str


class ColumnChange(TableChange):
    """A change of the column at a path."""

    column: tuple[str, ...]


class AddColumn(ColumnChange):
    """ADD COLUMN; `position` is the column before it, or "" for the first place."""

    type: str
    nullable: bool
    comment: str | None
    position: str | None
    default: str | None


class RenameColumn(ColumnChange):
    """RENAME COLUMN."""

    to: str


class DeleteColumn(ColumnChange):
    """DROP COLUMN."""

    if_exists: bool


class UpdateColumnType(ColumnChange):
    """ALTER COLUMN … TYPE."""

    type: str


class UpdateColumnNullability(ColumnChange):
    """ALTER COLUMN … SET or DROP NOT NULL."""

    nullable: bool


class UpdateColumnComment(ColumnChange):
    """ALTER COLUMN … COMMENT."""

    comment: str | None


class UpdateColumnPosition(ColumnChange):
    """ALTER COLUMN … FIRST or AFTER."""

    position: str | None


class UpdateColumnDefaultValue(ColumnChange):
    """ALTER COLUMN … SET or DROP DEFAULT."""

    default: str | None


class OtherChange(TableChange):
    """A change that the format has no place for, by the name of Spark's class."""

    name: str


AnyTableChange: TypeAlias = (
    SetProperty
    | RemoveProperty
    | AddColumn
    | RenameColumn
    | DeleteColumn
    | UpdateColumnType
    | UpdateColumnNullability
    | UpdateColumnComment
    | UpdateColumnPosition
    | UpdateColumnDefaultValue
    | OtherChange
)


# What requests are about


class InPlace(Request):
    """A request about names that are looked up in the session's current catalog and namespace."""

    current: str
    namespace: tuple[str, ...]


class OfText(InPlace):
    """A request about a statement's text."""

    text: str


class OfLake(Request):
    """A request to the catalog of a lake: its name in the session, and the id of the attached lake."""

    catalog: str
    lake: str


class OfNamespace(OfLake):
    """A request about a namespace."""

    namespace: tuple[str, ...]


class OfName(OfLake):
    """A request about a name in the lake."""

    name: tuple[str, ...]


class OfTable(OfName):
    """A request about a table that was loaded before; `key` is the one that `load` answered."""

    key: str


# Names and tables


class Source(InPlace):
    """Find the table that the options of `format("iceberg")` name."""

    options: dict[str, str]


class SourceName(Part):
    """The answer to `source`."""

    catalog: str
    namespace: tuple[str, ...]
    name: str


class NoLake(Request):
    """Refuse a name that begins with a catalog which does not exist."""

    name: tuple[str, ...]


class Load(OfName):
    """Load a table, a metadata table or a view, in the state that the options or the query name."""

    options: dict[str, str] = {}
    purpose: Literal["read", "write", "evolve", "stream", "stream-by-format"] = "read"
    version: str | None = None
    micros: int | None = None
    changes: Changes | None = None


class Evolve(OfTable):
    """Load the target of a MERGE WITH SCHEMA EVOLUTION as the merge will leave it."""

    source: str
    assigned: tuple[tuple[str, ...], ...] | None
    """The paths that clauses assign, or None if one of them assigns all columns."""
    aliases: tuple[str, ...]


class Loaded(Part):
    """The answer to `load` and `evolve`: what Spark sees of a table, and the key of its next requests."""

    key: str
    name: str
    schema: str
    hidden: str
    properties: dict[str, str]
    partitions: tuple[Term, ...]
    any_schema: bool
    evolves: bool
    stream: NamedStream | None
    uuid: str | None


class Read(OfTable):
    """Make the plan of a table, with values for some hidden columns; `settings` is a hash of the session's settings."""

    options: dict[str, str]
    hidden: tuple[str, ...]
    settings: int


class TableExists(OfName):
    """Find out whether a name is a table or a view."""


class ListTables(OfNamespace):
    """List the tables of a namespace."""


class ListNamespaces(OfNamespace):
    """List the namespaces in a namespace."""


class Namespace(OfNamespace):
    """Load the properties of a namespace."""


class CreateNamespace(OfNamespace):
    """CREATE NAMESPACE."""

    properties: dict[str, str]


class AlterNamespace(OfNamespace):
    """ALTER NAMESPACE."""

    set: dict[str, str]
    removed: tuple[str, ...]


class DropNamespace(OfNamespace):
    """DROP NAMESPACE."""

    cascade: bool


# Changes. The first Java object is the target's columns, by Catalyst's ids.


class Change(OfTable):
    """A change of a table's rows; `reads` are the keys of the tables whose rows it was computed from."""

    options: dict[str, str]
    reads: tuple[str, ...]


class Write(Change):
    """A write of the rows that are the second Java object."""

    by_name: bool
    any_schema: bool
    evolves: bool
    statement: str | None
    """Shared by the inserts of one statement: each begins where the last one ended."""


class Append(Write):
    """INSERT INTO."""


class Overwrite(Write):
    """INSERT OVERWRITE, REPLACE WHERE."""

    where: Expression


class OverwritePartitions(Write):
    """INSERT OVERWRITE of the partitions that the rows are in."""


class Delete(Change):
    """DELETE FROM."""

    where: Expression


class Update(Change):
    """UPDATE."""

    values: tuple[Assignment, ...]
    where: Expression | None = None


class Merge(Change):
    """MERGE INTO; the second Java object is the source."""

    on: Expression
    clauses: tuple[Clause, ...]


class Truncate(OfTable):
    """TRUNCATE TABLE."""


class Analyze(OfTable):
    """ANALYZE TABLE."""

    partition: bool = False
    noscan: bool = False
    columns: tuple[str, ...] | None = None


class Create(OfName):
    """CREATE or REPLACE TABLE; without a schema the first Java object is the query."""

    partitions: tuple[Term, ...]
    properties: dict[str, str]
    provider: str | None = None
    location: str | None = None
    comment: str | None = None
    table_options: dict[str, str] = {}
    options: dict[str, str] = {}
    schema: str | None = None
    replaces: bool = False
    creates: bool = True
    if_not_exists: bool = False
    reads: tuple[str, ...] = ()


class Alter(OfName):
    """ALTER TABLE."""

    changes: tuple[AnyTableChange, ...]


class Drop(OfName):
    """DROP TABLE."""

    purge: bool = False


class Rename(OfName):
    """ALTER TABLE … RENAME TO."""

    to: tuple[str, ...]


# Functions and procedures


class Functions(OfNamespace):
    """List the functions of a namespace."""


class FindFunction(OfNamespace):
    """Find a function."""

    function: str


class FoundFunction(Part):
    """The answer to `find-function`."""

    function: str
    description: str


class FunctionType(Request):
    """Find the type of a call, given the types of its arguments as a schema."""

    function: str
    types: str


class Function(Request):
    """Make the expression of a call; the Java objects are its arguments."""

    function: str
    types: str


class Procedures(OfNamespace):
    """List the procedures of a namespace."""


class Procedure(OfName):
    """Find a procedure."""


class Parameter(Part):
    """A parameter of a procedure."""

    name: str
    type: str
    doc: str
    required: bool


class FoundProcedure(Part):
    """The answer to `procedure`."""

    name: str
    doc: str
    parameters: tuple[Parameter, ...]


class OfCall(OfText):
    """A request about a call; `text` is the procedure's name."""

    catalog: str
    lake: str
    values: dict[str, Any]


class CalledTable(OfCall):
    """Find the table that a call is about, by the parts of its name."""


class Call(OfCall):
    """CALL."""


# Statements


class Parse(OfText):
    """Parse a statement that a lake may answer itself."""


class Parsed(Part):
    """The answer to `parse`: the key of the statement, its columns, and the table that it changes."""

    key: str
    columns: str
    label: str
    catalog: str | None = None
    name: tuple[str, ...] | None = None


class Script(OfText):
    """Rewrite a SQL script so that Spark's parser takes it."""


class Translate(OfText):
    """Rewrite a statement that Spark's parser refused in older syntax."""


class Statement(InPlace):
    """Run a parsed statement."""

    key: str


# Streams that are read. `key` is the one that `stream-open` answered.


class StreamCheck(OfLake):
    """Check a stream that is named by its format; the answer is the stream with the session's settings."""

    stream: NamedStream


class StreamOpen(OfLake):
    """Start a query; `begun` and `table` are files of its checkpoint, or None for a new one."""

    stream: NamedStream
    checkpoint: str
    begun: str | None
    table: str | None


class Opened(Part):
    """The answer to `stream-open`."""

    key: str
    begun: str
    table: str
    limits: Limits
    guards: bool


class StreamAdvance(OfTable):
    """Find how far the next batch may read."""

    limits: Limits
    start: str | None


class Advanced(Part):
    """The answer to `stream-advance`, and to `stream-latest` and `stream-lag` in the same trigger."""

    offset: str | None
    latest: str | None
    lag: dict[str, str]


class StreamBatch(OfTable):
    """Return the rows between two offsets."""

    start: str | None
    end: str | None


class StreamLatest(OfTable):
    """Find the newest offset."""


class StreamLag(OfTable):
    """Count what is left to read."""

    start: str | None


class StreamEnd(OfTable):
    """End the query where the table is now."""


class StreamCommit(OfTable):
    """Note that a batch is done; sent only if a guard follows the stream."""

    end: str | None


class StreamStop(OfTable):
    """End the query."""


# Streams that are written


class OfSink(OfName):
    """A request about a stream that writes to a table, which `uuid` identifies."""

    uuid: str | None


class SinkOpen(OfSink):
    """Start a query; options are known if the sink is named by its format."""

    columns: str
    options: dict[str, str] | None


class SinkBatch(OfSink):
    """Write a batch, whose rows are the first Java object."""

    mode: str
    batch: int
    query: str
    input: str | None
    options: dict[str, str]


R = TypeVar("R", bound=Part)


def verb_of(request: type[Request]) -> str:
    """Return the verb of a request."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", request.__name__).lower()


def decode(verb: str, request: type[R], text: str) -> R:
    """Decode a request; refuse unknown keys, missing ones and other types."""
    try:
        return msgspec.json.decode(text, type=request)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise EngineError(
            f"Cannot answer the request {verb!r}: {error}",
            hint="The JVM runs another version of frazil than Python: restart both.",
        ) from error


def encode(answer: object) -> str:
    """Encode an answer."""
    return msgspec.json.encode(answer).decode()
