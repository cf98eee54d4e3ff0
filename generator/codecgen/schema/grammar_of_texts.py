"""The keys of texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from codecgen.schema import other_words
from codecgen.schema.key_types import (
    DOC,
    PROSE,
    SINCE,
    Anything,
    Boolean,
    Code,
    Form,
    Integer,
    Key,
    ListOf,
    MapOf,
    Name,
    OneOf,
    Text,
    Use,
    Word,
)
from codecgen.schema.scalars import INTEGERS
from codecgen.schema.texts import (
    LINE_TOLERANCES,
    LINES_ONLY,
    PROPERTIES_ONLY,
    PROPERTY_TOLERANCES,
    TEXT_TOLERANCES,
)


def _tolerances_key(tolerances: Iterable[str], of_text: Iterable[str] = ()) -> Key:
    """Return the grammar of the key ``accepts``: a list of words from ``tolerances``. The help for a
    wrong word that is in ``of_text`` says to write it in the text instead.
    """

    def help(text: str) -> str:
        return f"write `{text}` in `accepts` of the text" if text in of_text else ""

    words = OneOf(tuple(tolerances), help=help)
    return Key(ListOf(words), "What lenient readers take, and strict ones refuse.")


def _decimal_key(string: str) -> Key:
    """Return the grammar of the key ``decimal``, which takes an integer type. The help for types of
    text and floats says to write ``string:`` with the word ``string`` instead.
    """
    return Key(
        OneOf(INTEGERS, "an integer type", lambda text: other_words.decimal_help(text, string)),
        "A whole number in decimal digits, one that the type can hold.",
    )


_REST = "write `string: rest`: the value of a key is all that is left of its line"
_KINDS = {
    "decimal": _decimal_key("word"),
    "string": Key(
        OneOf(("word", "rest")), "Text without blanks, or all that is left of the line, in UTF-8."
    ),
    "uuid": Key(OneOf(("base64url",)), "A uuid in the 22 characters of Base64 for addresses."),
}
_RULES = {
    "default": Key(Code(), "What the builder writes when no value is given."),
    "valid": Key(Code(), "What the format says of the value. Strict readers refuse the rest."),
    "refuse": Key(Code(), "What every reader refuses."),
    "doc": DOC,
    "unit": Key(Word(), "Unit of the number."),
}
_NUMBERS = {"default": ("decimal",), "unit": ("decimal",)}
_ONE = ("decimal", "string", "uuid")

TEXTS: Mapping[str, Form] = {
    "text": Form(
        "A text, in UTF-8: lines, or properties.",
        {
            "text": Key(Name(), "Its name.", True),
            "doc": DOC,
            "since": SINCE,
            "accepts": _tolerances_key(TEXT_TOLERANCES),
            "lines": Key(MapOf(Use("line")), "The lines, from the first to the last."),
            "may_be_empty": Key(
                Boolean(), "There may be no line at all; every value is null then."
            ),
            "final_newline": Key(
                Boolean(),
                "Whether a line feed ends the last line too; it does unless this is false.",
            ),
            "properties": Key(
                MapOf(Use("property")),
                "The keys that are known, in the form of Java's properties: `key=value` lines in any order, and comments.",
            ),
            "unknown": Key(
                OneOf(("refuse", "keep")),
                "What a strict reader does with other keys; refuse by default.",
            ),
            "examples": Key(ListOf(Use("text_example")), "Texts beside what they mean."),
        },
        one_of=(("lines", "properties"),),
        together={
            "may_be_empty": ("lines",),
            "final_newline": ("lines",),
            "unknown": ("properties",),
        },
    ),
    "line": Form(
        "A line with one value, or lines of several.",
        {
            **_KINDS,
            "each": Key(
                MapOf(Use("line_value")), "Lines of these values, one line after the other."
            ),
            "label": Key(Text(), "The word before the value."),
            "separator": Key(Text(), "What stands between values, and after a label."),
            "const": Key(Integer(), "The only value."),
            "counts": Key(Name(), "The value is the number of these lines."),
            **_RULES,
            "accepts": _tolerances_key(LINE_TOLERANCES, {*TEXT_TOLERANCES} - PROPERTIES_ONLY),
        },
        one_of=((*_ONE, "each"),),
        together={
            "label": ("separator",),
            "separator": ("label", "each"),
            "const": ("decimal",),
            "counts": ("decimal",),
            "valid": _ONE,
            "refuse": _ONE,
            **_NUMBERS,
        },
    ),
    "line_value": Form(
        "A value of a line of several.", {**_KINDS, **_RULES}, one_of=(_ONE,), together=_NUMBERS
    ),
    "property": Form(
        "A key that is known, and its value. It may be missing; its value is null then.",
        {
            **_KINDS,
            "decimal": _decimal_key("rest"),
            "string": Key(
                OneOf(("rest",), help=lambda _: _REST), "All that is left of the line, in UTF-8."
            ),
            "spelled": Key(Word(), "The key as the text has it, where that is not the name."),
            **_RULES,
            "accepts": _tolerances_key(PROPERTY_TOLERANCES, {*TEXT_TOLERANCES} - LINES_ONLY),
            "since": SINCE,
        },
        one_of=(_ONE,),
        together=_NUMBERS,
    ),
    "text_example": Form(
        "A text beside what it means.",
        {
            "name": Key(PROSE, "A few words.", True),
            "doc": DOC,
            "since": SINCE,
            "text": Key(Text(), "The text, as it stands in the file."),
            "build": Key(Boolean(), "The text is what the builder makes of the values."),
            "values": Key(
                Anything(),
                "What it means. Values that the builder works out may be left out.",
                True,
            ),
        },
        one_of=(("text", "build"),),
    ),
}
