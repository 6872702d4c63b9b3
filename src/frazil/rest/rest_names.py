"""The names of a catalog service, by the REST protocol: creates, loads, lists and drops namespaces, tables and views.

`rest/rest_catalog.py` adds commits. The service chooses the locations of tables, and vends credentials for their files
(`rest/table_storage.py`). Services differ: if one lacks an operation, an equivalent one is used if possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from frazil.catalog.base import NO_PLACE, check_still_at
from frazil.catalog.names import (
    Identifier,
    Namespace,
    check_namespace,
    format_name,
    namespace_not_found,
    split_identifier,
    table_exists,
    table_not_found,
    view_exists,
    view_not_found,
)
from frazil.catalog.owned_folders import owned_folders
from frazil.catalog.purge import NOTHING_PURGED, Purge, PurgeReport, check_may_purge
from frazil.codec.partition_spec_json import encode_partition_spec
from frazil.codec.schema_json import encode_schema
from frazil.codec.sort_order_json import encode_sort_order
from frazil.codec.view_metadata_json import encode_view_version
from frazil.errors import (
    AlreadyExistsError,
    CommitStateUnknownError,
    InvalidRequestError,
    NamespaceNotEmptyError,
    TableNotFoundError,
    UnsupportedError,
)
from frazil.loaded import LoadedTable, LoadedView
from frazil.rest import service as has
from frazil.rest import settings as names
from frazil.rest.asked_catalog import AskedCatalog
from frazil.rest.find_dropped import find_dropped, warn_of_dropped
from frazil.rest.load_result import read_table
from frazil.rest.pages import read_parts
from frazil.rest.service import identifier_json, read_object
from frazil.rest.table_storage import VendedStorage
from frazil.spec.new_table import new_table_metadata
from frazil.spec.partitioning import UNPARTITIONED, PartitionSpec
from frazil.spec.schema import Schema
from frazil.spec.sorting import UNSORTED, SortOrder
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.versions import DEFAULT
from frazil.spec.view_metadata import ViewMetadata, ViewVersion


class RestNames(AskedCatalog):
    """The names of a catalog service."""

    # Namespaces

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str] | None = None) -> None:
        """Create a namespace and its missing parents; at most one concurrent caller succeeds."""
        parts = check_namespace(namespace)
        body = {"namespace": list(parts), "properties": dict(properties or {})}
        answer = self.ask("POST", self.service.namespaces, body=body, what=f"create namespace {format_name(parts)}")
        # Some services require the parents first, and report that by either status.
        if answer.status in (404, 409) and len(parts) > 1 and not self.namespace_exists(parts[:-1]):
            self.create_namespace(parts[:-1])
            answer = self.ask("POST", self.service.namespaces, body=body, what=f"create namespace {format_name(parts)}")
        self.check(answer, f"create namespace {format_name(parts)}", namespace=parts)

    def drop_namespace(self, namespace: Namespace) -> None:
        """Drop an empty namespace."""
        parts = check_namespace(namespace)
        what = f"drop namespace {format_name(parts)}"
        answer = self.ask("DELETE", self.service.namespace(parts), what=what)
        if answer.status == 404 and answer.is_after_doubt:
            return
        if answer.status == 409:
            # Nothing else can prevent it, whatever error type the service sends.
            raise NamespaceNotEmptyError(
                f"Cannot {what}: {self.session.explain(answer.reply)}", hint="Drop its contents first."
            )
        self.check(answer, what, namespace=parts)

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Return whether a namespace exists."""
        parts = check_namespace(namespace)
        try:
            what = f"find namespace {format_name(parts)}"
            return self._exists(has.NAMESPACE_EXISTS, self.service.namespace(parts), what)
        except InvalidRequestError:
            # For a service whose namespaces have one level, others are invalid names (Glue).
            if len(parts) > 1:
                return False
            raise

    def list_namespaces(self, parent: Namespace = ()) -> tuple[Namespace, ...]:
        """Return the child namespaces of a namespace, or the top-level ones, in order."""
        parts = check_namespace(parent, may_be_root=True)
        query = {"parent": self.service.parent_text(parts)} if parts else {}
        what = f"list namespaces of {format_name(parts) or 'the catalog'}"
        items = self._pages(self.service.namespaces, "namespaces", query, what, parts)
        namespaces = {read_parts(name) for name in items}
        return tuple(sorted(name for name in namespaces if len(name) == len(parts) + 1))

    def load_namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        """Return a namespace's properties."""
        parts = check_namespace(namespace)
        what = f"load namespace {format_name(parts)}"
        answer = self.ask("GET", self.service.namespace(parts), what=what)
        self.check(answer, what, namespace=parts)
        properties = read_object(answer.reply, what).raw("properties", None)
        return {str(name): str(value) for name, value in properties.items()} if isinstance(properties, dict) else {}

    def update_namespace_properties(
        self, namespace: Namespace, updates: Mapping[str, str] | None = None, removals: Iterable[str] = ()
    ) -> None:
        """Set and remove properties in one step."""
        parts = check_namespace(namespace)
        removed = sorted(set(removals))
        both = set(removed) & set(updates or {})
        if both:
            raise InvalidRequestError(
                f"Cannot change the properties of {format_name(parts)}: {min(both)!r} is both set and removed"
            )
        what = f"change namespace {format_name(parts)}"
        self.service.check(has.UPDATE_NAMESPACE, what)
        body = {"removals": removed, "updates": dict(updates or {})}
        try:
            answer = self.ask("POST", f"{self.service.namespace(parts)}/properties", body=body, what=what)
        except CommitStateUnknownError:
            current = self.load_namespace_properties(parts)
            if current == {**current, **(updates or {})} and not set(removed) & current.keys():
                return
            raise
        self.check(answer, what, namespace=parts)

    # Tables

    def list_tables(self, namespace: Namespace) -> tuple[Identifier, ...]:
        """Return the tables of a namespace, in order."""
        parts = check_namespace(namespace)
        url = f"{self.service.namespace(parts)}/tables"
        return self._identifiers(url, parts, f"list tables of {format_name(parts)}")

    def load_table(self, identifier: Identifier) -> LoadedTable:
        """Return the current state of a table."""
        return self.load_table_for(identifier, ())

    def load_table_for(self, identifier: Identifier, views: Sequence[Identifier]) -> LoadedTable:
        """Return the current state of a table read through views, which the service is informed of."""
        split_identifier(identifier)
        parts, readers = tuple(identifier), tuple(views)
        what = f"load table {format_name(parts)}"
        cached = self._cache.find(parts, readers)
        headers = self.access.header | ({} if cached is None else {"if-none-match": cached.tag})
        query = {"snapshots": "all", **self.service.reader_query(readers)}
        answer = self.ask("GET", self.service.table(parts), query=query, headers=headers, what=what)
        if answer.status == 304 and cached is not None:
            return cached.loaded
        self.check(answer, what, table=parts)
        loaded = self.loaded_table(parts, read_table(answer.reply, format_name(parts)), views=readers)
        self._cache.keep(loaded, answer.reply.headers.get("etag"))
        return loaded

    def table_exists(self, identifier: Identifier) -> bool:
        """Return whether a table exists."""
        split_identifier(identifier)
        url = self.service.table(tuple(identifier))
        return self._exists(has.TABLE_EXISTS, url, f"find table {format_name(identifier)}")

    def drop_table(
        self, identifier: Identifier, *, purge: Purge | None = None, delete_roots: Sequence[str] = ()
    ) -> PurgeReport:
        """Remove a table's name; with `purge`, also delete the files that belong to it alone, by calling `purge`.

        The service is not asked to delete: some delete whatever the metadata names, anywhere, and its author chose
        that.
        The property `rest.service-purges` declares that this service, and its metadata, can be trusted with purges.
        """
        split_identifier(identifier)
        parts = tuple(identifier)
        if purge is None:
            self._drop(parts, is_purge=False)
            return NOTHING_PURGED
        loaded = self.load_table(parts)
        check_may_purge(loaded)
        if self.settings.truth(names.SERVICE_PURGES, default=False):
            self._drop(parts, is_purge=True)
            return NOTHING_PURGED
        if isinstance(loaded.storage, VendedStorage) and loaded.storage.is_signed:
            raise UnsupportedError(
                f"Cannot purge table {format_name(parts)}: "
                "the service signs requests for its files, but not after it is dropped",
                hint=f"Drop it without purge; or set {names.SERVICE_PURGES} if you trust the service with purges.",
            )
        owned = owned_folders(self, loaded, delete_roots)
        owned.check_folders("purge table")
        self._drop(parts, is_purge=False)
        return purge(loaded, owned)

    def _drop(self, parts: Identifier, *, is_purge: bool) -> None:
        what = f"drop table {format_name(parts)}"
        query = {"purgeRequested": "true" if is_purge else "false"}
        answer = self.ask("DELETE", self.service.table(parts), query=query, what=what)
        self._cache.forget(parts)
        reason = self.session.explain(answer.reply)
        if answer.status == 400 and not is_purge and "purge" in reason.lower():
            raise UnsupportedError(
                f"Cannot {what}: {reason}",
                hint=f"Set {names.SERVICE_PURGES} and drop it with purge; the service then deletes its files.",
            )
        if not (answer.status == 404 and answer.is_after_doubt):
            self.check(answer, what, table=parts)

    def rename_table(self, source: Identifier, target: Identifier) -> None:
        """Rename a table; its files stay where they are."""
        for identifier in (source, target):
            split_identifier(identifier)
        self.service.check(has.RENAME_TABLE, f"rename table {format_name(source)}")
        self._rename("tables", tuple(source), tuple(target))
        self._cache.forget(tuple(source))

    def register_table(
        self, identifier: Identifier, metadata_location: str, *, may_replace: bool = False
    ) -> LoadedTable:
        """Register an existing metadata file under a name; `may_replace` allows a name that is already a table's."""
        namespace, name = split_identifier(identifier)
        parts = (*namespace, name)
        what = f"register table {format_name(parts)}"
        self.service.check(has.REGISTER, what)
        body: dict[str, Any] = {"name": name, "metadata-location": metadata_location}
        if may_replace:
            body["overwrite"] = True
        url = f"{self.service.namespace(namespace)}/register"
        try:
            answer = self.ask("POST", url, body=body, headers=self.access.header, what=what)
        except CommitStateUnknownError:
            if (registered := self._find_at(parts, metadata_location)) is not None:
                return registered
            raise
        is_doubtful = answer.status == 409 and answer.is_after_doubt
        if is_doubtful and (registered := self._find_at(parts, metadata_location)) is not None:
            return registered
        if answer.status == 404:
            self._check_namespace(namespace)
        self.check(answer, what, table=parts)
        return self.loaded_table(parts, read_table(answer.reply, format_name(parts)))

    def unregister_table(self, identifier: Identifier, *, expected_location: str | None = None) -> LoadedTable:
        """Remove a table's name and return its last state."""
        split_identifier(identifier)
        parts = tuple(identifier)
        what = f"unregister table {format_name(parts)}"
        knows = self.service.has(has.UNREGISTER)
        if expected_location is not None or not knows:
            loaded = self.load_table(parts)
            check_still_at(loaded, expected_location)
            if not knows:
                self.drop_table(parts)
                return loaded
        answer = self.ask("POST", f"{self.service.table(parts)}/unregister", what=what)
        self.check(answer, what, table=parts)
        self._cache.forget(parts)
        return self.loaded_table(parts, read_table(answer.reply, format_name(parts)))

    # Views

    def list_views(self, namespace: Namespace) -> tuple[Identifier, ...]:
        """Return the views of a namespace, in order; empty for a service without views."""
        parts = check_namespace(namespace)
        if not self.service.has(has.LIST_VIEWS):
            self._check_namespace(parts)
            return ()
        return self._identifiers(f"{self.service.namespace(parts)}/views", parts, f"list views of {format_name(parts)}")

    def load_view(self, identifier: Identifier) -> LoadedView:
        """Return the current state of a view."""
        return self.load_view_for(identifier, ())

    def load_view_for(self, identifier: Identifier, views: Sequence[Identifier]) -> LoadedView:
        """Return the current state of a view read through others, which the service is informed of."""
        split_identifier(identifier)
        parts = tuple(identifier)
        if not self.service.has(has.LOAD_VIEW):
            raise view_not_found(parts)
        what = f"load view {format_name(parts)}"
        answer = self.ask("GET", self.service.view(parts), query=self.service.reader_query(views), what=what)
        self.check(answer, what, view=parts)
        return self.loaded_view(parts, answer)

    def view_exists(self, identifier: Identifier) -> bool:
        """Return whether a view exists."""
        split_identifier(identifier)
        if not self.service.has(has.LOAD_VIEW):
            return False
        what = f"find view {format_name(identifier)}"
        return self._exists(has.VIEW_EXISTS, self.service.view(tuple(identifier)), what)

    def drop_view(self, identifier: Identifier) -> None:
        """Remove a view's name; its metadata files stay."""
        split_identifier(identifier)
        parts = tuple(identifier)
        if not self.service.has(has.DROP_VIEW):
            raise view_not_found(parts)
        what = f"drop view {format_name(parts)}"
        answer = self.ask("DELETE", self.service.view(parts), what=what)
        if not (answer.status == 404 and answer.is_after_doubt):
            self.check(answer, what, view=parts)

    def rename_view(self, source: Identifier, target: Identifier) -> None:
        """Rename a view."""
        for identifier in (source, target):
            split_identifier(identifier)
        self.service.check(has.RENAME_VIEW, f"rename view {format_name(source)}")
        self._rename("views", tuple(source), tuple(target))

    def register_view(self, identifier: Identifier, metadata_location: str) -> LoadedView:
        """Register an existing metadata file of a view under a name."""
        namespace, name = split_identifier(identifier)
        parts = (*namespace, name)
        what = f"register view {format_name(parts)}"
        self.service.check(has.REGISTER_VIEW, what)
        body = {"name": name, "metadata-location": metadata_location}
        answer = self.ask("POST", f"{self.service.namespace(namespace)}/register-view", body=body, what=what)
        if answer.status == 404:
            self._check_namespace(namespace)
        self.check(answer, what, view=parts)
        return self.loaded_view(parts, answer)

    # New tables and views

    def stage_table(
        self,
        identifier: Identifier,
        schema: Schema,
        spec: PartitionSpec = UNPARTITIONED,
        sort_order: SortOrder = UNSORTED,
        *,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
        format_version: int = DEFAULT,
    ) -> LoadedTable:
        """Return the initial state of a new table, as staged by the service; nothing is written.

        If the service does not stage tables, the table is created at the commit, and changed in a second step.
        """
        namespace, name = split_identifier(identifier)
        parts = (*namespace, name)
        drafted = self._draft(schema, spec, sort_order, location, properties, format_version)
        if self.has_staging:
            try:
                return self._create(parts, drafted, location, is_staged=True)
            except (UnsupportedError, InvalidRequestError) as error:
                if not _refuses_staging(error):
                    raise
                self.has_staging = False
        self._check_free(parts)
        own_location = self.new_location(parts, location)
        if own_location == NO_PLACE:
            raise UnsupportedError(
                f"Cannot create {format_name(parts)} together with its rows: the service does not "
                "stage tables and does not tell where its files belong",
                hint="Create the table first, then write to it; or pass a location.",
            )
        metadata = self._draft(schema, spec, sort_order, own_location, properties, format_version)
        return LoadedTable(parts, metadata, None, self.storage)

    def create_table(
        self,
        identifier: Identifier,
        schema: Schema,
        spec: PartitionSpec = UNPARTITIONED,
        sort_order: SortOrder = UNSORTED,
        *,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
        format_version: int = DEFAULT,
    ) -> LoadedTable:
        """Create an empty table; at most one concurrent caller succeeds."""
        namespace, name = split_identifier(identifier)
        parts = (*namespace, name)
        drafted = self._draft(schema, spec, sort_order, location, properties, format_version)
        return self._create(parts, drafted, location, is_staged=False)

    def create_drafted(self, parts: Identifier, metadata: TableMetadata) -> LoadedTable:
        """Create the empty table described by a staged state."""
        location = None if metadata.location == NO_PLACE else metadata.location
        return self._create(parts, metadata, location, is_staged=False)

    def stage_view(
        self,
        identifier: Identifier,
        schema: Schema,
        version: ViewVersion,
        *,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> LoadedView:
        """Return the initial state of a new view, to be created by `commit_view`; writes nothing."""
        self.service.check(has.CREATE_VIEW, f"create view {format_name(identifier)}")
        return super().stage_view(identifier, schema, version, location=location, properties=properties)

    def create_staged_view(self, parts: Identifier, metadata: ViewMetadata) -> LoadedView:
        """Create the view described by a staged state."""
        what = f"create view {format_name(parts)}"
        version = metadata.current_version
        body: dict[str, Any] = {
            "name": parts[-1],
            "schema": encode_schema(metadata.schemas_by_id[version.schema_id]),
            "view-version": encode_view_version(version),
            "properties": dict(metadata.properties),
        }
        if metadata.location != NO_PLACE:
            body["location"] = metadata.location
        answer = self.ask("POST", f"{self.service.namespace(parts[:-1])}/views", body=body, what=what)
        if answer.status == 404:
            raise namespace_not_found(parts[:-1])
        self.check(answer, what, view=parts)
        return self.loaded_view(parts, answer)

    def find_existing(self, identifier: Identifier) -> AlreadyExistsError | None:
        """Return the error that describes the current holder of a name, or None if the name is free."""
        if self.table_exists(identifier):
            return table_exists(identifier)
        return view_exists(identifier) if self.view_exists(identifier) else None

    def new_location(self, identifier: Identifier, location: str | None) -> str:
        """Return the requested location, one in the namespace's, or a placeholder for the service to choose."""
        if location is not None:
            return location
        namespace, name = split_identifier(identifier)
        own_location = self.load_namespace_properties(namespace).get("location")
        return NO_PLACE if own_location is None else f"{own_location.rstrip('/')}/{name}"

    def other_pointers(self, identifier: Identifier) -> Iterable[tuple[Identifier, str]]:
        """Return the metadata files of all other tables; each table is loaded, since there is no cheaper way."""
        for table in self.all_tables():
            if table == tuple(identifier):
                continue
            try:
                location = self.load_table(table).metadata_location
            except TableNotFoundError:
                continue
            if location is not None:
                yield table, location

    # Details

    def _draft(
        self,
        schema: Schema,
        spec: PartitionSpec,
        sort_order: SortOrder,
        location: str | None,
        properties: Mapping[str, str] | None,
        format_version: int,
    ) -> TableMetadata:
        return new_table_metadata(
            schema,
            spec,
            sort_order,
            location=NO_PLACE if location is None else location,
            properties=properties,
            format_version=format_version,
            uuid=self.new_id(),
            now_ms=self.now_ms(),
        )

    def _create(
        self, parts: Identifier, drafted: TableMetadata, location: str | None, *, is_staged: bool
    ) -> LoadedTable:
        what = f"create table {format_name(parts)}"
        body: dict[str, Any] = {
            "name": parts[-1],
            "schema": encode_schema(drafted.current_schema),
            "partition-spec": encode_partition_spec(drafted.default_spec),
            "write-order": encode_sort_order(drafted.default_sort_order),
            "stage-create": is_staged,
            "properties": {**drafted.properties, "format-version": str(drafted.format_version)},
        }
        if location is not None:
            body["location"] = location
        url = f"{self.service.namespace(parts[:-1])}/tables"
        answer = self.ask("POST", url, body=body, headers=self.access.header, what=what)
        if answer.status == 400 and location is None and "location" in self.session.explain(answer.reply).lower():
            # Some services require a location.
            own_location = self.new_location(parts, None)
            if own_location != NO_PLACE:
                body = {**body, "location": own_location}
                answer = self.ask("POST", url, body=body, headers=self.access.header, what=what)
        if answer.status == 404:
            raise namespace_not_found(parts[:-1])
        self.check(answer, what, table=parts)
        loaded = self.loaded_table(parts, read_table(answer.reply, format_name(parts)), is_staged=is_staged)
        warn_of_dropped(loaded.name, find_dropped(drafted, loaded.metadata))
        return loaded

    def _rename(self, entity_type: str, source: Identifier, target: Identifier) -> None:
        what = f"rename {entity_type[:-1]} {format_name(source)}"
        body = {"source": identifier_json(source), "destination": identifier_json(target)}
        is_table = entity_type == "tables"
        exists = self.table_exists if is_table else self.view_exists
        try:
            answer = self.ask("POST", f"{self.service.root}/{entity_type}/rename", body=body, what=what)
        except CommitStateUnknownError:
            if exists(target) and not exists(source):
                return
            raise
        is_refused = answer.status in (404, 409)
        if is_refused and answer.is_after_doubt and exists(target) and not exists(source):
            return
        if answer.status == 404:
            self._check_namespace(target[:-1])
            raise table_not_found(source) if is_table else view_not_found(source)
        if answer.status == 409:
            if source == target:
                # Some services refuse a rename that changes nothing.
                return
            raise self.find_existing(target) or table_exists(target)
        self.check(answer, what, table=source if is_table else None, view=None if is_table else source)

    def _find_at(self, parts: Identifier, metadata_location: str) -> LoadedTable | None:
        """Return a table if it is at the given metadata file, else None."""
        self._cache.forget(parts)
        try:
            loaded = self.load_table(parts)
        except TableNotFoundError:
            return None
        return loaded if loaded.metadata_location == metadata_location else None

    def _check_namespace(self, namespace: Namespace) -> None:
        if not self.namespace_exists(namespace):
            raise namespace_not_found(namespace)


def _refuses_staging(error: Exception) -> bool:
    return isinstance(error, UnsupportedError) or "stag" in str(error).lower()
