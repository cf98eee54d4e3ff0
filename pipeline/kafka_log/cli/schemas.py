"""The options that decode keys and values, and name the source of their schemas."""

from __future__ import annotations

from kafka_log.cli.common import Group
from kafka_log.cli.ranges import argument_type, number_type


def add_decode(group: Group) -> None:
    """Add the option ``--decode`` for typed columns, a text (default None), to a group of the help."""
    group.add_argument(
        "--decode",
        type=argument_type(_parse_decoding),
        metavar="HOW",
        help="decode keys and values into typed columns with the schemas of a schema registry: auto, avro, json-schema or protobuf; or"
        " values by a layout of a package that codecgen generated: PACKAGE:LAYOUT (default: bytes)",
    )


def _parse_decoding(text: str) -> str:
    """Return the text if it is a value of ``--decode``. Raise ValueError for others."""
    from kafka_log.read.schemas.decoding import parse_decoding  # needs pyarrow

    return parse_decoding("it", text)


def reads_registry(decode: str | None, schemas: str | None, schema_version: int | None) -> bool:
    """Return whether ``--decode`` needs the schemas of a registry. Raise ValueError for ``--schemas``
    or ``--schema-version`` if it does not.
    """
    from kafka_log.read.schemas.layout_names import is_layout_name

    if decode is not None and not is_layout_name(decode):
        return True
    if (schemas, schema_version) != (None, None):
        raise ValueError(
            "--schemas and --schema-version are for values of a schema registry: add --decode auto, or leave them out"
        )
    return False


def add_schemas(group: Group) -> None:
    """Add the option ``--schemas``, a text (default None), to a group of the help."""
    group.add_argument(
        "--schemas",
        metavar="SOURCE",
        help="where the schemas are: a path with a topic _schemas, a directory of files SUBJECT.ID.avsc (.proto, .json), a saved"
        " answer of a registry's /schemas, or the http(s) URL of a registry (default: the topic _schemas in the paths)",
    )


def add_schema_version(group: Group) -> None:
    """Add the option ``--schema-version``, a number from 1 on (default None), to a group of the
    help.
    """
    group.add_argument(
        "--schema-version",
        type=number_type("a version", 1),
        metavar="N",
        help="with --decode avro: resolve values to version N of the subject, with its defaults (default: columns of all versions)",
    )
