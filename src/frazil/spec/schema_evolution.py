"""Changes of a schema, step by step, each checked when it is requested. Specification: "Schema Evolution".

A `SchemaUpdate` starts from a table's current schema, its `last-column-id` and its format version. Steps add,
drop, rename, move and widen columns; `apply` returns the new schema, with unused ids for new columns.
Changes that could make existing files unreadable, or readable only as something else, are refused with
`SchemaChangeError`, and a refused step leaves the update unchanged.

Within one update, columns are identified by their names in the original schema, or by the names they were added
under: after `rename_column("a", "b")` the column is still `a`. A column is given by its full name
(`points.element.x`, or in short `points.x`) or, if names contain dots, by a tuple of names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeAlias

from frazil.errors import FieldNotFoundError, InvalidRequestError, SchemaChangeError, SchemaMismatchError
from frazil.spec.new_column import check_new_field, check_own_name, prepare_default, with_fresh_ids
from frazil.spec.parse_type import parse_type
from frazil.spec.partitioning import PartitionSpec
from frazil.spec.pending_schema import ColumnPath, Move, PendingSchema, show_path
from frazil.spec.schema import Schema, check_identifier_field, walk_fields
from frazil.spec.transforms import promotion_changes_partition
from frazil.spec.type_promotion import (
    LATEST_PROMOTIONS,
    describe_type,
    explain_refusal,
    is_promotion_allowed,
    promote_value,
)
from frazil.spec.types import NestedField, StructType, Type, UnknownType
from frazil.spec.versions import check_version

_Position: TypeAlias = Literal["first", "before", "after"]
_ANOTHER_COLUMN = "Add a column of the new type under another name and write its values."
_MAX_SHOWN_NAMES = 30
_INCOMPATIBLE = "If no file of the table contradicts it, call allow_incompatible_changes() first."


class EvolvedSchema(NamedTuple):
    """The result of an update."""

    schema: Schema
    last_column_id: int


class SchemaUpdate:
    """A set of changes to a schema. Its methods return the update itself, so that steps can be chained.

    `specs` are all partition specs of the table: a column that they use may not be promoted to a type
    with different partition values.
    """

    def __init__(
        self,
        schema: Schema,
        last_column_id: int,
        format_version: int,
        *,
        specs: Sequence[PartitionSpec] = (),
        case_sensitive: bool = True,
    ) -> None:
        self.schema = schema
        self.format_version = check_version(format_version)
        self.case_sensitive = case_sensitive
        self._last_column_id = max(last_column_id, schema.highest_field_id)
        self._specs = tuple(specs)
        self._pending = PendingSchema(schema, case_sensitive=case_sensitive)
        self._identifiers: tuple[ColumnPath, ...] | None = None
        self._allows_incompatible = False

    @property
    def has_changes(self) -> bool:
        """Whether the update has any steps that may change the schema."""
        return self._pending.has_changes or self._identifiers is not None

    def allow_incompatible_changes(self) -> SchemaUpdate:
        """Allow, in later steps, changes that existing rows may contradict: required columns without a default."""
        self._allows_incompatible = True
        return self

    # Adding and dropping

    def add_column(
        self,
        path: ColumnPath,
        column_type: Type | str,
        *,
        doc: str | None = None,
        required: bool = False,
        default: Any = None,
        first: bool = False,
        before: ColumnPath | None = None,
        after: ColumnPath | None = None,
    ) -> SchemaUpdate:
        """Add a column with fresh ids, at the end or at a position among its siblings.

        The part of a name before the last dot is the column to add to: a struct, a list of structs or a map to
        structs. `default` becomes the initial and the write default.
        """
        parent_id, name = self._place_of_new(path)
        what = f"Cannot add {show_path(path)}"
        self._check_name_free(what, parent_id, name)
        data_type = parse_type(column_type) if isinstance(column_type, str) else column_type
        if required and default is None and not self._allows_incompatible:
            raise SchemaChangeError(
                f"{what}: it is required and has no default, so existing rows would have no value",
                hint=f"Add it as optional, or with a default (format version 3). {_INCOMPATIBLE}",
            )
        value = prepare_default(what, default, data_type, self.format_version)
        draft = NestedField(0, name, data_type, required, doc, value, value)
        check_new_field(what, draft, self.format_version)
        position, reference_id = self._place_among_siblings(what, parent_id, first=first, before=before, after=after)
        added, self._last_column_id = with_fresh_ids(what, draft, self._last_column_id)
        self._pending.note_added(parent_id, added)
        if position is not None:
            self._pending.note_move(Move(added.field_id, position, reference_id))
        return self

    def add_required_column(
        self,
        path: ColumnPath,
        column_type: Type | str,
        *,
        doc: str | None = None,
        default: Any = None,
        first: bool = False,
        before: ColumnPath | None = None,
        after: ColumnPath | None = None,
    ) -> SchemaUpdate:
        """Add a required column; it needs a default unless incompatible changes are allowed."""
        return self.add_column(
            path, column_type, doc=doc, required=True, default=default, first=first, before=before, after=after
        )

    def drop_column(self, path: ColumnPath) -> SchemaUpdate:
        """Drop a column and its nested fields. Its id is never reused."""
        what, field = self._find("drop {}", path)
        if self._pending.is_added(field.field_id):
            raise SchemaChangeError(f"{what}: it is added in the same update", hint="Leave both steps out.")
        if self._pending.is_gone(field.field_id):
            return self
        self._check_not_map_key(what, field.field_id)
        self._check_struct_field(what, field.field_id)
        if self._pending.is_edited(field.field_id):
            raise SchemaChangeError(
                f"{what}: it, or a field in it, has other changes in the same update",
                hint="Leave the other changes out, or make them in an update of their own.",
            )
        self._pending.note_dropped(field.field_id)
        return self

    # Changing columns

    def rename_column(self, path: ColumnPath, new_name: str) -> SchemaUpdate:
        """Rename a column within its struct; `new_name` is the last part of the full name."""
        what, field = self._find_retained("rename {}", path)
        if self._pending.is_added(field.field_id):
            raise SchemaChangeError(
                f"{what}: it is added in the same update", hint=f"Add it under the name {new_name!r}."
            )
        self._check_struct_field(what, field.field_id)
        check_own_name(what, new_name)
        return self._note(replace(field, name=new_name))

    def set_type(self, path: ColumnPath, new_type: Type | str) -> SchemaUpdate:
        """Promote a column to a wider type."""
        what, field = self._find_retained("change the type of {}", path)
        data_type = parse_type(new_type) if isinstance(new_type, str) else new_type
        old = field.field_type
        if data_type == old:
            return self
        what = f"{what} from {describe_type(old)} to {describe_type(data_type)}"
        if not is_promotion_allowed(old, data_type, format_version=self.format_version):
            raise SchemaChangeError(
                f"{what}: {explain_refusal(old, data_type, format_version=self.format_version)}",
                hint=_ANOTHER_COLUMN
                if not is_promotion_allowed(old, data_type)
                else f"Upgrade the table to format version {LATEST_PROMOTIONS} first.",
            )
        for spec in self._specs:
            for partition_field in spec.fields:
                if field.field_id in partition_field.source_ids and promotion_changes_partition(
                    partition_field.transform, old, data_type
                ):
                    raise SchemaChangeError(
                        f"{what}: the partition field {partition_field.name!r} "
                        f"({partition_field.transform}, spec {spec.spec_id}) would have other values",
                        hint=_ANOTHER_COLUMN,
                    )
        try:
            initial, write = (
                promote_value(default, old, data_type) for default in (field.initial_default, field.write_default)
            )
        except SchemaMismatchError as error:
            raise SchemaChangeError(f"{what}: its default does not fit: {error.message}") from error
        draft = replace(field, field_type=data_type, initial_default=initial, write_default=write)
        check_new_field(what, draft, self.format_version)
        draft, self._last_column_id = with_fresh_ids(what, draft, self._last_column_id, keep_own=True)
        return self._note(draft)

    def make_optional(self, path: ColumnPath) -> SchemaUpdate:
        """Allow nulls in a column."""
        _, field = self._find_retained("make {} optional", path)
        return self if field.optional else self._note(replace(field, required=False))

    def make_required(self, path: ColumnPath) -> SchemaUpdate:
        """Forbid nulls in a column that is added with a default, or in any if incompatible changes are allowed."""
        what, field = self._find_retained("make {} required", path)
        if field.required:
            return self
        if isinstance(field.field_type, UnknownType):
            raise SchemaChangeError(f"{what}: columns of type unknown hold nothing but nulls")
        has_values = self._pending.is_added(field.field_id) and field.initial_default is not None
        if not has_values and not self._allows_incompatible:
            raise SchemaChangeError(f"{what}: existing rows may hold nulls", hint=_INCOMPATIBLE)
        return self._note(replace(field, required=True))

    def set_doc(self, path: ColumnPath, doc: str | None) -> SchemaUpdate:
        """Set or, with None, remove a column's comment."""
        what, field = self._find_retained("set the doc of {}", path)
        self._check_struct_field(what, field.field_id)
        return self if field.doc == doc else self._note(replace(field, doc=doc))

    def set_default(self, path: ColumnPath, default: Any) -> SchemaUpdate:
        """Set the write default: the value of future rows whose writer gives none.

        Existing rows keep their values; the initial default is set with the column and never changes.
        """
        what, field = self._find_retained("set the default of {}", path)
        self._check_struct_field(what, field.field_id)
        value = prepare_default(what, default, field.field_type, self.format_version)
        return self._note(replace(field, write_default=value))

    # Order

    def move_first(self, path: ColumnPath) -> SchemaUpdate:
        """Move a column to the front of its struct."""
        return self._move(path, "first", None)

    def move_before(self, path: ColumnPath, reference: ColumnPath) -> SchemaUpdate:
        """Move a column in front of another column of the same struct."""
        return self._move(path, "before", reference)

    def move_after(self, path: ColumnPath, reference: ColumnPath) -> SchemaUpdate:
        """Move a column behind another column of the same struct."""
        return self._move(path, "after", reference)

    def set_identifier_fields(self, paths: Iterable[ColumnPath]) -> SchemaUpdate:
        """Replace the columns that identify rows; they may be added in a later step.

        New names of renamed columns are accepted here.
        """
        self._identifiers = (paths,) if isinstance(paths, str) else tuple(paths)
        return self

    # The result

    def apply(self, *, schema_id: int | None = None) -> EvolvedSchema:
        """Return the new schema, with the given or the old schema id, and the highest column id ever used."""
        number = self.schema.schema_id if schema_id is None else schema_id
        struct = self._pending.build()
        try:
            self._check_names(struct)
            schema = Schema(struct.fields, number, (), self.schema.extra)
            identifiers = self._identifier_ids(schema)
            for field_id in identifiers:
                check_identifier_field(schema, field_id)
            schema = Schema(struct.fields, number, identifiers, self.schema.extra)
        except SchemaChangeError:
            raise
        except InvalidRequestError as error:
            raise SchemaChangeError(error.message, hint=error.hint) from error
        return EvolvedSchema(schema, self._last_column_id)

    # Finding columns and checking steps

    def _find(self, action: str, path: ColumnPath) -> tuple[str, NestedField]:
        """Return the start of an error message and the column with its pending changes."""
        what = f"Cannot {action.format(show_path(path))}"
        field = self._pending.find(path)
        if field is None:
            raise FieldNotFoundError(f"{what}: the schema has no such column", hint=self._hint_for_missing(path))
        return what, field

    def _find_retained(self, action: str, path: ColumnPath) -> tuple[str, NestedField]:
        what, field = self._find(action, path)
        self._check_kept(what, field.field_id)
        return what, field

    def _hint_for_missing(self, path: ColumnPath) -> str:
        last = path if isinstance(path, str) else path[-1] if path else ""
        for old, new in self._pending.renamed.items():
            if new == last:
                return f"Within the update that renames it, the column is still {old!r}."
        names = [field.name for field in self.schema.fields]
        listed = names if len(names) <= _MAX_SHOWN_NAMES else [*names[:_MAX_SHOWN_NAMES], "..."]
        return f"The columns are: {', '.join(listed) or '(none)'}."

    def _note(self, field: NestedField) -> SchemaUpdate:
        self._pending.note_change(field)
        return self

    def _check_kept(self, what: str, field_id: int) -> None:
        """Refuse to change a column that is dropped, or a map's key."""
        if self._pending.is_gone(field_id):
            raise SchemaChangeError(f"{what}: it is dropped in the same update", hint="Leave one of the two steps out.")
        self._check_not_map_key(what, field_id)

    def _check_not_map_key(self, what: str, field_id: int) -> None:
        if self._pending.is_in_map_key(field_id):
            raise SchemaChangeError(
                f"{what}: the keys of maps cannot change, nor can their parts",
                hint="Add another map column with the desired keys.",
            )

    def _check_struct_field(self, what: str, field_id: int) -> None:
        if not self._pending.is_struct_field(field_id):
            raise SchemaChangeError(f"{what}: it is a part of a list or map, and those have fixed names and order")

    # Adding

    def _place_of_new(self, path: ColumnPath) -> tuple[int | None, str]:
        """Return the id of the field whose struct gets a new column, or None for the schema, and the column's name."""
        what = f"Cannot add {show_path(path)}"
        parent: ColumnPath
        if isinstance(path, str):
            parent, _, name = path.rpartition(".")
        elif path:
            parent, name = path[:-1], path[-1]
        else:
            raise SchemaChangeError("Cannot add a column: the path is empty")
        if parent == () or (isinstance(path, str) and "." not in path):
            return None, name
        holder = self._pending.find(parent)
        if holder is None:
            raise FieldNotFoundError(
                f"{what}: there is no {show_path(parent)} to add it to",
                hint="A name that has dots itself is given in a tuple: ('a.b',) or ('struct', 'a.b').",
            )
        base_field = self.schema.find_field(holder.field_id)
        if base_field is None or type(base_field.field_type) is not type(holder.field_type):
            step = "is added" if base_field is None else "gets its type"
            raise SchemaChangeError(
                f"{what}: {show_path(parent)} {step} in the same update", hint="Put the field into that type."
            )
        struct_id = self._pending.struct_id(holder)
        if struct_id is None:
            raise SchemaChangeError(
                f"{what}: {show_path(parent)} is {describe_type(holder.field_type)}",
                hint="Columns can be added to structs, lists of structs and maps to structs.",
            )
        self._check_kept(what, struct_id)
        return struct_id, name

    def _check_name_free(self, what: str, parent_id: int | None, name: str) -> None:
        check_own_name(what, name)
        other_id = self._pending.find_child(parent_id, name)
        if other_id is None or self._pending.is_gone(other_id):
            return
        other = self._pending.current(other_id)
        if self._pending.is_added(other_id):
            raise SchemaChangeError(f"{what}: {other.name!r} is added in the same update")
        raise SchemaChangeError(
            f"{what}: a column of that name exists ({other})",
            hint="Drop the column first to have a new one in its place, or choose another name.",
        )

    # Order

    def _move(self, path: ColumnPath, position: _Position, reference: ColumnPath | None) -> SchemaUpdate:
        what, field = self._find_retained("move {}", path)
        self._check_struct_field(what, field.field_id)
        reference_id = None
        if reference is not None:
            reference_id = self._sibling(what, self._pending.parent_of(field.field_id), position, reference)
            if reference_id == field.field_id:
                raise SchemaChangeError(f"{what}: it cannot stand {position} itself")
        self._pending.note_move(Move(field.field_id, position, reference_id))
        return self

    def _place_among_siblings(
        self, what: str, parent_id: int | None, *, first: bool, before: ColumnPath | None, after: ColumnPath | None
    ) -> tuple[_Position | None, int | None]:
        if first + (before is not None) + (after is not None) > 1:
            raise SchemaChangeError(f"{what}: it has more than one place", hint="Give one of first, before and after.")
        if before is not None:
            return "before", self._sibling(what, parent_id, "before", before)
        if after is not None:
            return "after", self._sibling(what, parent_id, "after", after)
        return ("first" if first else None), None

    def _sibling(self, what: str, parent_id: int | None, position: _Position, reference: ColumnPath) -> int:
        """Return the id of a column that must be in the same struct."""
        other = self._pending.find(reference)
        if other is None:
            raise FieldNotFoundError(
                f"{what} {position} {show_path(reference)}: the schema has no such column",
                hint=self._hint_for_missing(reference),
            )
        if self._pending.is_gone(other.field_id):
            raise SchemaChangeError(
                f"{what} {position} {show_path(reference)}: that column is dropped in the same update"
            )
        if self._pending.parent_of(other.field_id) != parent_id:
            raise SchemaChangeError(
                f"{what} {position} {show_path(reference)}: columns move within their own struct only",
                hint="Give both columns by their full names.",
            )
        return other.field_id

    # Applying

    def _check_names(self, struct: StructType) -> None:
        """Refuse two columns with one name, or with names that newly differ only in case if case does not matter."""
        before = self.schema.names_by_id
        seen: dict[str, tuple[int, str]] = {}
        for field, name, _ in walk_fields(struct):
            field_id = field.field_id
            other_id, other = seen.setdefault(name if self.case_sensitive else name.lower(), (field_id, name))
            if other_id == field_id:
                continue
            if other != name and before.get(field_id) == name and before.get(other_id) == other:
                continue
            raise SchemaChangeError(
                f"Cannot change the schema: two columns would be named {name!r}"
                + ("" if other == name else f" and {other!r}, which differ in case only"),
                hint="Rename or drop one of them in the same update.",
            )

    def _identifier_ids(self, schema: Schema) -> tuple[int, ...]:
        """Return the ids of the identifier fields in the new schema."""
        if self._identifiers is not None:
            return tuple(dict.fromkeys(self._identifier_id(path, schema) for path in self._identifiers))
        for field_id in self.schema.identifier_field_ids:
            dropped_id = self._pending.dropped_at(field_id)
            if dropped_id is not None:
                name = self.schema.name_of(field_id)
                role = "is an identifier field" if dropped_id == field_id else f"holds the identifier field {name!r}"
                raise SchemaChangeError(
                    f"Cannot drop column {self.schema.name_of(dropped_id)!r}: it {role}",
                    hint="Set other identifier fields in the same update, with set_identifier_fields().",
                )
        return self.schema.identifier_field_ids

    def _identifier_id(self, path: ColumnPath, schema: Schema) -> int:
        field = self._pending.find(path)
        if field is not None and not self._pending.is_gone(field.field_id):
            return field.field_id
        # Neither a name in the old schema nor an added one: a new name, or a field of an added column.
        new_field = PendingSchema(schema, case_sensitive=self.case_sensitive).find(path)
        if new_field is not None:
            return new_field.field_id
        reason = "the new schema has no such column" if field is None else "it is dropped in the same update"
        raise SchemaChangeError(f"Cannot make {show_path(path)} an identifier field: {reason}")
