"""Decoders of Avro values, by fastavro. Each result is encoded again, because fastavro accepts some invalid bytes."""

from __future__ import annotations

import io
import json
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from codecgen.runtime.nouns import count_noun
from kafka_log.read.schemas.avro_faults import find_fault
from kafka_log.read.schemas.avro_resolution import (
    MAX_DEFAULTS,
    OTHER_VERSION,
    DefaultValues,
    LogicalTypes,
)
from kafka_log.read.schemas.avro_types import (
    ARROW_TYPE,
    KEPT_LOGICAL_TYPE,
    LOGICAL_TYPE,
    MARKED,
    PRIMITIVES,
    RECORDS,
    logical_type,
    scalar_shape,
)
from kafka_log.read.schemas.logical_values import mark_value
from kafka_log.read.schemas.registry import (
    AVRO,
    SchemaError,
    SchemaRegistry,
    SchemaVersion,
    parse_json,
)
from kafka_log.read.schemas.shapes import JSON, NULL, Budget, Decode, Shape, Size, check_name

if TYPE_CHECKING:
    from kafka_log.read.schemas.avro_programs import Program

_MIN_BYTES = {"null": 0, "float": 4, "double": 8}
"""Minimum bytes of primitive types; 1 for the others."""

MIN_VALUES_FOR_KERNEL = 50
"""Minimum number of values for one call of the kernel. It takes as long as fastavro for so many."""

MIN_VALUES_TO_LOAD_KERNEL = 10_000
"""Minimum number of values for the kernel if its machine code is kept on disk. Loading it takes 0.1 s of CPU. fastavro takes 7 us a
value or more, the kernel 0.2 us."""

MIN_VALUES_TO_LOAD_NUMBA = 50_000
"""Minimum number of values for the kernel if numba is not loaded either, which takes 0.3 s."""

MIN_VALUES_TO_COMPILE_KERNEL = 150_000
"""Minimum number of values for the kernel if it has to be compiled first, which takes 1.6 s of CPU, once for all schemas."""

_KERNEL = "kafka_log.read.schemas.avro_kernel"


def use_kernel(values: int) -> bool:
    """Return whether the compiled kernel decodes ``values`` values faster than fastavro, including
    the time to load or compile it. Return False without numba, and on big-endian machines.
    """
    has_numba = "numba" in sys.modules
    if values < (MIN_VALUES_TO_LOAD_KERNEL if has_numba else MIN_VALUES_TO_LOAD_NUMBA):
        return False
    if sys.byteorder != "little" or find_spec("numba") is None:
        return False
    from codecgen.runtime.arrow.primitives.compiling import is_compiled

    kernel = import_module(_KERNEL)
    if not kernel.JIT:
        return False
    return values >= MIN_VALUES_TO_COMPILE_KERNEL or is_compiled(kernel.read_values)


