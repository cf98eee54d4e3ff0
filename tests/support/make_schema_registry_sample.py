"""Makes tests/data/schema_registry.jsonl, and samples/schema-registry from it.

``python -m tests.support.make_schema_registry_sample``       writes the sample logs of the file
``python -m tests.support.make_schema_registry_sample new``   writes the file (needs confluent-kafka[avro,json,protobuf], grpcio-tools)

Keys and values are those of the serializers of Confluent's client for Python, with its registry for tests; the file has beside them what
its deserializers read. The records of the topic ``_schemas`` are written here, as the registry documents them.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.paths import ROOT

FILE = ROOT / "tests" / "data" / "schema_registry.jsonl"
SAMPLE = ROOT / "samples" / "schema-registry"
BEGIN = 1_790_000_000_000
"""Timestamp of the first record."""

LINE = {
    "type": "record",
    "name": "Line",
    "namespace": "shop",
    "fields": [{"name": "sku", "type": "string"}, {"name": "count", "type": "int"}],
}
ORDER_1 = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "amount", "type": "float"},
        {"name": "lines", "type": {"type": "array", "items": LINE}},
    ],
}
ORDER_2 = {
    **ORDER_1,
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "amount", "type": "double"},
        {"name": "lines", "type": {"type": "array", "items": LINE}},
        {"name": "note", "type": ["null", "string"], "default": None},
        {
            "name": "placed",
            "type": {"type": "long", "logicalType": "timestamp-millis"},
            "default": 0,
        },
        {
            "name": "status",
            "type": {"type": "enum", "name": "Status", "symbols": ["NEW", "PAID"]},
            "default": "NEW",
        },
    ],
}
ADDRESS = {
    "type": "record",
    "name": "Address",
    "namespace": "shop",
    "fields": [{"name": "city", "type": "string"}, {"name": "zip", "type": ["null", "string"]}],
}
CUSTOMER = {
    "type": "record",
    "name": "Customer",
    "namespace": "shop",
    "fields": [
        {"name": "name", "type": "string"},
        {"name": "home", "type": "shop.Address"},
        {
            "name": "credit",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {"name": "tags", "type": {"type": "map", "values": "int"}},
    ],
}
CLICK = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Click",
    "type": "object",
    "properties": {
        "page": {"type": "string"},
        "x": {"type": "integer"},
        "y": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["page"],
}
PAYMENT = """\
syntax = "proto3";
package shop;

message Refund {
  int64 payment = 1;
}

