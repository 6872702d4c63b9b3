"""Apache Iceberg for PySpark, in Python, with no jar. Re-exports only: this is the public face.

What needs Arrow is imported when it is first used, so that `import frazil` stays fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from frazil.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    CancelledError,
    CommitConflictError,
    CommitError,
    CommitStateUnknownError,
    ConcurrentChangeError,
    CorruptTableError,
    EngineError,
    FieldNotFoundError,
    FileAlreadyExistsError,
    FrazilError,
    InvalidDataFileError,
    InvalidManifestError,
    InvalidMetadataError,
    InvalidPropertyError,
    InvalidPuffinError,
    InvalidRequestError,
    MissingFileError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    NotFoundError,
    ReferenceNotFoundError,
    SchemaChangeError,
    SchemaMismatchError,
    ServiceError,
    SnapshotNotFoundError,
    SqlSyntaxError,
    StorageError,
    TableAlreadyExistsError,
    TableNotFoundError,
    TextSyntaxError,
    UnsupportedError,
    ViewAlreadyExistsError,
    ViewNotFoundError,
    WriteOutcomeUnknownError,
)
from frazil.spec.schema import Schema

if TYPE_CHECKING:
    from frazil.expr.build_condition import Column, Condition, col
    from frazil.maintenance.report import Problem, Report
    from frazil.sessions.attach import attach, detach
    from frazil.sessions.builder import session
    from frazil.sessions.source_tables import LakeAddress, register_source
    from frazil.table.connect import connect
    from frazil.table.lake import Lake
    from frazil.table.scan import Scan
    from frazil.table.table import Table
    from frazil.table.view import View

_ON_FIRST_USE = {
    "Column": "frazil.expr.build_condition",
    "Condition": "frazil.expr.build_condition",
    "Lake": "frazil.table.lake",
    "LakeAddress": "frazil.sessions.source_tables",
    "Problem": "frazil.maintenance.report",
    "Report": "frazil.maintenance.report",
    "Scan": "frazil.table.scan",
    "Table": "frazil.table.table",
    "View": "frazil.table.view",
    "attach": "frazil.sessions.attach",
    "col": "frazil.expr.build_condition",
    "connect": "frazil.table.connect",
    "detach": "frazil.sessions.attach",
    "register_source": "frazil.sessions.source_tables",
    "session": "frazil.sessions.builder",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from frazil.commit.summary import frazil_version

        return frazil_version()
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module 'frazil' has no attribute {name!r}")
    return getattr(import_module(_ON_FIRST_USE[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


__all__ = [
    "AccessDeniedError",
    "AlreadyExistsError",
    "CancelledError",
    "Column",
    "CommitConflictError",
    "CommitError",
    "CommitStateUnknownError",
    "ConcurrentChangeError",
    "Condition",
    "CorruptTableError",
    "EngineError",
    "FieldNotFoundError",
    "FileAlreadyExistsError",
    "FrazilError",
    "InvalidDataFileError",
    "InvalidManifestError",
    "InvalidMetadataError",
    "InvalidPropertyError",
    "InvalidPuffinError",
    "InvalidRequestError",
    "Lake",
    "LakeAddress",
    "MissingFileError",
    "NamespaceAlreadyExistsError",
    "NamespaceNotEmptyError",
    "NamespaceNotFoundError",
    "NotFoundError",
    "Problem",
    "ReferenceNotFoundError",
    "Report",
    "Scan",
    "Schema",
    "SchemaChangeError",
    "SchemaMismatchError",
    "ServiceError",
    "SnapshotNotFoundError",
    "SqlSyntaxError",
    "StorageError",
    "Table",
    "TableAlreadyExistsError",
    "TableNotFoundError",
    "TextSyntaxError",
    "UnsupportedError",
    "View",
    "ViewAlreadyExistsError",
    "ViewNotFoundError",
    "WriteOutcomeUnknownError",
    "attach",
    "col",
    "connect",
    "detach",
    "register_source",
    "session",
]
