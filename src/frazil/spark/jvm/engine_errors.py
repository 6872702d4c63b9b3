"""Translation of Spark's errors into frazil's, with the root cause first and no Java stack trace.

Spark wraps the reason of a failed task several times. Errors that frazil raised in a task, in a Python worker or by
`raise_error` in an expression, are restored to their class. A file that Spark could not read becomes an error about
that file, with its table and snapshot. Everything else becomes an EngineError whose first line is the innermost reason.

`file_mark` appends a table and a snapshot to a file's path, so that Spark's errors name them even where no code of
frazil runs: on executors, and in a frame that a user runs.
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
_CONTEXT_LINE = re.compile(r"^  ([a-z][a-z ]*): (.*)$")
_HINT = (
    "restore-the-file-or-read-another-snapshot;check()-lists-what-is-missing;"
    "files-without-field-ids-need-schema.name-mapping.default"
)
_EXPIRED = re.compile(r"\bExpiredToken|Signature not valid in the specified time frame")
_EXPIRED_HINT = (
    "Run it again, with new credentials; for a longer job, have the catalog service vend credentials that last longer."
)
_FAILED_FILE = re.compile(r"FAILED_READ_FILE\.(\w+)\]")
_MISSING = re.compile(r"java\.(io\.FileNotFoundException|nio\.file\.NoSuchFileException)\b")
"""Java's errors for missing files. Spark handles the first; Hadoop raises the second if a file vanishes meanwhile."""
_MAPPING_HINT = (
    "Set the table property schema.name-mapping.default, or read with scan.to_arrow(), which uses the order of columns."
)
FILE_HINT = (
    "If the snapshot was expired meanwhile, create the DataFrame again. Otherwise restore the file, or read another "
    "snapshot; the table's check() lists all missing files."
)


def file_mark(table: str, snapshot_id: int | None) -> str:
    """Return the suffix that names a table and a snapshot behind a file's path in Spark's errors."""
    return f"table={table}&snapshot={snapshot_id}&hint={_HINT}"


def name_error(error: FrazilError, table: str, snapshot_id: int | None) -> FrazilError:
    """Add the table and snapshot to the context of an error, and a hint if a file is missing or corrupt; return it."""
    error.context.setdefault("table", table)
    error.context.setdefault("snapshot", snapshot_id)
    if error.hint is None and isinstance(error, CorruptTableError | MissingFileError):
        error.hint = FILE_HINT
    return error


@contextmanager
def naming(table: str, snapshot_id: int | None) -> Iterator[None]:
    """Add the table and snapshot to the context of errors."""
    try:
        yield
    except FrazilError as error:
        name_error(error, table, snapshot_id)
        raise


@contextmanager
def engine_errors(what: str) -> Iterator[None]:
    """Translate Spark's errors into frazil's; `what` follows `Cannot` in the message."""
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
        known_class = (
            error_class if isinstance(error_class, type) and issubclass(error_class, FrazilError) else EngineError
        )
        return _restore_error(known_class, ours[-1].group(2).strip(), text[ours[-1].end() + 1 :])
    if _EXPIRED.search(text) is not None:
        return EngineError(
            f"Cannot {what}: the credentials for its files expired while Spark was running", hint=_EXPIRED_HINT
        )
    file_error = _file_error(text)
    if file_error is not None:
        return file_error
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


def _restore_error(cls: type[FrazilError], message: str, rest: str) -> FrazilError:
    """Rebuild an error from its message and the context and hint lines that follow."""
    context: dict[str, object] = {}
    hint = None
    for line in rest.splitlines():
        match = _CONTEXT_LINE.match(line)
        if match is not None:
            context[match[1].replace(" ", "_")] = match[2]
        elif line.startswith("Hint: "):
            hint = line.removeprefix("Hint: ")
            break
        else:
            break
    return cls(message, hint=hint, **context)


def _file_error(text: str) -> FrazilError | None:
    """Return the error for a data file that Spark could not read, or None if the text is about something else."""
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
