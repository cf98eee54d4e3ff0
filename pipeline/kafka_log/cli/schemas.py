"""The option that names a source of schemas."""

from __future__ import annotations

from kafka_log.cli.common import Group
from kafka_log.cli.ranges import number_type


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