message Payment {
  int64 id = 1;
  string method = 2;
  optional double fee = 3;
  repeated string tags = 4;
  message Card { string number = 1; }
  Card card = 5;
}
"""


def make_file() -> None:
    """Write :data:`FILE`."""
    registry: Any = importlib.import_module("confluent_kafka.schema_registry")
    avro: Any = importlib.import_module("confluent_kafka.schema_registry.avro")
    json_schema: Any = importlib.import_module("confluent_kafka.schema_registry.json_schema")
    serde: Any = importlib.import_module("confluent_kafka.serialization")
    client = registry.SchemaRegistryClient.new_client({"url": "mock://sample"})
    lines: list[dict[str, Any]] = []

    def register(subject: str, text: str, kind: str, references: list[Any] | None = None) -> Any:
        references = references or []
        schema = registry.Schema(text, kind, [registry.SchemaReference(*r) for r in references])
        found = client.register_schema_full_response(subject, schema)
        names = [dict(zip(("name", "subject", "version"), r, strict=True)) for r in references]
        value = {
            "subject": subject,
            "version": found.version,
            "id": found.schema_id,
            "guid": found.guid,
            **({"schemaType": kind} if kind != "AVRO" else {}),
            **({"references": names} if names else {}),
            "schema": text,
            "deleted": False,
        }
        add_schema(value)
        return schema, value

    def add_schema(value: dict[str, Any] | None, **key: Any) -> None:
        names = (
            key
            if value is None or key
            else {
                "keytype": "SCHEMA",
                "subject": value["subject"],
                "version": value["version"],
                "magic": 1,
            }
        )
        add(
            "_schemas",
            json.dumps(names).encode(),
            None if value is None else json.dumps(value).encode(),
        )

    def add(
        topic: str, key: bytes | None, value: bytes | None, read: Any = None, headers: Any = ()
    ) -> None:
        line: dict[str, Any] = {
            "topic": topic,
            "key": None if key is None else key.hex(),
            "value": None if value is None else value.hex(),
        }
        if headers:
            line["headers"] = [[name, data.hex()] for name, data in headers]
        if read is not None:
            line["read"] = json.loads(json.dumps(read, default=str))
        lines.append(line)

    def context(topic: str, headers: Any = None) -> Any:
        return serde.SerializationContext(topic, serde.MessageField.VALUE, headers)

    settings = {"auto.register.schemas": False}
    add_schema({"subject": None}, keytype="NOOP", magic=0)
    lines[-1]["value"] = None
    add_schema({"compatibilityLevel": "BACKWARD"}, keytype="CONFIG", subject=None, magic=0)
    for number, definition in enumerate((ORDER_1, ORDER_2), 1):
        schema, _ = register("orders-value", json.dumps(definition), "AVRO")
        write = avro.AvroSerializer(client, schema, conf=settings)
        read = avro.AvroDeserializer(client)
        for i in range(3):
            order: dict[str, Any] = {
                "id": 10 * number + i,
                "customer": f"customer {i}",
                "amount": 1.5 * i,
                "lines": [{"sku": f"sku-{n}", "count": n + 1} for n in range(i)],
            }
            if number == 2:
                order |= {"note": "gift" if i else None, "placed": BEGIN + i, "status": "PAID"}
            data = write(order, context("orders"))
            found = read(data, context("orders"))
            add("orders", f"order-{order['id']}".encode(), data, found)
    add("orders", b"order-10", None)
    add("orders", b"order-90", bytes.fromhex("00000003e7") + b"\x02")  # an id that nobody has
    add("orders", b"order-91", b"plain text")
    add("orders", b"order-92", data[:-1])  # cut
    register("address", json.dumps(ADDRESS), "AVRO")
    schema, _ = register(
        "customers-value", json.dumps(CUSTOMER), "AVRO", [("shop.Address", "address", 1)]
    )
    write, read = avro.AvroSerializer(client, schema, conf=settings), avro.AvroDeserializer(client)
    import decimal

    for i in range(3):
        customer = {
            "name": f"name {i}",
            "home": {"city": "Bern", "zip": "3000" if i else None},
            "credit": decimal.Decimal("12.50") * i,
            "tags": {"a": i},
        }
        data = write(customer, context("customers"))
        add("customers", f"{i}".encode(), data, read(data, context("customers")))
    schema, _ = register("clicks-value", json.dumps(CLICK), "JSON")
    write_json = json_schema.JSONSerializer(json.dumps(CLICK), client, conf=settings)
    for i in range(3):
        click = {"page": f"/{i}", "x": i, "y": i / 2, "tags": ["t"] * i}
        add("clicks", None, write_json(click, context("clicks")), click)
    _, value = register("payments-value", PAYMENT, "PROTOBUF")
    # The Python client registers a descriptor, and cannot read the text that a registry makes of it: it gets a registry of its own,
    # in which the schema has the same id.
    other = registry.SchemaRegistryClient.new_client({"url": "mock://payments"})
    for i in range(1, value["id"]):
        other.register_schema(f"other-{i}", registry.Schema(f'"{i}"', "AVRO"))
    for message, fields in (
        ("shop.Payment", {"id": "7", "method": "card", "fee": 0.5, "tags": ["a", "b"], "card": {"number": "1"}}),
        ("shop.Payment", {"id": "8", "method": "cash"}),
        ("shop.Refund", {"payment": "7"}),
    ):  # fmt: skip
        add("payments", None, _payment(other, message, fields), {message: fields})
    # The id in a header: the value has no prefix.
    schema, value = register("events-value", json.dumps(LINE), "AVRO")
    write = avro.AvroSerializer(
        client,
        schema,
        conf=settings | {"schema.id.serializer": registry.header_schema_id_serializer},
    )
    for i in range(2):
        headers: list[Any] = []
        event = {"sku": "x", "count": i}
        data = write(event, context("events", headers))
        add("events", None, data, event, headers)
    register("old-value", '"string"', "AVRO")
    register("old-value", '["null", "string"]', "AVRO")
    add_schema({"subject": "old-value", "version": 1}, keytype="DELETE_SUBJECT", subject="old-value", magic=0)  # fmt: skip
    register("gone-value", '"int"', "AVRO")
    add_schema(None, keytype="SCHEMA", subject="gone-value", version=1, magic=1)
    FILE.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")


def _payment(client: Any, name: str, fields: dict[str, Any]) -> bytes:
    """The value of a message of :data:`PAYMENT`."""
    protobuf: Any = importlib.import_module("confluent_kafka.schema_registry.protobuf")
    protoc: Any = importlib.import_module("grpc_tools.protoc")
    serde: Any = importlib.import_module("confluent_kafka.serialization")
    pools: Any = importlib.import_module("google.protobuf.descriptor_pool")
    factory: Any = importlib.import_module("google.protobuf.message_factory")
    formats: Any = importlib.import_module("google.protobuf.json_format")
    descriptors: Any = importlib.import_module("google.protobuf.descriptor_pb2")
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "payment.proto"
        source.write_text(PAYMENT, "utf-8")
        out = Path(directory) / "out"
        assert not protoc.main(["", f"-I{directory}", f"--descriptor_set_out={out}", str(source)])
        files = descriptors.FileDescriptorSet.FromString(out.read_bytes())
    pool = pools.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    kind = factory.GetMessageClass(pool.FindMessageTypeByName(name))
    write = protobuf.ProtobufSerializer(kind, client, {"use.deprecated.format": False})
    message = formats.ParseDict(fields, kind())
    context = serde.SerializationContext("payments", serde.MessageField.VALUE)
    found: bytes = write(message, context)
    return found


def make_sample() -> None:
    """Write :data:`SAMPLE` from :data:`FILE`, with the log writer of this repository."""
    import pyarrow as pa

    from kafka_log import write_log

    kinds = pa.schema(
        [
            ("topic", pa.string()),
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
            ("timestamp", pa.timestamp("ms", "UTC")),
        ]
    )
    rows = []
    for number, line in enumerate(read_file()):
        rows.append(
            {
                "topic": line["topic"],
                "key": from_hex(line["key"]),
                "value": from_hex(line["value"]),
                "headers": [
                    {"key": name, "value": bytes.fromhex(data)}
                    for name, data in line.get("headers", ())
                ],
                "timestamp": BEGIN + 1000 * number,
            }
        )
    write_log(SAMPLE, pa.Table.from_pylist(rows, kinds), mode="overwrite")
    (SAMPLE / ".lock").unlink()


def read_file() -> list[dict[str, Any]]:
    """The records of :data:`FILE`."""
    return [json.loads(line) for line in FILE.read_text("utf-8").splitlines()]


def from_hex(text: str | None) -> bytes | None:
    """The bytes of a key or value of :data:`FILE`."""
    return None if text is None else bytes.fromhex(text)


if __name__ == "__main__":
    if "new" in sys.argv[1:]:
        make_file()
    else:
        make_sample()
