"""Sources of schemas: the topic of a registry in a log directory, files, and the REST API of a running registry."""

from __future__ import annotations

import base64
import http.client
import io
import os
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kafka_log.logs.discovery import survey
from kafka_log.logs.partitions import DirectoryError, Partition
from kafka_log.logs.replicas import select_replicas
from kafka_log.logs.tiers import merge_tiered_segments
from kafka_log.read.schemas.registry import (
    AVRO,
    JSON_SCHEMA,
    MAX_TEXT,
    PROTOBUF,
    RegistryBuilder,
    SchemaError,
    SchemaReference,
    SchemaRegistry,
    SchemaVersion,
    parse_json,
    parse_object,
    parse_version,
)
from kafka_log.segment.model import Lost, describe_lost
from kafka_log.segment.regular_files import open_regular

SCHEMAS_TOPIC = "_schemas"
"""Topic in which a registry stores its schemas, by default."""

MAX_RESPONSE = 256 << 20
"""Maximum bytes of a saved export or of the answer of a registry."""

_TIMEOUT = 30.0
_TYPES = {".avsc": AVRO, ".json": JSON_SCHEMA, ".proto": PROTOBUF}
_NO_ID = -1
"""Id of a schema that no value has."""

_NO_VERSION = 0
"""Version of a schema of which only the GUID is known."""

_FILE_NAME = re.compile(
    r"(?:(?P<subject>.+)\.)?(?:(?P<id>[0-9]{1,10})|(?P<kind>globalId|contentId)-(?P<number>[0-9]{1,18})"
    r"|(?P<guid>[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}))"
)
_HTTP = re.compile(r"https?://", re.IGNORECASE)


def read_registry(
    partitions: Sequence[Partition], source: str | os.PathLike[str] | None = None
) -> SchemaRegistry:
    """Return the schemas of ``source``: the URL of a registry, an export file, a schema file or a
    directory of them, or logs of a registry's topic. None: the topic ``_schemas`` among ``partitions``,
    else beside them; no schemas if there is none. Raise DirectoryError if a path does not exist, or
    a directory or segment has no schemas; SchemaError if the source is invalid; OSError if it
    cannot be read. Damaged or invalid records of a topic are problems of the registry instead.

    Args:
        partitions: Partitions of the logs that are read.
        source: A directory with files ``SUBJECT.ID.avsc`` (``.proto``, ``.json``), or one of the first two; a file with the answer of a registry's
            ``/schemas`` or records of its topic; a log directory or partition directory with the topic; or the URL of a registry.
    """
    if source is None:
        of_topic = [p for p in partitions if p.topic == SCHEMAS_TOPIC]
        parents = {p.directory.parent for p in partitions if isinstance(p.directory, Path)}
        beside = [p for d in sorted(parents) if (p := d / f"{SCHEMAS_TOPIC}-0").is_dir()]
        if not of_topic and beside:
            of_topic = survey(beside, (), unreadable_raises=False).partitions
        return _read_topic(of_topic)
    text = os.fspath(source)
    if _HTTP.match(text):
        return _read_url(text)
    path = Path(text)
    if path.is_file() and path.suffix != ".log":
        is_schema = path.suffix in _TYPES and path.suffix != ".json"  # or an answer of a registry
        return _read_files([path]) if is_schema else _read_export(path)
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.suffix in _TYPES)
        if files:
            return _read_files(files)
    found = survey([path], (), unreadable_raises=False).partitions
    of_topic = [p for p in found if p.topic == SCHEMAS_TOPIC]
    if not of_topic and len(found) == 1:
        of_topic = found  # a registry with another topic, named as a partition directory
    if not of_topic:
        names = "SUBJECT.ID.avsc, SUBJECT.ID.proto or SUBJECT.ID.json"
        raise DirectoryError(
            path, f"it has neither a topic {SCHEMAS_TOPIC} nor files named {names}"
        )
    return _read_topic(of_topic)


def _read_topic(partitions: Sequence[Partition]) -> SchemaRegistry:
    """Return the schemas of the partitions of a registry's topic. Damaged and unreadable records,
    files and directories are problems of the registry; the readable records count. Raise
    DirectoryError if two copies of a partition state different topic ids.
    """
    from kafka_log.read.scanning import scan

    builder = RegistryBuilder()
    for partition in merge_tiered_segments(select_replicas(partitions, "newest")):

        def on_lost(path: Path, lost: Lost) -> None:
            builder.add_problem(describe_lost(path, lost))

        columns = ["offset", "key", "value", "damage"]
        for batch in scan([partition], columns, "salvage", on_lost=on_lost):
            for offset, key, value, damage in zip(
                *(batch.column(name).to_pylist() for name in columns), strict=True
            ):
                place = f"{partition.topic}-{partition.partition}, offset {offset}"
                if damage is not None:
                    builder.add_problem(f"{place}: {damage}")
                else:
                    builder.add_record(key, value, place)
    return builder.build()


