"""What Spark raises, as frazil's errors: the cause first, without a hundred lines of Java.

A task that fails says why at the bottom of several wrappings. Errors that frazil's own code raised there, in a Python
worker or by `raise_error` in a generated expression, come back as what they were; a file that Spark could not read is
an error about that file, with its table and snapshot; everything else is an EngineError whose first line is the
innermost reason.

`file_mark` is how a table and a snapshot travel with a file's path, so that Spark's own errors name them where nothing
of frazil runs: on executors, and in a frame that a user runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, ParseException, PySparkException

from frazil import errors
from frazil.errors import (
    CorruptTableError,
    EngineError,
    FrazilError,
    InvalidDataFileError,
    InvalidRequestError,
    MissingFileError,
    SchemaMismatchError,
)

_MAX_REASON = 1000
_RAISED = "[USER_RAISED_EXCEPTION] "
_OURS = re.compile(r"^frazil\.errors\.(\w+): (.*)$", re.MULTILINE)
_CAUSE = re.compile(r"^Caused by: (.*)$", re.MULTILINE)
_TOLD = re.compile(r"^  ([a-z][a-z ]*): (.*)$")
_HINT = (
    "restore-the-file-or-read-another-snapshot;check()-lists-what-is-missing;"
    "files-without-field-ids-need-schema.name-mapping.default"
)
_ENDED = re.compile(r"\bExpiredToken|Signature not valid in the specified time frame")
_ENDED_HINT = (
    "Run it again, with new credentials; for a longer job, have the catalog service vend credentials that last longer."
)
_FAILED_FILE = re.compile(r"FAILED_READ_FILE\.(\w+)\]")
_MISSING = re.compile(r"java\.(io\.FileNotFoundException|nio\.file\.NoSuchFileException)\b")
"""What Java says of a file that is not there: Spark knows the first; Hadoop says the second where it goes meanwhile."""
_MAPPING_HINT = (
    "Set the table property schema.name-mapping.default, or read with scan.to_arrow(), which goes by the order of "
    "columns."
)
FILE_HINT = (
    "Where the snapshot was expired meanwhile, make the DataFrame anew. Else restore the file, or read another "
    "snapshot; the table's check() lists all that is missing."
)


def file_mark(table: str, snapshot_id: int | None) -> str:
    """Return what stands behind the path of a file of a table in errors of Spark's."""
    return f"table={table}&snapshot={snapshot_id}&hint={_HINT}"


def name_error(error: FrazilError, table: str, snapshot_id: int | None) -> FrazilError:
    """Return an error that says which table and snapshot it is about, and of a lost or bad file what to do."""
    error.context.setdefault("table", table)
    error.context.setdefault("snapshot", snapshot_id)
    if error.hint is None and isinstance(error, CorruptTableError | MissingFileError):
        error.hint = FILE_HINT
    return error


@contextmanager
def naming(table: str, snapshot_id: int | None) -> Iterator[None]:
    """Let errors say which table and snapshot they are about."""
    try:
        yield
    except FrazilError as error:
        name_error(error, table, snapshot_id)
        raise


@contextmanager
def engine_errors(what: str) -> Iterator[None]:
    """Turn what Spark raises into an error of frazil's; `what` goes after `Cannot`."""
    try:
        yield
    except FrazilError:
        raise
    except (PySparkException, Py4JError) as error:
        raise _translate(what, error) from error


def _translate(what: str, error: Exception) -> FrazilError:
    text = str(error)
    head = text.split("\n\nJVM stacktrace:", maxsplit=1)[0].split("JVM stacktrace:", maxsplit=1)[0].strip()
    ours = list(_OURS.finditer(text))
    if ours:
        error_class = getattr(errors, ours[-1].group(1), EngineError)
        known = error_class if isinstance(error_class, type) and issubclass(error_class, FrazilError) else EngineError
        return _as_it_was(known, ours[-1].group(2).strip(), text[ours[-1].end() + 1 :])
    if _ENDED.search(text) is not None:
        return EngineError(f"Cannot {what}: the keys for its files ended while Spark worked", hint=_ENDED_HINT)
    about_file = _about_file(text)
    if about_file is not None:
        return about_file
    raised = head.partition(_RAISED)[2]
    if raised.startswith("Cannot "):
        message, _, state = raised.rpartition(" SQLSTATE: ")
        return SchemaMismatchError((message if message and state.isalnum() else raised).strip())
    if isinstance(error, AnalysisException | ParseException):
        return InvalidRequestError(f"Cannot {what}: {head[:_MAX_REASON]}")
    causes = _CAUSE.findall(text)
    reason = head if not isinstance(error, Py4JError) or not causes else causes[-1]
    lines = [line for line in reason.strip().splitlines() if not line.lstrip().startswith("at ")]
    excerpt = "\n".join(lines)[:_MAX_REASON] or type(error).__name__
    return EngineError(f"Cannot {what}: Spark failed: {excerpt}")


def _as_it_was(cls: type[FrazilError], message: str, rest: str) -> FrazilError:
    """Return an error with what its text told below the message."""
    context: dict[str, object] = {}
    hint = None
    for line in rest.splitlines():
        found = _TOLD.match(line)
        if found is not None:
            context[found[1].replace(" ", "_")] = found[2]
        elif line.startswith("Hint: "):
            hint = line.removeprefix("Hint: ")
            break
        else:
            break
    return cls(message, hint=hint, **context)


def _about_file(text: str) -> FrazilError | None:
    """Return the error about a file that Spark could not read, None where the text tells of none."""
    failed = _FAILED_FILE.search(text)
    if failed is None:
        return None
    address = text[failed.end() :].partition("&hint=")[0]
    head, mark, rest = address.rpartition("#table=")
    table, _, snapshot = rest.rpartition("&snapshot=")
    if not mark or not table or not head.strip():
        return None
    path, causes = unquote(head.rsplit(maxsplit=1)[-1]), _CAUSE.findall(text)
    is_missing = failed[1] == "FILE_NOT_EXIST" or (bool(causes) and _MISSING.match(causes[-1]) is not None)
    reason = "there is no such file" if is_missing else causes[-1][:_MAX_REASON] if causes else "Spark cannot read it"
    error_class = MissingFileError if is_missing else InvalidDataFileError
    has_no_ids = "contain any field Ids" in reason
    return error_class(
        f"Cannot read data file {path}: {'its columns have no field ids' if has_no_ids else reason}",
        hint=_MAPPING_HINT if has_no_ids else FILE_HINT,
        table=unquote(table),
        snapshot=snapshot,
    )
