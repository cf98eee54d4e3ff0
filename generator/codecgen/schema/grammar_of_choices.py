"""The keys of choices, and of the fields and elements that are one."""

from __future__ import annotations

from collections.abc import Mapping

from codecgen.schema.key_types import (
    DOC,
    SINCE,
    ByVersion,
    Code,
    Declared,
    Either,
    Form,
    Key,
    LayoutName,
    MapOf,
    Name,
    OneOf,
)
from codecgen.schema.scalars import INTEGERS, LENGTHS, VARINTS

BYTE_LENGTHS = tuple(name for name in LENGTHS if name != "compact")
_GIVEN = Key(Code(), "The value that decides which case it is, of a field before.")
_UNKNOWN = Key(OneOf(("bytes",)), "What has no case is the bytes that are left, and is kept.")

FIELD_OF_CHOICE: Mapping[str, Key] = {
    "choice": Key(Declared(), "One of the layouts of a choice."),
    "given": _GIVEN,
    "version": Key(Code(), "The version of a layout or of the case, of a field before."),
    "unknown": _UNKNOWN,
}
"""Keys of a field. It has a length in bytes before it by the key of that name."""

ELEMENT_OF_CHOICE: Mapping[str, Key] = {
    "choice": Key(Declared(), "Each is one of the layouts of a choice."),
    "given": _GIVEN,
    "version": Key(Code(), "The version of each case, of a field before the array."),
    "length": Key(
        Either((OneOf(BYTE_LENGTHS), ByVersion(OneOf(BYTE_LENGTHS)))),
        "Type of the length in bytes before each.",
    ),
    "unknown": _UNKNOWN,
}

TOGETHER: Mapping[str, tuple[str, ...]] = {"given": ("choice",), "unknown": ("choice",)}

CHOICES: Mapping[str, Form] = {
    "choice": Form(
        "One of several layouts.",
        {
            "choice": Key(Name(), "Its name.", True),
            "doc": DOC,
            "since": SINCE,
            "by": Key(Name(), "The field, at the same byte in all of them, whose value decides."),
            "given": Key(
                Either((OneOf((*INTEGERS, *VARINTS)), Declared())),
                "The enum, or the type of the number, whose value decides: the caller has it from elsewhere.",
            ),
            "cases": Key(
                MapOf(LayoutName(), numbers=True, ranges=True),
                "The layout, or the choice, for each value; `0-3` stands for four of them.",
                True,
            ),
        },
        one_of=(("by", "given"),),
    ),
}