def _read_files(paths: Iterable[Path]) -> SchemaRegistry:
    """Return the schemas of files whose names end with the id: ``SUBJECT.ID.avsc``, or ``ID.avsc``;
    a number is the version too. An id is a number, a GUID, or an id of Apicurio such as
    ``globalId-7``. Files of Protobuf and JSON Schema without an id are what the others
    of their type can refer to by the file's name. Raise SchemaError for another name, if no file
    has an id, or for too long a file; OSError if one cannot be read.
    """
    names = {path: _FILE_NAME.fullmatch(path.stem) for path in paths}
    has_ids = any(names.values())
    shared = [p for p, name in names.items() if name is None and has_ids and p.suffix != ".avsc"]
    found = [
        SchemaVersion(p.name, 1, _NO_ID, _TYPES[p.suffix], _read_text(p, MAX_TEXT)) for p in shared
    ]
    for path, name in names.items():
        if path in shared:
            continue
        if name is None:
            raise SchemaError(
                f"{path}: the name has no schema id: rename the file to SUBJECT.ID{path.suffix}, such as"
                f" orders-value.7{path.suffix}; the id stands before each value in the log"
            )
        text = _read_text(path, MAX_TEXT)
        subject = name["subject"] or ""
        others = [SchemaReference(p.name, p.name, 1) for p in shared if p.suffix == path.suffix]
        content = _TYPES[path.suffix], text, tuple(others)
        guid = name["guid"]
        if guid is not None:
            one = SchemaVersion(subject, _NO_VERSION, _NO_ID, *content, guid=guid.lower())
        else:
            number = int(name["id"] or name["number"])
            id_kind: Any = name["kind"] or "id"
            one = SchemaVersion(subject, number, number, *content, id_kind=id_kind)
        found.append(one)
    return SchemaRegistry(found)


def _read_export(path: Path) -> SchemaRegistry:
    """Return the schemas of a file: the list of a registry's ``/schemas``, or lines with one object
    of it each, or lines with key and value of records of its topic, separated by a tab. Of several
    with one subject and version the last counts. An invalid record of the topic becomes a problem
    of the registry. Raise SchemaError for any other invalid line, other bytes than UTF-8, or above
    256 MiB; OSError if the file cannot be read. An empty file has no schemas.
    """
    text = _read_text(path, MAX_RESPONSE)
    builder = RegistryBuilder()
    if text.lstrip().startswith("["):
        return _parse_list(text, str(path))
    for number, line in enumerate(io.StringIO(text, newline=None), 1):  # JSON may have U+2028
        key, tab, value = line.rstrip("\n").partition("\t")
        if tab:
            data = None if value in ("null", "") else value.encode()
            builder.add_record(key.encode(), data, f"{path}, line {number}")
        elif line.strip():
            try:
                builder.add_version(parse_version(parse_object(line)))
            except SchemaError as error:
                raise SchemaError(f"{path}, line {number}: {error}") from None
    return builder.build()


def _parse_list(text: str, place: str) -> SchemaRegistry:
    """Return the schemas of a JSON list of versions. Raise SchemaError, which begins with
    ``place``, for anything else.
    """
    builder = RegistryBuilder()
    try:
        found = parse_json(text)
        if not isinstance(found, list):
            raise SchemaError(
                "the JSON is not a list of schema versions, as GET /schemas of a registry returns"
            )
        for fields in found:
            if not isinstance(fields, dict):
                raise SchemaError("an element of the list of schemas is not a JSON object")
            builder.add_version(parse_version(fields))
    except SchemaError as error:
        raise SchemaError(f"{place}: {error}") from None
    return builder.build()


def _read_text(path: Path, most: int) -> str:
    """Return the text of a file, without a byte order mark; ``""`` for an empty file. Raise
    SchemaError above ``most`` bytes or for other bytes than UTF-8; OSError if it cannot be read.
    """
    with open_regular(path, -1) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise SchemaError(
            f"{path}: the file has more than {most:,} bytes, the most that kafka-log reads of schemas"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SchemaError(f"{path}: the file is not UTF-8: {error}: save it as UTF-8") from None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, because they would send the password elsewhere."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """Return None: the redirect becomes an HTTPError."""


def _read_url(url: str) -> SchemaRegistry:
    """Return the schemas that a running registry lists, deleted ones included. Raise OSError if the
    URL is invalid, or the registry does not answer within 30 s, or with an error or a redirect;
    SchemaError if the answer has more than 256 MiB or is no list of schemas. User and password in
    the URL are sent as basic authentication, and appear in no message.
    """
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:  # its text may have the password
        raise OSError("the URL of the schema registry is invalid: correct its host") from None
    shown = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
    target = parts._replace(
        netloc=parts.netloc.rpartition("@")[2],
        path=parts.path.rstrip("/") + "/schemas",
        query="deleted=true",
        fragment="",
    ).geturl()
    request = urllib.request.Request(target, headers={"Accept": "application/json"})
    if parts.username is not None:
        user = urllib.parse.unquote(parts.username)
        password = urllib.parse.unquote(parts.password or "")
        token = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
        request.add_header("Authorization", f"Basic {token}")
    opener = urllib.request.build_opener(_NoRedirects())
    try:
        with opener.open(request, timeout=_TIMEOUT) as response:
            data = response.read(MAX_RESPONSE + 1)
    except urllib.error.HTTPError as error:
        raise OSError(
            f"{shown}: the schema registry answered with HTTP status {error.code}: check the URL, the user and the password"
        ) from None
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or type(error).__name__
        raise OSError(
            f"{shown}: the schema registry does not answer: {reason}; check the URL, or pass a directory of schema files"
        ) from None
    if len(data) > MAX_RESPONSE:
        raise SchemaError(
            f"{shown}: the answer has more than {MAX_RESPONSE:,} bytes, the most that kafka-log reads: pass the schemas as files"
        )
    try:
        return _parse_list(data.decode(), shown)
    except UnicodeDecodeError as error:
        raise SchemaError(f"{shown}: the answer is not UTF-8: {error}") from None