class AvroSchema:
    """Parsed schema of Avro.

    Args:
        version: The schema.
        registry: Has the schemas to which it refers.
        is_reader: Values are resolved to it, so its defaults count. Otherwise they are ignored, also if they are invalid.

    Raises:
        SchemaError: If the schema is invalid, or so are those to which it refers; for a reader also if its defaults exceed
            :data:`MAX_DEFAULTS`.
    """

    def __init__(
        self, version: SchemaVersion, registry: SchemaRegistry, is_reader: bool = False
    ) -> None:
        self._named: dict[str, Any] = {}
        self._default_size = 0
        self._is_reader = is_reader
        try:
            for _, other in registry.resolve_references(version):
                if other.type != AVRO:
                    raise SchemaError(
                        f"the schema refers to schema {other.label}, which has another type, {other.type}: values of this schema are not decoded"
                    )
                self._parse(other.text)
            self._parsed = self._parse(version.text)
            self.shape = self._shape_of(self._parsed, (), Budget())
            self._convert_defaults()
        except ModuleNotFoundError:
            raise
        except Exception as error:  # fastavro raises many classes, also of its own
            raise SchemaError(f"schema {version.label} is invalid: {_describe(error)}") from None

    def decoder(self, reader: AvroSchema | None = None) -> Decode:
        """Return a function that decodes the bytes of one value, resolved to the schema ``reader``
        if it is given. It raises ValueError for bytes that are no value of the schema, are followed
        by others, encode the value in another way than the encoder does, or cannot be resolved;
        its text names the field that does not fit, if one is found.
        Raise ModuleNotFoundError if fastavro is not installed, SchemaError if ``reader`` has another
        logical type for the same part.
        """
        from fastavro import schemaless_reader, schemaless_writer

        _register_marks()
        if reader is not None:
            LogicalTypes(self._named, reader._named).compare(self._parsed, reader._parsed)
        schema, resolved = self._complete(), None if reader is None else reader._complete()
        # Several records in one union are told apart by their names.
        options: Any = {"return_record_name": True, "return_record_name_override": True}

        def decode(data: bytes) -> Any:
            source, again = io.BytesIO(data), io.BytesIO()
            try:
                value = schemaless_reader(source, schema, None, **options)
                left = len(data) - source.tell()
                if left:
                    raise ValueError(f"{count_noun(left, 'byte follows', 'bytes follow')} it")
                schemaless_writer(again, schema, value)
                if again.getvalue() != data:
                    raise ValueError("its fields encode to other bytes than these")
                if resolved is not None:
                    value = schemaless_reader(io.BytesIO(data), schema, resolved, **options)
            except Exception as error:  # fastavro raises many classes, also of its own
                fault = find_fault(self._parsed, self._named, data)
                raise ValueError(fault or _describe(error)) from None
            return value

        return decode

    def compile(self, shape: Shape, reader: AvroSchema | None = None) -> Program | None:
        """Return the program that decodes values to columns of ``shape``, resolved to the schema
        ``reader`` if it is given. Return None for a schema or resolution that programs do not
        support: :meth:`decoder` decodes its values. The call imports numba if that is installed.
        """
        from kafka_log.read.schemas.avro_programs import Compiler, OnlyFastavroError

        other = self if reader is None else reader
        resolved = None if reader is None else reader._parsed
        try:
            compiler = Compiler(self._named, other._named)
            return compiler.compile(self._parsed, resolved, other.shape, shape)
        except OnlyFastavroError:
            return None

    def _parse(self, text: str) -> Any:
        """Return fastavro's form of the schema in ``text``, and add its named types to the known
        ones. Raise SchemaError if it is not JSON, or its defaults and those before are too long;
        exceptions of fastavro pass through.
        """
        from fastavro import parse_schema

        schema = _keep_logical_types(parse_json(text), self._is_reader)
        self._default_size += _measure_defaults(schema)
        if self._default_size > MAX_DEFAULTS:
            raise SchemaError(
                f"the defaults of the schema and of those to which it refers have more than {MAX_DEFAULTS:,} characters, the most"
                f" that kafka-log takes: {OTHER_VERSION}"
            )
        return parse_schema(schema, self._named)

    def _convert_defaults(self) -> None:
        """Replace the defaults of all records, which are JSON, by the values that fastavro would
        read. Raise SchemaError if they have more than 4,096 parts, or the default of a record lacks
        a field. Types are not checked: one that does not fit may raise another exception, such as
        StopIteration.
        """
        records = [t for t in self._named.values() if t["type"] in RECORDS]
        fields = [f for record in records for f in record["fields"] if "default" in f]
        defaults = DefaultValues(self._named)
        for field, value in [(f, defaults.read(f["type"], f["default"])) for f in fields]:
            field["default"] = value

    def _complete(self) -> Any:
        """Return the schema in a form that fastavro takes without parsing it again, with all named
        types that it refers to attached; a name of one is replaced by the type.
        """
        hints = {"__fastavro_parsed": True, "__named_schemas": self._named}

        def complete(schema: Any) -> Any:
            """Return a type with its named types."""
            if isinstance(schema, list):
                return [complete(s) for s in schema]
            if isinstance(schema, str):
                return {**self._named[schema], **hints} if schema in self._named else schema
            return {**schema, **hints}

        return complete(self._parsed)

    def _shape_of(self, schema: Any, names: tuple[str, ...], budget: Budget) -> Shape:
        """Return the shape of a type. A union of null and one type has the shape of that type, one
        of null alone NULL; other unions and records without fields are JSON text; enums are strings. ``names`` are the
        records around it. Raise SchemaError for a type that contains itself, invalid or repeated
        field names, array elements without bytes, and a schema that exceeds ``budget``.
        """
        budget.take(len(names))
        if isinstance(schema, list):
            others = [self._shape_of(s, names, budget) for s in schema if s != "null"]
            if not others:
                return NULL
            return others[0] if len(others) == 1 else JSON
        if isinstance(schema, str):
            if schema in PRIMITIVES:
                return Shape(PRIMITIVES[schema])
            if (
                schema in names
            ):  # fastavro exhausts the stack at deep values, which ends the process
                raise SchemaError(
                    f"{schema} contains itself, and recursive types are not decoded: read the values as bytes"
                )
            return self._shape_of(self._named[schema], names, budget)
        kind = schema["type"]
        if isinstance(kind, dict | list):
            return self._shape_of(kind, names, budget)
        if kind in RECORDS:
            fields = schema["fields"]
            for field in fields:
                check_name(field["name"])
            if not fields:
                return JSON  # files of Parquet cannot have a struct without fields
            if len({f["name"] for f in fields}) < len(fields):
                raise SchemaError(
                    f"record {schema['name']} has two fields of the same name, which cannot both be columns: values of this schema are not decoded"
                )
            inner = (*names, schema["name"])
            return Shape(
                fields=tuple((f["name"], self._shape_of(f["type"], inner, budget)) for f in fields)
            )
        if kind == "enum":
            return Shape(pa.string())
        if kind in ("array", "map"):
            item = schema["items" if kind == "array" else "values"]
            if kind == "array" and self._is_empty(item, ()):
                raise SchemaError(
                    "elements of an array take no bytes, so that a short value could have any number of them: such arrays are not decoded"
                )
            of_item = self._shape_of(item, (*names, ""), budget)
            return Shape(item=of_item, is_map=kind == "map")
        return scalar_shape(kind, schema)

    def measure(self, shape: Shape) -> Size:
        """Return how many parts values can have in columns of ``shape``, which holds them."""
        return self._measure(self._parsed, shape)

    def _measure(self, schema: Any, shape: Shape) -> Size:
        """Return bounds, by their bytes, for the number of cells that values of a type fill in
        columns of ``shape`` (fields, elements, the value itself). Every element of an array takes a
        byte or more.
        """
        if isinstance(schema, list):
            others = [s for s in schema if s != "null"]
            of_branch = shape if len(others) == 1 else JSON
            return Size.largest([self._measure(s, of_branch) for s in schema]).add(1, 1)
        if isinstance(schema, str):
            if schema in PRIMITIVES:
                return Size(shape.width, 0, _MIN_BYTES.get(schema, 1))
            return self._measure(self._named[schema], shape)
        kind = schema["type"]
        if isinstance(kind, dict | list):
            return self._measure(kind, shape)
        if kind in RECORDS:
            known = dict(shape.fields or ())
            own = [self._measure(f["type"], known.pop(f["name"], JSON)) for f in schema["fields"]]
            return Size.sum(own).add(1 + sum(s.width for s in known.values()), 0)
        if kind in ("array", "map"):
            item = schema["items" if kind == "array" else "values"]
            of_item = self._measure(item, shape.item or JSON)
            return of_item.repeat(0 if kind == "array" else 1)
        return Size(shape.width, 0, int(schema.get("size", 1)) if kind == "fixed" else 1)

    def _is_empty(self, schema: Any, names: tuple[str, ...]) -> bool:
        """Return whether values of a type take no bytes: null, a fixed type of size 0, and a record
        of only such fields. False for a union, also if it allows null, and for a type that contains
        itself (``names`` are the types around it).
        """
        if isinstance(schema, str):
            if schema in PRIMITIVES or schema in names:
                return schema == "null"
            return self._is_empty(self._named[schema], (*names, schema))
        if isinstance(schema, list):
            return False
        if isinstance(schema["type"], dict | list):
            return self._is_empty(schema["type"], names)
        if schema["type"] == "fixed":
            return int(schema["size"]) == 0
        if schema["type"] in RECORDS:
            inner = (*names, schema["name"])
            return all(self._is_empty(f["type"], inner) for f in schema["fields"])
        return bool(schema["type"] == "null")


