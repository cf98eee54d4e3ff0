"""The order of keys in the canonical form: what a thing is, what it holds, and last what it means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codecgen.schema import grammar, key_types

_ORDER: Mapping[str, Sequence[str]] = {
    "layout": (
        *("layout", "doc", "since", "draft", "endian", "versions", "version_notes", "message"),
        *("flexible", "accepts", "fields", "tagged", "rules", "build", "derived"),
        *("documentation", "examples"),
    ),
    "field": (
        *("tag", "type", "bits", "bytes", "string", "padded", "padding", "array", "layout"),
        *("fields", "choice", "given", "version", "length", "unknown", "count", "until"),
        *("nesting", "at_least", "checksum", "mask", "covers", "enum", "only", "versions"),
        *("endian", "unit", "none", "default", "is", "const", "when", "measures", "counts"),
        *("valid", "refuse", "since", "accepts", "compressed", "spelled", "sensitive"),
        *("doc", "documentation", "members"),
    ),
    "bit": (
        *("at", "reserved", "versions", "spelled", "enum", "only", "default", "since"),
        *("doc", "documentation"),
    ),
    "column": ("type", "list", "struct", "nullable", "on_request", "default", "unit", "doc"),
    "rows": ("of", "each", "when", "header_only", "full_check", "columns", "write"),
    "example": ("name", "version", "since", "doc", "hex", "build", "values"),
    "enum_value": ("value", "spelled", "since", "doc"),
    "misprint": ("as", "versions", "until", "doc"),
    "rule": ("about", "versions", "since", "is", "ascending", "doc"),
    "view": ("view", "doc", "of", "kernels", "columns", "rows"),
    "text": (
        *("text", "doc", "since", "accepts", "may_be_empty", "final_newline", "unknown"),
        *("lines", "properties", "examples"),
    ),
    "compressed": ("by", "except", "variants", "limit"),
    "text_example": ("name", "since", "doc", "text", "build", "values"),
    "line": (
        *("label", "separator", "decimal", "string", "uuid", "each", "const", "counts"),
        *("default", "valid", "refuse", "unit", "accepts", "doc"),
    ),
    "line_value": ("decimal", "string", "uuid", "default", "valid", "refuse", "unit", "doc"),
    "property": (
        *("decimal", "string", "uuid", "spelled", "unit", "default", "valid", "refuse"),
        *("since", "accepts", "doc"),
    ),
}
"""Forms whose canonical order is not that of their keys in the grammar."""

NESTED: Mapping[str, Sequence[str]] = {
    "field": ("array", "fields", "members"),
    "column": ("list", "struct"),
    "line": ("each",),
}
"""Keys that come last, by form, if their value takes several lines."""


def sort_key(form: str, key: str) -> tuple[int, int]:
    """Return the place of a key in the canonical order of its form. A key that the order of the
    form does not name stands before ``doc`` (without ``doc``: last), in the order of the grammar.
    Raise KeyError if the grammar has no such form.
    """
    known = list(grammar.FORMS[form].keys)
    order = list(_ORDER.get(form, known))
    number = known.index(key) if key in known else len(known)
    if key in order:
        return order.index(key), 0
    return order.index("doc") if "doc" in order else len(order), number - len(known) - 1


def kind_of(form: str, key: str) -> key_types.Kind:
    """Return the kind of value that a key of a form has."""
    spec = grammar.FORMS[form].keys.get(key)
    return key_types.Anything() if spec is None else spec.kind
