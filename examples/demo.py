"""A tour of what works today, run by `make demo`. Nothing here needs Spark or Java."""

from __future__ import annotations

import frazil
from frazil.spec.types import LONG, STRING, TIMESTAMPTZ, ListType, NestedField, StructType


def main() -> None:
    events = frazil.Schema(
        (
            NestedField(1, "id", LONG, required=True),
            NestedField(2, "ts", TIMESTAMPTZ),
            NestedField(3, "kind", STRING, doc="what happened"),
            NestedField(4, "payload", StructType((NestedField(5, "tags", ListType(6, STRING)),))),
        ),
        identifier_field_ids=(1,),
    )

    print("A schema, each field with its id:")
    for column in events.fields:
        print(f"  {column}")

    print("\nThe same with two columns, nested ones by their full name:")
    for column in events.select(["id", "payload.tags"]).fields:
        print(f"  {column}")

    print("\nEvery error says what cannot be, and what to do:")
    try:
        events.field("knid")
    except frazil.FrazilError as error:
        print("  " + str(error).replace("\n", "\n  "))


if __name__ == "__main__":
    main()
