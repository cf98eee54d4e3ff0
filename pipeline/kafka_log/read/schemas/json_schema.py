"""Decoder of JSON values into the types that a JSON Schema states. The schema gives the types; its other rules are not checked."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

import pyarrow as pa

from kafka_log.read.schemas.registry import (
    JSON_SCHEMA,
    SchemaError,
    SchemaRegistry,
    SchemaVersion,
    parse_json,
)
from kafka_log.read.schemas.shapes import (
    JSON,
    NULL,
    Budget,
    Decode,
    Shape,
    Size,
    check_name,
    name_field,
)

_SCALARS = {
    "null": NULL,
    "boolean": Shape(pa.bool_()),
    "integer": Shape(pa.int64()),
    "number": Shape(pa.float64()),
    "string": Shape(pa.string()),
}
_EXACT = 1 << 53
"""Number, of either sign, from which on float64 does not hold each integer."""

_COMBINING = ("allOf", "anyOf", "oneOf", "not", "if", "$dynamicRef", "$recursiveRef")
"""Keywords under which the members of a type are not known, except for a choice of null and one other type."""


class JsonSchema:
    """JSON Schema, as the types of columns.

    What has no single type becomes JSON text: several types, combined schemas, tuples, objects with further properties of unknown
    names, and schemas that contain themselves.

    Args:
        version: The schema.
        registry: Has the schemas to which it refers.

    Raises:
        SchemaError: If the schema is invalid, or a reference leads nowhere.
    """

    def __init__(self, version: SchemaVersion, registry: SchemaRegistry) -> None:
        self._documents: dict[str, Any] = {}
        try:
            for name, other in registry.resolve_references(version):
                if other.type != JSON_SCHEMA:
                    raise SchemaError(
                        f"the schema refers to schema {other.label}, which has another type, {other.type}: values of this schema are not decoded"
                    )
                self._add_document(name, parse_json(other.text))
            root = parse_json(version.text)
            self._add_document("", root)
            self.shape = self._shape_of(root, "", frozenset(), 0, Budget())
        except RecursionError:
            raise SchemaError(f"schema {version.label} is invalid: it is nested too deep") from None
        except ValueError as error:  # urllib raises it for invalid addresses
            raise SchemaError(f"schema {version.label} is invalid: {error}") from None

    def decoder(self) -> Decode:
        """Return a function that decodes the bytes of one value. It raises ValueError for bytes
        that are no JSON text, values of another type than the schema states, properties without a
        column, equal names in an object, and numbers too large for float64. Null is accepted
        everywhere, properties may be missing, and no other rules of the schema are checked.
        """
        return partial(_decode, self.shape)

    def measure(self, shape: Shape) -> Size:
        """Return how many parts values can have in columns of ``shape``, which holds them."""
        return _measure(shape)

    def _add_document(self, name: str, schema: Any) -> None:
        """Add a schema under a name by which others refer to it, and under its ``$id``."""
        self._documents[name] = schema
        if isinstance(schema, dict) and isinstance(schema.get("$id"), str):
            self._documents.setdefault(urldefrag(schema["$id"]).url, schema)

    def _shape_of(
        self, schema: Any, document: str, above: frozenset[str], depth: int, budget: Budget
    ) -> Shape:
        """Return the shape of a schema of a document. It is JSON text for true and false, an inner
        ``$id``, several types, combining keywords other than null or one type, and arrays without
        one schema of all items. ``above`` are the references that lead to it. Raise SchemaError if
        a reference leads nowhere, it is no object, or too large.
        """
        budget.take(depth)
        if not isinstance(schema, dict):
            if isinstance(schema, bool):
                return JSON
            raise SchemaError("a part of the schema is neither an object nor true or false")
        if "$id" in schema and schema is not self._documents[document]:
            return JSON  # references in it are relative to its own address
        if "$ref" in schema:
            return self._shape_of_reference(schema["$ref"], document, above, depth, budget)
        for keyword in ("anyOf", "oneOf"):
            choices = schema.get(keyword)
            if isinstance(choices, list) and not schema.keys() & {"type", "properties", "items"}:
                others = [choice for choice in choices if choice != {"type": "null"}]
                if len(others) == 1:
                    return self._shape_of(others[0], document, above, depth + 1, budget)
        if schema.keys() & set(_COMBINING):
            return JSON
        kind = _type_of(schema)
        if kind == "object":
            return self._shape_of_object(schema, document, above, depth, budget)
        if kind == "array":
            item = schema.get("items")
            if "prefixItems" in schema or "additionalItems" in schema or not isinstance(item, dict):
                return JSON
            return Shape(item=self._shape_of(item, document, above, depth + 1, budget))
        return _SCALARS.get(kind or "", JSON)

    def _shape_of_object(
        self,
        schema: Mapping[str, Any],
        document: str,
        above: frozenset[str],
        depth: int,
        budget: Budget,
    ) -> Shape:
        """Return the shape of a type ``object``: a struct if it has properties, and
        ``additionalProperties`` is false or missing; a map if it has none and
        ``additionalProperties`` is an object; else JSON text, also with ``patternProperties`` or
        ``unevaluatedProperties``. Raise SchemaError if ``properties`` is not an object, or a name
        cannot be that of a column.
        """
        properties, further = schema.get("properties"), schema.get("additionalProperties", False)
        if schema.keys() & {"patternProperties", "unevaluatedProperties"}:
            return JSON
        if not properties:
            if not isinstance(further, dict):
                return JSON
            item = self._shape_of(further, document, above, depth + 1, budget)
            return Shape(item=item, is_map=True)
        if not isinstance(properties, dict):
            raise SchemaError("'properties' of the schema is not an object")
        if further is not False:
            return JSON
        fields = []
        for name, of_property in properties.items():
            check_name(name)
            inner = self._shape_of(of_property, document, above, depth + 1, budget)
            fields.append((name, inner))
        return Shape(fields=tuple(fields))

    def _shape_of_reference(
        self, reference: Any, document: str, above: frozenset[str], depth: int, budget: Budget
    ) -> Shape:
        """Return the shape of the schema to which a ``$ref`` refers; JSON text if the reference is
        in ``above``, so that the schema contains itself. Raise SchemaError if it is not a text or
        leads nowhere.
        """
        if not isinstance(reference, str):
            raise SchemaError("'$ref' of the schema is not text")
        url, fragment = urldefrag(reference)
        name = document
        if url:
            own = self._documents[document]
            base = own.get("$id") if isinstance(own, dict) else None
            names = [url, *([urljoin(base, url)] if isinstance(base, str) else [])]
            name = next((n for n in names if n in self._documents), "")
            if name not in names:
                raise SchemaError(
                    f"'$ref' of the schema names another schema that is not among its references: {reference!a}"
                )
        whole = f"{name}#{fragment}"
        if whole in above:
            return JSON
        found = _follow_pointer(self._documents[name], fragment, reference)
        return self._shape_of(found, name, above | {whole}, depth + 1, budget)


def _type_of(schema: Mapping[str, Any]) -> str | None:
    """Return the type that a schema states in ``type``, ``null`` beside another ignored (alone it
    is ``null``); None if it states several. Without ``type``: ``string`` if ``enum`` or ``const``
    has only texts, else ``object`` if it has ``properties``, else None.
    """
    kind = schema.get("type")
    if isinstance(kind, list):
        others = [k for k in kind if k != "null"]
        kind = others[0] if len(others) == 1 else "null" if kind and not others else None
    if kind is None and "type" not in schema:
        values = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if isinstance(values, list) and values and all(isinstance(v, str) for v in values):
            return "string"
        return "object" if isinstance(schema.get("properties"), dict) else None
    return kind if isinstance(kind, str) else None


def _follow_pointer(document: Any, pointer: str, reference: str) -> Any:
    """Return the part of a document to which a JSON pointer leads; the document itself for ``""``.
    Raise SchemaError, which names ``reference``, if it leads nowhere or is the name of an anchor.
    """
    found = document
    try:
        if pointer and not pointer.startswith("/"):
            raise KeyError(pointer)  # an anchor
        for step in unquote(pointer).split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            found = found[int(name) if isinstance(found, list) else name]
    except (LookupError, TypeError, ValueError):
        raise SchemaError(
            f"'$ref' of the schema names a part that does not exist: {reference!a}"
        ) from None
    return found


def _measure(shape: Shape) -> Size:
    """Return bounds, by their bytes, for the number of cells that JSON values fill in columns of a
    shape: each element of a list or map takes 2 bytes or more.
    """
    if shape.is_json:
        return Size(1, 0.5, 1)
    if shape.fields is not None:
        return Size.sum([Size(1, 0, 2), *(_measure(inner) for _, inner in shape.fields)])
    if shape.item is not None:
        inner = _measure(shape.item)
        return Size(inner.parts, inner.per_byte, 2).repeat(int(shape.is_map))
    return Size(1, 0, 1)


def _decode(shape: Shape, data: bytes) -> Any:
    """Return the value of a JSON text in the types of a shape, as :func:`_check` does. Raise
    ValueError for bytes that are no UTF-8 or no JSON, NaN, equal names in an object, numbers too
    large for float64, values of another type, and properties without a column.
    """
    try:
        return _check(shape, _DECODER.decode(data.decode()), "")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 from byte {error.start} on") from None
    except json.JSONDecodeError as error:
        raise ValueError(
            f"it is not JSON: {error.msg.removesuffix(' at')} at character {error.pos}"
        ) from None
    except RecursionError:
        raise ValueError("the JSON is nested too deep to be read") from None


def _check(shape: Shape, value: Any, path: str) -> Any:
    """Return a JSON value in the types of a shape: null and JSON text unchanged, a float without a
    fraction as int for an integer column. Raise ValueError, which names its ``path``, if it is of
    another type, has a property without a column, or is such a float of 2**53 or more.
    """
    if value is None or shape.is_json:
        return value
    if shape.fields is not None:
        if isinstance(value, dict):
            known, found = shape.members, {}
            for name, item in value.items():
                inner = known.get(name)
                if inner is None:
                    raise ValueError(
                        f"it has the field {_join(path, name)}, which the schema lacks"
                    )
                found[name] = _check(inner, item, _join(path, name))
            return found
    elif shape.item is not None:
        if shape.is_map and isinstance(value, dict):
            return {name: _check(shape.item, v, f"{path}[{name!a}]") for name, v in value.items()}
        if not shape.is_map and isinstance(value, list):
            return [_check(shape.item, v, f"{path}[{i}]") for i, v in enumerate(value)]
    elif type(value) in _PYTHON_TYPES[shape.type]:
        if shape.type == pa.int64() and isinstance(value, float):
            if not value.is_integer():
                raise ValueError(
                    f"{name_field(path)} is {value}, not an integer as the schema requires"
                )
            if abs(value) >= _EXACT:
                raise ValueError(
                    f"{name_field(path)} is {value}, which float64 does not hold to the last digit"
                )
            return int(value)
        return value
    raise ValueError(
        f"{name_field(path)} is {_JSON_NAMES[type(value)]}, not {_describe_shape(shape)} as the schema requires"
    )


def _join(path: str, name: str) -> str:
    """Return the path of a property of the object at ``path``."""
    plain = name if name.isidentifier() else f"{name!a}"
    return f"{path}.{plain}" if path else plain


def _describe_shape(shape: Shape) -> str:
    """Return what JSON values a shape takes, in the words of JSON."""
    if shape.fields is not None or shape.is_map:
        return "an object"
    return "an array" if shape.item is not None else _TYPE_NAMES.get(shape.type, str(shape.arrow))


_JSON_NAMES = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "text",
    list: "an array",
    dict: "an object",
}
_TYPE_NAMES = {
    pa.null(): "null",
    pa.bool_(): "true or false",
    pa.int64(): "an integer",
    pa.float64(): "a number",
    pa.string(): "text",
}


_PYTHON_TYPES = {
    pa.null(): (),
    pa.bool_(): (bool,),
    pa.int64(): (int, float),
    pa.float64(): (int, float),
    pa.string(): (str,),
}


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of a JSON object, pairs of name and value, as a dict. Raise ValueError if
    two have one name.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a JSON object has two members of the same name")
    return found


def _parse_float(text: str) -> float:
    """Return the float of a JSON number. Raise ValueError if it is too large for float64."""
    number = float(text)
    if math.isinf(number):
        raise ValueError("a number in the JSON is too large for float64")
    return number


def _refuse_constant(text: str) -> Any:
    """Raise ValueError: NaN and infinities are no JSON."""
    raise ValueError(f"{text} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_make_object, parse_float=_parse_float, parse_constant=_refuse_constant
)
