"""The keys of examples and of overhead tables."""

from __future__ import annotations

from collections.abc import Mapping

from codecgen.schema.key_types import (
    DOC,
    SINCE,
    Anything,
    Boolean,
    Form,
    Hex,
    Integer,
    Key,
    LayoutName,
    ListOf,
    MapOf,
    Name,
    Text,
    Use,
)

EXAMPLES: Mapping[str, Form] = {
    "example": Form(
        "Bytes beside what they mean.",
        {
            "name": Key(Text(), "A few words.", True),
            "doc": DOC,
            "since": SINCE,
            "version": Key(Integer(), "The version of the layout that the bytes are in."),
            "hex": Key(Hex(), "The bytes."),
            "build": Key(Boolean(), "The bytes are what the builder makes of the values."),
            "values": Key(
                Anything(),
                "What they mean. Fields that the builder works out may be left out.",
                True,
            ),
        },
        one_of=(("hex", "build"),),
    ),
    "overhead": Form(
        "A table of the bytes that layouts add to what they carry.",
        {
            "doc": DOC,
            "sizes": Key(ListOf(Integer()), "Numbers of messages: the rows.", True),
            "columns": Key(ListOf(Use("overhead_column")), "The columns.", True),
            "notes": Key(Text(), "What a reader should know beside the table."),
        },
    ),
    "overhead_column": Form(
        "A column of an overhead table.",
        {
            "title": Key(Text(), "Its title.", True),
            "layout": Key(LayoutName(), "The layout.", True),
            "array": Key(
                Name(), "The array that holds the messages, when one layout holds them all."
            ),
            "each": Key(MapOf(Integer()), "The bytes of a message's fields.", True),
            "number": Key(Name(), "The field of a message that counts from 0."),
        },
    ),
}
