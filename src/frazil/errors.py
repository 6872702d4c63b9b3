"""All errors that frazil raises, and what a caller may do about them.

FrazilError
├─ NotFoundError            (LookupError)
│   ├─ NamespaceNotFoundError
│   ├─ TableNotFoundError
│   ├─ ViewNotFoundError
│   ├─ SnapshotNotFoundError
│   ├─ ReferenceNotFoundError
│   └─ FieldNotFoundError
├─ AlreadyExistsError
│   ├─ NamespaceAlreadyExistsError
│   ├─ TableAlreadyExistsError
│   ├─ ViewAlreadyExistsError
│   └─ FileAlreadyExistsError
├─ InvalidRequestError      (ValueError)  the request cannot be carried out
│   ├─ TextSyntaxError      text that does not parse: types, predicates, SQL
│   │   └─ SqlSyntaxError   a statement
│   ├─ SchemaMismatchError  data or values that do not fit a schema
│   ├─ SchemaChangeError    a schema, spec or order change the specification forbids
│   ├─ NamespaceNotEmptyError the namespace to drop is not empty
│   └─ InvalidPropertyError a table property with an invalid value
├─ CorruptTableError        bytes that break the specification; carries `path` and `heading`
│   ├─ InvalidMetadataError table and view metadata
│   ├─ InvalidManifestError manifests and manifest lists
│   ├─ InvalidPuffinError   Puffin files and deletion vectors
│   └─ InvalidDataFileError data and delete files
├─ UnsupportedError         a format version or feature that frazil does not implement
├─ CommitError
│   ├─ CommitConflictError      another writer committed first; retryable
│   ├─ ConcurrentChangeError    rows this operation read have changed; not retryable
│   └─ CommitStateUnknownError  the outcome is unknown; never delete files
├─ StorageError             (OSError)
│   ├─ MissingFileError         no such file; a NotFoundError too
│   └─ WriteOutcomeUnknownError it is unknown whether a file was written; never delete files
├─ ServiceError             a catalog service is unreachable or failed; nothing changed
├─ AccessDeniedError        a service rejected the credentials or denied access
└─ EngineError              Spark failed; the cause is unwrapped
    └─ CancelledError       a statement was cancelled before its commit; nothing changed

Two class attributes guide callers: `retryable` (may the same request succeed if it is sent again?) and `may_clean_up`
(may files written for this request be deleted?).

The text of an error starts with `Cannot <verb> <object>: <reason with values>`; the context pairs and
the hint follow, a line each. All errors share one constructor and survive pickling.

Names and values in an error may be untrusted: its text escapes control characters that could manipulate a terminal
(`visible`). `message` and `context` hold the original characters.
"""

from __future__ import annotations

import traceback
from typing import ClassVar, Final

from frazil.visible_text import visible

_PACKAGE: Final = __file__.removesuffix("errors.py")


class FrazilError(Exception):
    """Base of every error that frazil raises.

    `message` is the first line, `hint` says what to do, `context` holds further facts (a path, an identifier, a
    snapshot id) in the order given.
    """

    retryable: ClassVar[bool] = False
    may_clean_up: ClassVar[bool] = True

    def __init__(self, message: str, *, hint: str | None = None, **context: object) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.context = context

    def __str__(self) -> str:
        context = {key: str(value) for key, value in self.context.items() if value is not None}
        lines = [visible(self.message, keeps_lines=True)]
        lines += [f"  {key.replace('_', ' ')}: {visible(value)}" for key, value in context.items()]
        if self.hint is not None:
            lines.append(f"Hint: {visible(self.hint, keeps_lines=True)}")
        return "\n".join(lines)

    def _render_traceback_(self) -> list[str]:
        """Return the traceback that IPython shows: the caller's lines, without those inside frazil."""
        steps = traceback.extract_tb(self.__traceback__)
        own = [step for step in steps if not step.filename.startswith(_PACKAGE) and "/IPython/" not in step.filename]
        lines = "".join(traceback.format_list(own)).splitlines()
        return ["Traceback (most recent call last):", *lines, f"{type(self).__name__}: {self}"]

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.message, self.hint, self.context, self.__cause__)


def _rebuild(
    cls: type[FrazilError],
    message: str,
    hint: str | None,
    context: dict[str, object],
    cause: BaseException | None,
) -> FrazilError:
    error = cls(message, hint=hint, **context)
    error.__cause__ = cause
    return error