def _keep_logical_types(schema: Any, with_defaults: bool) -> Any:
    """Return a copy of a parsed schema in which the key ``logicalType`` is renamed to :data:`KEPT_LOGICAL_TYPE`
    at all levels, so that fastavro does not apply it. Types with a known one get :data:`ARROW_TYPE`,
    and :data:`MARKED` in its place. Defaults are removed unless ``with_defaults``. What is no list
    or object is returned unchanged.
    """
    if isinstance(schema, list):
        return [_keep_logical_types(s, with_defaults) for s in schema]
    if not isinstance(schema, dict):
        return schema
    found = {
        KEPT_LOGICAL_TYPE if name == LOGICAL_TYPE else name: value
        for name, value in schema.items()
        if name != ARROW_TYPE
    }
    if (kind := logical_type(found)) is not None:
        found |= {LOGICAL_TYPE: MARKED, ARROW_TYPE: kind}
    if not with_defaults:
        found.pop("default", None)
    for name in ("type", "items", "values"):
        if name in found:
            found[name] = _keep_logical_types(found[name], with_defaults)
    if isinstance(found.get("fields"), list):
        found["fields"] = [_keep_logical_types(f, with_defaults) for f in found["fields"]]
    return found


def _register_marks() -> None:
    """Let fastavro read values of the logical type :data:`MARKED` as numbers and bytes that keep
    their Arrow type, or as what Avro promotes them to.
    """
    from fastavro.read import LOGICAL_READERS

    def mark(value: Any, writer: Any, reader: Any = None) -> Any:
        kind = reader["type"] if isinstance(reader, dict) else reader
        if kind in ("float", "double"):
            return float(value)
        return value.decode() if kind == "string" else mark_value(value, writer[ARROW_TYPE])

    for kind in ("int", "long", "bytes", "fixed"):
        LOGICAL_READERS[f"{kind}-{MARKED}"] = mark


def _measure_defaults(schema: Any) -> int:
    """Return the number of characters of all defaults in a parsed schema, written as JSON; 0
    without defaults.
    """
    if isinstance(schema, list):
        return sum(map(_measure_defaults, schema))
    if not isinstance(schema, dict):
        return 0
    own = len(json.dumps(schema["default"])) if "default" in schema else 0
    inner = (schema.get(name) for name in ("type", "items", "values", "fields"))
    return own + sum(map(_measure_defaults, inner))


def _describe(error: BaseException) -> str:
    """Return a message for an exception of fastavro: a fixed sentence each for RecursionError,
    EOFError and IndexError; the text of a ValueError or SchemaError, not of their subclasses; for
    others the name of the class and the text.
    """
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    if isinstance(error, EOFError):
        return "its bytes end too early"
    if isinstance(error, IndexError):
        return "the number of a branch or of a symbol is out of range"
    return f"{error}" if type(error) in (ValueError, SchemaError) else f"{type(error).__name__} {error}".rstrip()  # fmt: skip
