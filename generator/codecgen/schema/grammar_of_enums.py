"""The keys of enums."""

from __future__ import annotations

from collections.abc import Mapping

from codecgen.schema.key_types import (
    DOC,
    SINCE,
    Either,
    Form,
    Integer,
    Key,
    MapOf,
    OneOf,
    Use,
    Word,
)

SPELLED = Key(
    Word(),
    "How the format's own documents write the name, where the rule of the manifest does not give it.",
)

ENUMS: Mapping[str, Form] = {
    "enums": Form("Names for numbers.", {"enums": Key(MapOf(Use("enum")), "The enums.", True)}),
    "enum": Form(
        "Names for numbers.",
        {
            "doc": DOC,
            "unknown": Key(
                OneOf(("refuse", "keep")),
                "What a strict reader does with other numbers; refuse by default.",
            ),
            "values": Key(MapOf(Either((Integer(), Use("enum_value")))), "The values.", True),
        },
    ),
    "enum_value": Form(
        "A value of an enum.",
        {
            "value": Key(Integer(), "The number.", True),
            "doc": DOC,
            "since": SINCE,
            "spelled": SPELLED,
        },
    ),
}
