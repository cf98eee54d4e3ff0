"""Fields that say their length or their count as other languages do, and lists where a mapping is meant."""

from __future__ import annotations

from collections.abc import Collection

from codecgen.schema import yaml_tree
from codecgen.schema.other_words import BYTES, TEXTS
from codecgen.schema.scalars import LENGTHS
from codecgen.schema.types import ZERO_TERMINATED


def field_mistake(
    name: str, field: yaml_tree.Mapping, fields: Collection[str]
) -> tuple[str, str, yaml_tree.Node, str] | None:
    """What is wrong with a field that says its length or its count in the words of other languages: number, message,
    where, and what helps. ``fields`` are the names of the fields around it."""
    given = {key.text: value for key, value in field.entries}
    fields = set(fields) - {*LENGTHS, "rest", ZERO_TERMINATED}
    counts = given.get("counts")
    if counts is not None and "array" in given and isinstance(counts, yaml_tree.Scalar):
        help = f'write `counts: {name}` at "{counts.text}"'
        if counts.text in LENGTHS:
            help = f"write `count: {counts.text}`: the type of the number in front"
        return "C016", "`counts` stands at the number, not at the array", counts, help
    kind = given.get("type")
    if isinstance(kind, yaml_tree.Scalar) and kind.text.lower() in (*TEXTS, *BYTES):
        ours = "string" if kind.text.lower() in TEXTS else "bytes"
        length = given.get("length") or given.get("size")
        if isinstance(length, yaml_tree.Scalar):
            message = f"a type is expected, not {kind.text!r}"
            return "C013", message, kind, _length(name, ours, length.text, fields)
        return None
    for key in ("length", "count", "string", "bytes"):
        value = given.get(key)
        if isinstance(value, yaml_tree.Scalar) and value.text in fields:
            ours = next((one for one in ("string", "bytes", "array") if one in given), "")
            message = f'a type is expected, not the field "{value.text}"'
            if key == "count" and "array" not in given:
                help = f"write `counts: {value.text}`: the field is the number of its elements"
            elif key == "length" and not ours:
                help = f"write `measures: {{from: {value.text}, to: {value.text}}}`: the field is the length of that range"
            elif key == "count":
                help = f'leave it out, and write `counts: {name}` at "{value.text}"'
            elif ours == "array":
                measures = f"`measures: {{from: {name}, to: {name}}}`"
                help = f'write `until: end`, and at "{value.text}" {measures}'
            elif ours:
                help = _length(name, ours, value.text, fields)
            else:
                continue
            return "C013", message, value, help
    ours = next((one for one in ("string", "bytes") if one in given), "")
    length = given.get("length")
    if ours and "array" not in given and isinstance(length, yaml_tree.Scalar):
        return "C011", '"length" goes with "array"', length, f"write `{ours}: {length.text}`"
    return None


def _length(name: str, ours: str, length: str, fields: Collection[str]) -> str:
    """How bytes or text say their length, which is a field, a number or a type."""
    if length in fields:
        return f'write `{ours}: rest`, and at "{length}" `measures: {{from: {name}, to: {name}}}`'
    return f"write `{ours}: {length}`"


def list_of_names(node: yaml_tree.Sequence) -> str:
    """What to do about a list where a mapping by name is meant."""
    first = node.items[0] if node.items else None
    found = first.get("name") or first.get("id") if isinstance(first, yaml_tree.Mapping) else None
    if isinstance(found, yaml_tree.Scalar):
        return f"write `{found.text}: ..`, without a dash and without a key for the name"
    return "write `name: ..` for each, without a dash"


def key_names(node: yaml_tree.Node | None) -> frozenset[str]:
    """The keys of a mapping; of anything else none."""
    found = node.entries if isinstance(node, yaml_tree.Mapping) else ()
    return frozenset(key.text for key, _ in found)
