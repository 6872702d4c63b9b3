"""Every error frazil raises, and what a caller may do about it.

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
├─ InvalidRequestError      (ValueError)  the caller asked for something that cannot be
│   ├─ TextSyntaxError      text that does not parse: types, predicates, SQL
│   │   └─ SqlSyntaxError   a statement
│   ├─ SchemaMismatchError  data or values that do not fit a schema
│   ├─ SchemaChangeError    a schema, spec or order change the specification forbids
│   ├─ NamespaceNotEmptyError a namespace that is to be dropped holds something
│   └─ InvalidPropertyError a table property whose value cannot be used
├─ CorruptTableError        bytes that break the specification; carries `path` and `heading`
│   ├─ InvalidMetadataError table and view metadata
│   ├─ InvalidManifestError manifests and manifest lists
│   ├─ InvalidPuffinError   Puffin files and deletion vectors
│   └─ InvalidDataFileError data and delete files
├─ UnsupportedError         a format version or a feature that is not built
├─ CommitError
│   ├─ CommitConflictError      another writer moved the pointer; retryable
│   ├─ ConcurrentChangeError    rows this operation read have changed; not retryable
│   └─ CommitStateUnknownError  the outcome is not known; never delete files
├─ StorageError             (OSError)
│   ├─ MissingFileError         no such file; a NotFoundError too
│   └─ WriteOutcomeUnknownError a file may or may not have been written; never delete files
├─ ServiceError             a catalog service cannot be reached, or fails; nothing happened
├─ AccessDeniedError        a service does not know who asks, or does not let them
└─ EngineError              Spark failed; the cause is unwrapped
    └─ CancelledError       a statement was cancelled before it was committed; nothing happened

Two class attributes answer the questions of callers: `retryable` (may the same request succeed if it
is sent again?) and `may_clean_up` (may files written for this request be deleted?).

The text of an error starts with `Cannot <verb> <object>: <reason with values>`; the context pairs and
the hint follow, a line each. All errors share one constructor and survive pickling.

Names and values in an error may be untrusted: where it is printed, characters that steer terminals are written out
(`visible`). `message` and `context` have them as they are.
"""

from __future__ import annotations

from typing import ClassVar

from frazil.visible_text import visible


class FrazilError(Exception):
    """Base of every error that frazil raises.

    `message` is the first line, `hint` says what to do, `context` holds what else is known (a path,
    an identifier, a snapshot id) in the order given.
    """

    retryable: ClassVar[bool] = False
    may_clean_up: ClassVar[bool] = True

    def __init__(self, message: str, *, hint: str | None = None, **context: object) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.context = context

    def __str__(self) -> str:
        known = {key: str(value) for key, value in self.context.items() if value is not None}
        lines = [visible(self.message, keeps_lines=True)]
        lines += [f"  {key.replace('_', ' ')}: {visible(value)}" for key, value in known.items()]
        if self.hint is not None:
            lines.append(f"Hint: {visible(self.hint, keeps_lines=True)}")
        return "\n".join(lines)

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
    """Something named does not exist."""


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
    """Something of that name exists."""


class NamespaceAlreadyExistsError(AlreadyExistsError):
    """The namespace exists."""


class TableAlreadyExistsError(AlreadyExistsError):
    """The table exists."""


class ViewAlreadyExistsError(AlreadyExistsError):
    """The view exists."""


class FileAlreadyExistsError(AlreadyExistsError):
    """A file of that name exists, and was not made by this call."""


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
    """A namespace that is to be dropped holds something."""


class InvalidPropertyError(InvalidRequestError):
    """A table property holds a value that cannot be used."""


class CorruptTableError(FrazilError):
    """Bytes break the specification.

    The context carries `path` (the file, where known) and `heading` (the specification's heading).
    """

    def at_path(self, path: str) -> CorruptTableError:
        """Return this error with the file's path in its context, for layers that know it."""
        if self.context.get("path") is not None:
            return self
        context = {"path": path, **{key: value for key, value in self.context.items() if key != "path"}}
        error = type(self)(self.message, hint=self.hint, **context)
        error.__cause__ = self.__cause__
        return error


class InvalidMetadataError(CorruptTableError):
    """Table or view metadata breaks the specification."""


class InvalidManifestError(CorruptTableError):
    """A manifest or manifest list breaks the specification."""


class InvalidPuffinError(CorruptTableError):
    """A Puffin file or deletion vector breaks the specification."""


class InvalidDataFileError(CorruptTableError):
    """A data or delete file breaks the specification."""


class UnsupportedError(FrazilError):
    """A format version or feature that this build does not have."""


class CommitError(FrazilError):
    """A commit did not happen, or is not known to have happened."""


class CommitConflictError(CommitError):
    """Another writer committed first; the same change may be applied to the new state."""

    retryable = True


class ConcurrentChangeError(CommitError):
    """Another writer changed what this operation read; it must be run again."""

    def in_table(self, name: str) -> ConcurrentChangeError:
        """Return the same error, which says in which table."""
        reason = self.message.removeprefix("Cannot commit: ")
        if reason == self.message:
            return type(self)(reason, hint=self.hint, **{"table": name, **self.context})
        return type(self)(f"Cannot commit to {name}: {reason}", hint=self.hint, **self.context)


class CommitStateUnknownError(CommitError):
    """The commit may or may not have happened. Files written for it must stay."""

    may_clean_up = False


class StorageError(FrazilError, OSError):
    """Reading or writing storage failed."""

    def __str__(self) -> str:
        return FrazilError.__str__(self)


class MissingFileError(StorageError, NotFoundError):
    """Storage has no such file."""


class WriteOutcomeUnknownError(StorageError):
    """A file may or may not have been written. Read it back to find out; until then it must stay."""

    may_clean_up = False


class ServiceError(FrazilError):
    """A catalog service cannot be reached, or failed; what was asked for did not happen."""


class AccessDeniedError(FrazilError):
    """A service does not know who asks, or does not let them."""


class EngineError(FrazilError):
    """Spark failed; the cause is the engine's own error."""


class CancelledError(EngineError):
    """A statement was cancelled before it was committed; nothing happened."""
