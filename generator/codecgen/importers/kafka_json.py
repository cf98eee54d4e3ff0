"""Import a directory of Kafka's message definitions as schema files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from codecgen.diagnostics import Diagnostic, Span
from codecgen.importers import commented_json
from codecgen.importers.kafka_definitions import Message
from codecgen.importers.kafka_layouts import Missing, Naming, layouts, needs_name
from codecgen.importers.kafka_names import TABLE, distinct_parts, file_part, struct_names
from codecgen.importers.kafka_protocol import Protocol
from codecgen.importers.kafka_reading import read
from codecgen.importers.kafka_record_types import record_files, records_of
from codecgen.importers.kafka_rules import check_directory, check_message, check_names
from codecgen.importers.yaml_text import documents
from codecgen.listed_files import list_files
from codecgen.runtime.version import LANGUAGE

MOST_FILES = 10_000
MOST_BYTES = 256 << 20
NEW_MANIFEST = f"""\
language: {LANGUAGE}
package: kafka_messages
title: Kafka's messages
spelling: camel
"""


@dataclass(frozen=True, slots=True)
class Definitions:
    """The files of a directory by name, the messages that they define, and the findings about them."""

    files: Mapping[str, bytes]
    messages: Sequence[Message]
    findings: Sequence[Diagnostic]

    def texts(self) -> dict[str, str]:
        """Return the text of each file."""
        return {name: data.decode("utf-8-sig", "replace") for name, data in self.files.items()}


@dataclass(frozen=True, slots=True)
class Imported:
    """Schema files by name, and what they lack: ``retired`` messages, ``keys`` with the number of fields that have
    them, and ``fields`` in no version.
    """

    files: Mapping[str, str]
    retired: Sequence[str]
    keys: Mapping[str, int]
    fields: Sequence[str]


def find(directory: Path) -> Definitions:
    """Return the message definitions below a directory (``*.json``, sorted by path, without hidden
    ones) with the findings that Kafka's generator would report. Files that define no valid message are in ``files``
    and the findings, not in ``messages``. Return no files and one finding if there are more than ``MOST_FILES`` or
    ``MOST_BYTES``; all is empty if ``directory`` is missing or no directory. Raise OSError if a file or directory
    cannot be read.
    """
    files: dict[str, bytes] = {}
    findings: list[Diagnostic] = []
    size = 0
    for path in list_files(directory):
        if path.suffix != ".json":
            continue
        name = path.relative_to(directory).as_posix()
        with path.open("rb") as file:
            files[name] = file.read(commented_json.MAX_BYTES + 1)
        size += len(files[name])
        if len(files) > MOST_FILES or size > MOST_BYTES:
            much = f"more than {MOST_FILES} files, or {MOST_BYTES >> 20} MiB"
            return Definitions({}, (), [Diagnostic("", much, Span(name, 1, 1, 1))])
    messages: list[Message] = []
    for name, data in files.items():
        message, found = read(name, data)
        findings += found
        if message is not None:
            messages.append(message)
            findings += check_message(message, is_whole=not found)
    findings += check_names(messages)
    for group in _by_directory(messages).values():
        findings += check_directory(group)
    return Definitions(files, messages, findings)


def convert(
    found: Definitions, spelling: Literal["camel", "snake"], taken: Collection[str] = ()
) -> Imported:
    """Return the schema files, by relative path, and what they lack: one file per message that is
    not retired, and files with record types. The caller checks that ``found`` has no findings;
    otherwise KeyError is possible. ``spelling`` is the manifest's; ``taken`` has names that other
    schema files declare: layouts of structs avoid them, layouts of messages do not.
    """
    messages = [m for m in found.messages if not m.is_retired]
    groups = _by_directory(messages)
    parts = distinct_parts(groups)
    records = {way: records_of(group, parts[way]) for way, group in groups.items()}
    declared = [name for one in records.values() for name in one.names()]
    naming = Naming(
        struct_names(messages, [*taken, *declared, TABLE], needs_name),
        spelling,
        {m: word for one in records.values() for m, word in one.words().items()},
        Protocol.from_messages(messages),
    )
    files: dict[str, str] = {}
    missing = Missing()
    for way, group in groups.items():
        folder = f"{file_part(parts[way])}/" if parts[way] else ""
        for message in group:
            made, left = layouts(message, naming)
            missing.add(left)
            head = [f"From {message.file.rpartition('/')[2]}."]
            files[f"{folder}{file_part(message.name)}.yaml"] = documents(made, head)
        for name, text in record_files(records[way]):
            file = f"{folder}{name}.yaml"
            files[file if file not in files else f"{folder}about_{name}.yaml"] = text
    retired = [m.name for m in found.messages if m.is_retired]
    return Imported(files, retired, missing.keys, missing.fields)


def _by_directory(messages: Sequence[Message]) -> dict[tuple[str, ...], list[Message]]:
    """Return the messages, in order, by the directory of their files as a tuple of its parts.
    Kafka's generator sees one directory at a time.
    """
    out: dict[tuple[str, ...], list[Message]] = {}
    for message in messages:
        out.setdefault(tuple(message.file.split("/")[:-1]), []).append(message)
    return out


def lines_about(imported: Imported) -> Iterator[str]:
    """Yield up to three lines, in this order: one that lists all retired messages, one for keys
    that were not carried over, and one for fields in no version. A line with nothing to list is
    left out.
    """
    if imported.retired:
        yield f"retired, so without a file: {', '.join(imported.retired)}"
    if imported.keys:
        keys = ", ".join(f"{key} ({n})" for key, n in sorted(imported.keys.items()))
        yield f"not carried over: {keys}"
    if imported.fields:
        yield f"in no version, so left out: {', '.join(imported.fields)}"
