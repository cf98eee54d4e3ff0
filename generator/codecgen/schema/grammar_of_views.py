"""The keys of views."""

from __future__ import annotations

from collections.abc import Mapping

from codecgen.schema.key_types import (
    DOC,
    Boolean,
    Code,
    Declared,
    Either,
    Form,
    Key,
    ListOf,
    MapOf,
    Name,
    OneOf,
    Use,
    Word,
)
from codecgen.schema.types import COLUMN_TYPES

VIEWS: Mapping[str, Form] = {
    "view": Form(
        "How layouts that stand one after the other become the rows of one table.",
        {
            "view": Key(Name(), "Its name.", True),
            "doc": DOC,
            "of": Key(
                Either((MapOf(Declared()), Declared())),
                "What stands one after the other: a layout, or the layouts of a choice. Or payloads: byte strings by names of their "
                "own, each a choice or a layout.",
                True,
            ),
            "columns": Key(MapOf(Use("column")), "The columns of the table, in order.", True),
            "rows": Key(ListOf(Use("rows")), "What becomes a row, layout by layout.", True),
            "kernels": Key(
                Boolean(),
                "Compile kernels for this view into payloads. Without them the reference codecs read it. Views of entries "
                "have kernels without asking.",
            ),
        },
    ),
    "column": Form(
        "A column of a view.",
        {
            "type": Key(OneOf(COLUMN_TYPES), "The Arrow type of its values."),
            "list": Key(
                Either((OneOf(COLUMN_TYPES), MapOf(Use("column")))),
                "Its values are lists: of this type, or of structs with these fields, named as in the elements.",
            ),
            "struct": Key(
                MapOf(Use("column")),
                "Its values are structs with these fields, named as in the layout that the field holds.",
            ),
            "nullable": Key(Boolean(), "Whether a value may be null."),
            "on_request": Key(Boolean(), "Left out unless it is asked for."),
            "default": Key(
                Code(),
                "What rows are written with where they lack the column: a number, or another column. Without it the "
                "column is null or an empty list, and must be there if it can be neither.",
            ),
            "unit": Key(Word(), "Unit of the number."),
            "doc": DOC,
        },
        one_of=(("type", "list", "struct"),),
    ),
    "rows": Form(
        "What of a layout becomes rows.",
        {
            "of": Key(
                Either((MapOf(Declared()), Declared())),
                "The layout, in all its versions. In a view into payloads the layout of each part: that of others is not "
                "looked at.",
                True,
            ),
            "each": Key(
                Either((Declared(), ListOf(Declared()))),
                "The array at its end whose elements are the rows; the layout itself without it. Several arrays with as many "
                "elements, the last one at its end: a row is made of one element of each. In a view into payloads an "
                "array of a part, wherever it lies: `value.members`.",
            ),
            "header_only": Key(
                Boolean(),
                "The row is made of fields at fixed places alone: the rest is not looked at, nor checksums.",
            ),
            "when": Key(Code(), "These are the rows only when this holds."),
            "full_check": Key(
                Code(), "When this holds, a strict reader looks at more than the columns show."
            ),
            "columns": Key(
                MapOf(Code()),
                "The value of each column: fields, `item.field` of the element, `array.name` for what is "
                "derived of it, or a field of it if there are several arrays, `position`, `size`. In a view into payloads `part.field`, `part == null`, `row`. A column that is "
                "left out is null, or an empty list.",
                True,
            ),
            "write": Key(Use("write"), "How rows become bytes again."),
        },
    ),
    "write": Form(
        "How rows become bytes again. Fields that the layout itself settles (lengths, counts, checksums, constants) are "
        "not named, nor those that keep their default.",
        {
            "entry": Key(
                MapOf(Either((MapOf(Code()), Code()))),
                "The fields of the layout, bits by their members, from the columns: with `each` as `first(column)`, "
                "`last(column)`, `max(column)`, `min(column)` of its rows, otherwise as `column`. `version` is that of the "
                "layout, `entry.field` a field named before.",
                True,
            ),
            "item": Key(
                MapOf(Either((MapOf(Code()), Code()))),
                "The fields of an element: `column` is that of its row, `first(column)` that of the first row, "
                "`entry.field` a field of the layout.",
            ),
        },
    ),
}
"""The forms of a view and of what is in one."""