class NotFoundError(FrazilError, LookupError):
    """The named object does not exist."""


class NamespaceNotFoundError(NotFoundError):
    """No such namespace in the catalog."""


class TableNotFoundError(NotFoundError):
    """No such table in the catalog."""


class ViewNotFoundError(NotFoundError):
    """No such view in the catalog."""


class SnapshotNotFoundError(NotFoundError):
    """The table has no such snapshot."""


class ReferenceNotFoundError(NotFoundError):
    """The table has no such branch or tag."""


class FieldNotFoundError(NotFoundError):
    """The schema has no such column."""


class AlreadyExistsError(FrazilError):
    """An object of that name already exists."""


class NamespaceAlreadyExistsError(AlreadyExistsError):
    """The namespace already exists."""


class TableAlreadyExistsError(AlreadyExistsError):
    """The table already exists."""


class ViewAlreadyExistsError(AlreadyExistsError):
    """The view already exists."""


class FileAlreadyExistsError(AlreadyExistsError):
    """A file of that name already exists, and this call did not create it."""


class InvalidRequestError(FrazilError, ValueError):
    """The request cannot be carried out on any table, or not on this one."""


class TextSyntaxError(InvalidRequestError):
    """Text that does not parse; the message shows the position."""


class SqlSyntaxError(TextSyntaxError):
    """A statement that does not parse; the message shows the position."""


class SchemaMismatchError(InvalidRequestError):
    """Data or a value does not fit the schema."""


class SchemaChangeError(InvalidRequestError):
    """The specification forbids this change of schema, partition spec or sort order."""


class NamespaceNotEmptyError(InvalidRequestError):
    """The namespace to drop is not empty."""


class InvalidPropertyError(InvalidRequestError):
    """A table property has an invalid value."""


class CorruptTableError(FrazilError):
    """Bytes violate the specification.

    The context carries `path` (the file, if known) and `heading` (the specification's heading).
    """

    def at_path(self, path: str) -> CorruptTableError:
        """Return this error with the file's path in its context, unless it has one."""
        if self.context.get("path") is not None:
            return self
        context = {"path": path, **{key: value for key, value in self.context.items() if key != "path"}}
        error = type(self)(self.message, hint=self.hint, **context)
        error.__cause__ = self.__cause__
        return error


class InvalidMetadataError(CorruptTableError):
    """Table or view metadata violates the specification."""


class InvalidManifestError(CorruptTableError):
    """A manifest or manifest list violates the specification."""


class InvalidPuffinError(CorruptTableError):
    """A Puffin file or deletion vector violates the specification."""


class InvalidDataFileError(CorruptTableError):
    """A data or delete file violates the specification."""


class UnsupportedError(FrazilError):
    """A format version or feature that frazil does not implement."""


class CommitError(FrazilError):
    """A commit failed, or its outcome is unknown."""


class CommitConflictError(CommitError):
    """Another writer committed first; the same change may be applied to the new state."""

    retryable = True


class ConcurrentChangeError(CommitError):
    """Another writer changed what this operation read; it must be run again."""

    def in_table(self, name: str) -> ConcurrentChangeError:
        """Return the same error with the table's name in its message."""
        reason = self.message.removeprefix("Cannot commit: ")
        if reason == self.message:
            return type(self)(reason, hint=self.hint, **{"table": name, **self.context})
        return type(self)(f"Cannot commit to {name}: {reason}", hint=self.hint, **self.context)


class CommitStateUnknownError(CommitError):
    """The commit may or may not have succeeded. Files written for it must not be deleted."""

    may_clean_up = False


class StorageError(FrazilError, OSError):
    """Reading or writing storage failed."""

    def __str__(self) -> str:
        return FrazilError.__str__(self)


class MissingFileError(StorageError, NotFoundError):
    """Storage has no such file."""


class WriteOutcomeUnknownError(StorageError):
    """A file may or may not have been written. Read it back to find out; until then, do not delete it."""

    may_clean_up = False


class ServiceError(FrazilError):
    """A catalog service is unreachable or failed; nothing was changed."""


class AccessDeniedError(FrazilError):
    """A service rejected the credentials or denied access."""


class EngineError(FrazilError):
    """Spark failed; `__cause__` is Spark's error."""


class CancelledError(EngineError):
    """A statement was cancelled before its commit; nothing was changed."""
