"""Decoders of Protobuf values: schemas are compiled by protoc in a process of its own, and values are parsed by the package protobuf."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from codecgen.runtime.errors import CodecError
from codecgen.runtime.nouns import count_noun
from kafka_codecs import GLUE_PROTOBUF_DATA
from kafka_log.read.schemas.protobuf_faults import find_fault
from kafka_log.read.schemas.registry import PROTOBUF, SchemaError, SchemaRegistry, SchemaVersion
from kafka_log.read.schemas.shapes import JSON, Budget, Shape, Size, check_name

MAX_TEXTS = 4 << 20
"""Maximum characters of a schema and of those to which it refers."""

MAX_COMPILED = 64 << 20
"""Maximum bytes of compiled schemas."""

MAX_INDEXES = 32
"""Maximum depth of a message in other messages, as the path before a value gives it."""

_TIMEOUT = 60.0
_MAIN = "kafka_log_main.proto"
_FILE_NAME = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}/){0,15}[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\.proto")  # fmt: skip

Indexes = tuple[int, ...]
"""Path of a message: its index in the file, and that of each nested message in the one around it."""

_SCALARS = {
    "DOUBLE": pa.float64(),
    "FLOAT": pa.float32(),
    "INT64": pa.int64(),
    "SINT64": pa.int64(),
    "SFIXED64": pa.int64(),
    "INT32": pa.int32(),
    "SINT32": pa.int32(),
    "SFIXED32": pa.int32(),
    "UINT32": pa.int64(),
    "FIXED32": pa.int64(),
    "UINT64": pa.uint64(),
    "FIXED64": pa.uint64(),
    "BOOL": pa.bool_(),
    "STRING": pa.string(),
    "BYTES": pa.binary(),
    "ENUM": pa.string(),
}

Convert = Callable[[Any], Any]


class ProtobufSchema:
    """Compiled schema of Protobuf.

    Args:
        version: The schema.
        registry: Has the schemas to which it refers. Those of Google (``google/protobuf/...``) are part of the compiler.

    Raises:
        SchemaError: If the schema is invalid, too large, or so are those to which it refers.
        ModuleNotFoundError: If the compiler is not installed.
    """

    def __init__(self, version: SchemaVersion, registry: SchemaRegistry) -> None:
        from google.protobuf import descriptor_pb2, descriptor_pool

        try:
            texts = {}
            for name, other in registry.resolve_references(version):
                if other.type != PROTOBUF:
                    raise SchemaError(
                        f"the schema refers to schema {other.label}, which has another type, {other.type}: values of this schema are not decoded"
                    )
                texts[name] = other.text
            files = descriptor_pb2.FileDescriptorSet.FromString(_compile(version.text, texts))
            pool = descriptor_pool.DescriptorPool()
            for file in files.file:
                pool.AddSerializedFile(file.SerializeToString())
        except ModuleNotFoundError:
            raise
        except Exception as error:  # protobuf raises classes of its own
            raise SchemaError(f"schema {version.label} is invalid: {error}") from None
        self._label = version.label
        self._pool = pool
        self._file = next(file for file in files.file if file.name == _MAIN)
        self._converters: dict[str, list[tuple[str, Convert]]] = {}
        self._widest = 1

    @property
    def names(self) -> list[str]:
        """Full names of the messages that are not in others, in the order of the schema."""
        package = f"{self._file.package}." if self._file.package else ""
        return [package + message.name for message in self._file.message_type]

    def find_name(self, indexes: Indexes) -> str:
        """Return the full name of the message at the path ``indexes``: its number in the file, then
        in the message around it. Raise ValueError if there is none.
        """
        names, messages = [self._file.package] * bool(self._file.package), self._file.message_type
        for index in indexes:
            if not 0 <= index < len(messages):
                raise ValueError(
                    f"the message indexes {list(indexes)} before the value name no message of the schema"
                )
            names.append(messages[index].name)
            messages = messages[index].nested_type
        return ".".join(names)

    def read_path(self, data: bytes) -> tuple[str, bytes]:
        """Return the name of the message in ``data``, which begins with its path as Confluent's
        serializers write it, and its bytes. Raise ValueError if there is none.
        """
        indexes, start = read_indexes(data)
        return self.find_name(indexes), data[start:]

    def read_number(self, data: bytes) -> tuple[str, bytes]:
        """Return the name of the message in ``data``, which begins with its number as AWS Glue's
        serializers write it, and its bytes. Raise ValueError if there is none.
        """
        try:
            fields: Any = GLUE_PROTOBUF_DATA.parse(data, strict=False)
        except CodecError as error:
            raise ValueError(f"it does not begin with the number of a message: {error}") from None
        names = sorted(self._all_names())
        if fields.message_number >= len(names):
            raise ValueError(
                f"the message number {fields.message_number} before the value names no message of the schema"
            )
        return names[fields.message_number], fields.data

    def _all_names(self) -> Iterator[str]:
        """Yield the full names of all messages, nested ones too."""
        pending = list(zip(self.names, self._file.message_type, strict=True))
        for name, message in pending:
            yield name
            pending += [(f"{name}.{inner.name}", inner) for inner in message.nested_type]

    def select(self) -> dict[str, tuple[Any, Shape]]:
        """Return class and shape of each message of :attr:`names`, by name. Raise SchemaError if
        there is none, their types are too large, or a field's name cannot be that of a column.
        """
        from google.protobuf.message_factory import GetMessageClass

        found, budget = {}, Budget()
        try:
            for name in self.names:
                descriptor = self._pool.FindMessageTypeByName(name)
                found[name] = GetMessageClass(descriptor), self._shape_of(descriptor, (), budget)
            if not found:
                raise SchemaError(
                    "the schema declares no message, so that no value can be decoded by it"
                )
        except SchemaError as error:
            raise SchemaError(f"schema {self._label} is invalid: {error}") from None
        return found

    def _shape_of(self, descriptor: Any, above: tuple[str, ...], budget: Budget) -> Shape:
        """Return the shape of the message that ``descriptor`` describes: a struct; JSON text if it
        is one of those around it (``above``), or has no fields. Raise SchemaError for a field name
        that cannot be that of a column, and if ``budget`` is exceeded.
        """
        budget.take(len(above))
        if descriptor.full_name in above or not descriptor.fields:
            return JSON
        above = (*above, descriptor.full_name)
        self._widest = max(self._widest, len(descriptor.fields))
        fields = []
        for field in descriptor.fields:
            check_name(field.name)
            if _is_map(field):
                value = field.message_type.fields_by_name["value"]
                shape = Shape(item=self._shape_of_one(value, above, budget), is_map=True)
            else:
                shape = self._shape_of_one(field, above, budget)
                shape = Shape(item=shape) if field.is_repeated else shape
            fields.append((field.name, shape))
        return Shape(fields=tuple(fields))

    def _shape_of_one(self, field: Any, above: tuple[str, ...], budget: Budget) -> Shape:
        """Return the shape of one value of a field, of one element if it is repeated: a message as
        by :meth:`_shape_of`, else a scalar. Raise SchemaError if ``budget`` is exceeded.
        """
        if field.message_type is not None:
            return self._shape_of(field.message_type, above, budget)
        budget.take(len(above))
        return Shape(_SCALARS[_type_name(field)])

    def convert(self, message: Any) -> dict[str, Any]:
        """Return the fields of a message by name. A field without a value is None, if Protobuf
        tells that from its default, else the default. An enum is its name, an unknown one its
        number as text. Raise ValueError for a message with extensions, which have no column.
        """
        name = message.DESCRIPTOR.full_name
        if message.DESCRIPTOR.is_extendable and any(
            f.is_extension for f, _ in message.ListFields()
        ):
            raise ValueError(f"it has extensions of message {name}, which have no column")
        found = self._converters.get(name)
        if found is None:
            found = [(field.name, self._converter(field)) for field in message.DESCRIPTOR.fields]
            self._converters[name] = found
        return {name: convert(message) for name, convert in found}

    def _converter(self, field: Any) -> Convert:
        """Return a function that returns the value of a field from a message. A map becomes a dict
        with texts as keys, a repeated field a list, any other field the converted value. A field
        that is not set is None if Protobuf tells that from its default.
        """
        name = field.name
        if _is_map(field):
            key, one = (self._item_converter(field.message_type.fields_by_name[n]) for n in ("key", "value"))  # fmt: skip
            return lambda message: {
                _key_text(key(k)): one(v) for k, v in getattr(message, name).items()
            }
        one = self._item_converter(field)
        if field.is_repeated:
            return lambda message: [one(item) for item in getattr(message, name)]
        if field.has_presence:
            return lambda m: one(getattr(m, name)) if m.HasField(name) else None
        return lambda message: one(getattr(message, name))

    def _item_converter(self, field: Any) -> Convert:
        """Return a function that converts one value of a field: a message to a dict, an enum to its
        name or else its number as text; others stay. It raises ValueError for a message with
        extensions.
        """
        if field.message_type is not None:
            return self.convert
        if field.enum_type is not None:
            names = {n: value.name for n, value in field.enum_type.values_by_number.items()}
            return lambda number: names.get(number) or str(number)
        return lambda value: value

    def measure(self, shape: Shape) -> Size:
        """Return bounds, by their bytes, for the number of cells that values fill in columns of
        ``shape``: an element of a list takes 1 byte or more, one that is a message or belongs to a
        map 2.
        """
        if shape.is_json:
            return Size(1, self._widest / 2 + 1, 0)
        if shape.fields is not None:
            inner = Size.sum([self.measure(s) for _, s in shape.fields])
            return Size(inner.parts + 1, inner.per_byte, 0)
        if shape.item is not None:
            inner = self.measure(shape.item)
            is_message = shape.is_map or shape.item.fields is not None
            return Size(inner.parts, inner.per_byte, 1 + is_message).repeat(0)
        return Size(1, 0, 0)


class MessageDecoder:
    """Decoder of the messages of a schema.

    Args:
        schema: The schema.
        read_name: Method of ``schema`` that finds the message in a value.
        is_wrapped: A value is a struct with a member for each message, of which one is not null. Otherwise it is the message.

    Raises:
        SchemaError: If the schema has no message, or its types are too large.
    """

    def __init__(
        self,
        schema: ProtobufSchema,
        read_name: Callable[[bytes], tuple[str, bytes]],
        is_wrapped: bool,
    ) -> None:
        self._schema = schema
        self._read_name = read_name
        self._is_wrapped = is_wrapped
        self._known = schema.select()
        shapes = tuple((name, shape) for name, (_, shape) in self._known.items())
        self.shape = Shape(fields=shapes) if is_wrapped else shapes[0][1]

    def decode(self, data: bytes) -> Any:
        """Return the value of a message with what names it in front: its fields, in a dict under the
        name of the message if the decoder wraps messages. An unknown number of an enum becomes
        text. Raise ValueError for bytes that are none, for fields that the schema lacks,
        extensions, and a message without a column. The text names the first field that does not
        fit, if one is found.
        """
        name, content = self._read_name(data)
        if name not in self._known:
            raise ValueError(
                f"the value is of message {name}, which is nested in another message and has no column"
            )
        message = self._known[name][0]()
        try:
            message.ParseFromString(content)
            size = message.ByteSize()
            message.DiscardUnknownFields()
            if message.ByteSize() != size:
                raise ValueError(
                    find_fault(message.DESCRIPTOR, content)
                    or f"the value has fields that message {name} of the schema lacks"
                )
            value = self._schema.convert(message)
        except ValueError:
            raise
        except Exception:  # protobuf raises classes of its own
            fault = find_fault(message.DESCRIPTOR, content)
            raise ValueError(fault or f"it is no message {name} in Protobuf's encoding") from None
        return {name: value} if self._is_wrapped else value


def read_indexes(data: bytes) -> tuple[Indexes, int]:
    """Return the path of a message at the start of ``data`` (its number among the messages, then
    among nested ones; ``(0,)`` if it is empty), and the number of bytes of the path. Raise
    ValueError if ``data`` does not begin with one, or it has more than 32 numbers. They may be
    negative or name no message.
    """
    count, at = _read_number(data, 0)
    if not 0 <= count <= MAX_INDEXES:
        raise ValueError(
            f"the message indexes before the value have {count_noun(count, 'number')}, which the format does not allow"
        )
    found = []
    for _ in range(count):
        number, at = _read_number(data, at)
        found.append(number)
    return tuple(found) or (0,), at


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    """Return the zigzag varint at a position, and the position after it. Raise ValueError if it is
    cut off, or has more than 5 bytes.
    """
    number = 0
    for shift in range(0, 35, 7):
        if at >= len(data):
            raise ValueError("the value ends within the message indexes before it")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
    raise ValueError("a number of the message indexes before the value is longer than 5 bytes")


def _compile(text: str, others: dict[str, str]) -> bytes:
    """Return the descriptors of the schema ``text`` and of the files that it imports, whose texts
    ``others`` has by name. Raise SchemaError if protoc rejects it, takes more than 60 s, a name of
    ``others`` is invalid, or texts or descriptors are too large (4 Mi characters, 64 MiB);
    ModuleNotFoundError if protoc is not installed.
    """
    if importlib.util.find_spec("grpc_tools") is None:
        raise ModuleNotFoundError("No module named 'grpc_tools'", name="grpc_tools")
    if len(text) + sum(map(len, others.values())) > MAX_TEXTS:
        raise SchemaError(
            f"the schema and its imports have more than {MAX_TEXTS:,} characters, the most that kafka-log compiles: read the values as bytes"
        )
    with tempfile.TemporaryDirectory(prefix="kafka-log-") as directory:
        root, out = Path(directory) / "in", Path(directory) / "out"
        for name, schema in {**others, _MAIN: text}.items():
            if not _FILE_NAME.fullmatch(name):
                raise SchemaError(
                    f"{name!a} is a reference name that cannot be the name of an imported file: values of this schema are not decoded"
                )
            path = root / name
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(schema, "utf-8")
            except OSError as error:
                raise SchemaError(f"{name!a} cannot be written to the temporary directory for protoc, so that values of this schema are not decoded: {error.strerror}") from None  # fmt: skip
        command = [sys.executable, "-P", "-m", "grpc_tools.protoc", f"-I{root}", "--include_imports", f"--descriptor_set_out={out}", _MAIN]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT, check=False)
        except subprocess.TimeoutExpired:
            raise SchemaError(
                f"protoc was stopped after {_TIMEOUT:.0f} s without a result: values of this schema are not decoded"
            ) from None
        if done.returncode or not out.is_file():
            said = done.stderr[:2_000].decode("utf-8", "replace").strip()
            raise SchemaError(
                f"protoc rejects the schema: {said.replace(_MAIN + ':', '') or done.returncode}"
            )
        if out.stat().st_size > MAX_COMPILED:
            raise SchemaError(
                f"the compiled schema has more than {MAX_COMPILED:,} bytes, the most that kafka-log takes: read the values as bytes"
            )
        return out.read_bytes()


def _is_map(field: Any) -> bool:
    """Return whether a field is a map."""
    kind = field.message_type
    return kind is not None and field.is_repeated and bool(kind.GetOptions().map_entry)


def _type_name(field: Any) -> str:
    """Return the name of a field's type, such as ``INT64``."""
    return str(next(name for name in _SCALARS if getattr(field, f"TYPE_{name}") == field.type))


def _key_text(key: Any) -> str:
    """Return the key of a map as JSON has it: ``true`` and ``false`` for booleans."""
    return str(key).lower() if isinstance(key, bool) else str(key)
