"""Resolution of Avro values to another schema, where fastavro does less than values need: defaults and logical types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from kafka_log.read.schemas.avro_types import (
    ARROW_TYPE,
    KEPT_LOGICAL_TYPE,
    RECORDS,
    Types,
    unwrap,
)
from kafka_log.read.schemas.logical_values import mark_value
from kafka_log.read.schemas.registry import SchemaError

MAX_DEFAULTS = 4_096
"""Maximum characters, and maximum parts, of the defaults of a schema to which values are resolved. Each value may get all of them."""

OTHER_VERSION = "resolve values to another version, or leave schema_version (--schema-version) out"
"""What to do about a schema whose defaults are too large. Only those of the version to which values are resolved count."""

_NAMED = (*RECORDS, "enum", "fixed")

_PROMOTED = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
"""Types to which values of a type are resolved, beside the type itself."""

_JSON_TYPES = {
    "null": type(None),
    "boolean": bool,
    "int": int,
    "long": int,
    "float": int | float,
    "double": int | float,
    "array": list,
    "map": dict,
    "record": dict,
    "error": dict,
}
"""Types in JSON of the defaults of a type; the others have texts."""


class DefaultValues:
    """Reader of the defaults of fields, which schemas have as JSON, as fastavro reads other values.

    Args:
        named: Named types of the schema.
    """

    def __init__(self, named: Types) -> None:
        self._named = named
        self._left = MAX_DEFAULTS

    def read(self, schema: Any, default: Any) -> Any:
        """Return the value of a type that a default in JSON stands for: bytes from a text with a
        character for each, a record with the defaults of the fields that it lacks; of a union, a
        value of the first branch that can have the default. Raise SchemaError if a field of a
        record has no value, or all defaults together have more than 4,096 parts; ValueError for
        characters that are no byte; StopIteration if no branch can have it. Other types are not
        checked: a JSON value that does not fit is returned as it is, or raises AttributeError or
        TypeError.
        """
        self._left -= 1
        if self._left < 0:
            raise SchemaError(
                f"the defaults of its fields have more than {MAX_DEFAULTS:,} parts, the most for which kafka-log resolves values to a version: {OTHER_VERSION}"
            )
        schema = unwrap(schema, self._named)
        if isinstance(schema, list):
            return self._read_branch([unwrap(s, self._named) for s in schema], default)
        kind = schema["type"]
        if kind in ("bytes", "fixed"):
            return mark_value(default.encode("latin-1"), schema.get(ARROW_TYPE))
        if kind in RECORDS:
            return {f["name"]: self._read_field(f, default) for f in schema["fields"]}
        if kind == "array":
            return [self.read(schema["items"], item) for item in default]
        if kind == "map":
            return {name: self.read(schema["values"], item) for name, item in default.items()}
        return mark_value(default, schema.get(ARROW_TYPE))

    def _read_branch(self, branches: Sequence[Any], default: Any) -> Any:
        """Return the value of a union that a default stands for, by the first branch that can have
        it: a pair of name and value for a record, if several branches are records. Raise
        StopIteration if no branch can; else as :meth:`read`.
        """
        branch = next(b for b in branches if _may_have(b["type"], default))
        value = self.read(branch, default)
        is_named = sum(b["type"] in RECORDS for b in branches) > 1 and branch["type"] in RECORDS
        return (branch["name"], value) if is_named else value

    def _read_field(self, field: Any, record: Any) -> Any:
        """Return the value of a field in the default of a record: its own, or the default of the
        field. Raise SchemaError if there is neither; else as :meth:`read`.
        """
        name = field["name"]
        if name not in record and "default" not in field:
            raise SchemaError(
                f"the default of a record has no field {name!a}, so that values cannot be resolved to this version: {OTHER_VERSION}"
            )
        return self.read(field["type"], record.get(name, field.get("default")))


def _may_have(kind: str, default: Any) -> bool:
    """Return whether a type can have a default in JSON, by the type of the JSON value."""
    is_boolean = isinstance(default, bool)
    return is_boolean == (kind == "boolean") and isinstance(default, _JSON_TYPES.get(kind, str))


class LogicalTypes:
    """Comparison of the logical types of two schemas.

    Avro resolves the numbers and bytes below a logical type. A number of milliseconds would become one of microseconds with the
    same digits.

    Args:
        writer: Named types of the writer's schema.
        reader: Named types of the schema to which values are resolved.
    """

    def __init__(self, writer: Types, reader: Types) -> None:
        self._writer = writer
        self._reader = reader

    def compare(self, w: Any, r: Any, path: str = "the value") -> None:
        """Raise SchemaError, which names the part, if values of the type ``w`` have a logical type
        whose numbers mean something else in that of ``r``: another unit, scale or time zone. Types
        that Avro does not resolve to each other are passed over.

        Args:
            w: The writer's type.
            r: The type to which values are resolved.
            path: Name of the part of the value.
        """
        w, r = unwrap(w, self._writer), unwrap(r, self._reader)
        if isinstance(w, list) or isinstance(r, list):
            for branch in w if isinstance(w, list) else [w]:
                others = r if isinstance(r, list) else [r]
                found = [other for other in others if self._resolves(branch, other)]
                if found:
                    self.compare(branch, found[0], path)
        elif w["type"] in RECORDS and r["type"] in RECORDS:
            written = {f["name"]: f["type"] for f in w["fields"]}
            for f in r["fields"]:
                names = [n for n in (f["name"], *f.get("aliases", ())) if n in written]
                if names:
                    self.compare(written[names[0]], f["type"], f"field {f['name']!a}")
        elif w["type"] == r["type"] and w["type"] in ("array", "map"):
            name = "items" if w["type"] == "array" else "values"
            self.compare(w[name], r[name], path)
        elif _differ(w.get(ARROW_TYPE), r.get(ARROW_TYPE)):
            raise SchemaError(
                f"{path} is {_describe(w)}, and {_describe(r)} in the version to which values are resolved: Avro does not convert it"
            )

    def _resolves(self, w: Any, r: Any) -> bool:
        """Return whether fastavro resolves values of a branch to a type. Of two named types only
        the names count, without namespaces, or an alias of the reader's type. Other types are
        equal, or the branch is promoted to the type (:data:`_PROMOTED`); items of arrays and values
        of maps are not compared.
        """
        w, r = unwrap(w, self._writer), unwrap(r, self._reader)
        if w["type"] in _NAMED and r["type"] in _NAMED:
            own = w["name"].rpartition(".")[2]
            aliases = r.get("aliases", ())
            return own == r["name"].rpartition(".")[2] or not {own, w["name"]}.isdisjoint(aliases)
        return r["type"] in (w["type"], *_PROMOTED.get(w["type"], ()))


def _differ(a: Any, b: Any) -> bool:
    """Return whether the same number means something else in two logical types (None: no logical
    type, which has any meaning).
    """
    if a is None or b is None:
        return False
    if pa.types.is_decimal(a) and pa.types.is_decimal(b):
        return bool(a.scale != b.scale)
    return bool(a != b)


def _describe(schema: Any) -> str:
    """Return the name of a logical type, with the scale of a decimal."""
    name = str(schema[KEPT_LOGICAL_TYPE])
    return f"{name} with scale {schema.get('scale', 0)}" if name == "decimal" else name
