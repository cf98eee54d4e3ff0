"""Schemas by subject, version and id, as a schema registry builds them from the records of its topic."""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

SchemaState = Literal["registered", "deleted", "removed"]
"""``deleted``: a soft delete, after which the registry still returns the schema by its id. ``removed``: a tombstone, a cleared
subject, or another schema in its place; the registry has forgotten it, but its text is still in the log."""

AVRO, JSON_SCHEMA, PROTOBUF = "AVRO", "JSON", "PROTOBUF"
"""Types of schemas, as the registry names them. A schema without a type is Avro."""

MAX_TEXT = 16 << 20
"""Maximum characters of a schema, or of the JSON text that holds it."""

MAX_REFERENCES = 1_000
"""Maximum number of schemas that one schema refers to, directly and through others."""

MAX_PROBLEMS = 1_000
"""Maximum number of problems of records that are kept."""

OTHER_SOURCE = (
    "give the registry or the file that has it (--schemas), or read the bytes (--decode none)"
)
"""What to do about a schema that is not known."""

_MAX_NUMBER = (1 << 31) - 1
_CONTEXT = re.compile(r":(\.[^:]*):")
_DEFAULT_CONTEXT = "."


IdKind = Literal["id", "globalId", "contentId"]
"""What an id numbers: the ids of Confluent's registry (``id``), or one of the two kinds of Apicurio."""

Writer = Literal["confluent", "glue", "apicurio"]
"""Registry whose serializers write the form of a frame."""


class SchemaError(ValueError):
    """Raised if there is no schema, or more than one, for an id or a reference, or a schema is invalid."""


@dataclass(frozen=True, slots=True)
class SchemaId:
    """Id or GUID of a schema as a frame has it, and how the frame's data is written.

    Attributes:
        number: Id. None: the frame has a GUID.
        guid: GUID, or the UUID of a schema version of AWS Glue.
        indexes: Bytes after the GUID in a header: the path of a Protobuf message.
        writer: Registry whose serializers write this form.
        kinds: What the number can be.
        other: Id of a known schema that the same bytes begin with in the form of Confluent. None: there is none.
        is_compressed: Whether the data is compressed (zlib).
        is_binary: Whether values of Avro have its binary encoding, not its JSON encoding.
    """

    number: int | None = None
    guid: str | None = None
    indexes: bytes = b""
    writer: Writer = "confluent"
    kinds: tuple[IdKind, ...] = ("id",)
    other: int | None = None
    is_compressed: bool = False
    is_binary: bool = True

    def __str__(self) -> str:
        return str(self.guid if self.number is None else self.number)

    @property
    def without_data(self) -> SchemaId:
        """The same id, without how the data of one value is written."""
        return replace(self, indexes=b"", is_compressed=False, is_binary=True)


@dataclass(frozen=True, slots=True)
class SchemaReference:
    """Reference from one schema to another. ``name`` is the name by which the text refers to it."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """Version of the schema of a subject. ``type`` is AVRO, PROTOBUF, JSON, or another text that the registry stored. ``version`` is 0,
    and ``id`` negative, if only the GUID is known.
    """

    subject: str
    version: int
    id: int
    type: str
    text: str
    references: tuple[SchemaReference, ...] = ()
    state: SchemaState = "registered"
    guid: str | None = None
    id_kind: IdKind = "id"

    @property
    def label(self) -> str:
        """Id for messages; the GUID if only that is known."""
        return self.guid if self.id < 0 and self.guid is not None else str(self.id)

    @property
    def context(self) -> str:
        """Context of the subject, in which the id is unique: ``.`` by default."""
        found = _CONTEXT.match(self.subject)
        return _DEFAULT_CONTEXT if found is None else found[1]

    @property
    def content(self) -> tuple[str, str, tuple[SchemaReference, ...]]:
        """Type, text and references. Versions of several subjects with the same content have the same id."""
        return self.type, self.text, self.references


class SchemaRegistry:
    """Schemas by subject and version, and by id. ``apicurio_ids`` are the numbers that are a globalId or a contentId.

    Args:
        versions: The versions. Of several with the same subject, version and content, the last one counts.
        problems: What could not be read, one line per problem.
    """

    def __init__(
        self, versions: Sequence[SchemaVersion] = (), problems: Sequence[str] = ()
    ) -> None:
        self.versions = tuple(sorted(versions, key=lambda v: (v.subject, v.version, v.id)))
        self.problems = tuple(problems)
        self._by_id: dict[tuple[IdKind, int], list[SchemaVersion]] = defaultdict(list)
        self._by_guid: dict[str, list[SchemaVersion]] = defaultdict(list)
        self._by_subject: dict[str, list[SchemaVersion]] = defaultdict(list)
        self.apicurio_ids = frozenset(v.id for v in self.versions if v.id_kind != "id")
        for version in self.versions:
            self._by_id[version.id_kind, version.id].append(version)
            self._by_subject[version.subject].append(version)
            if version.guid is not None:
                self._by_guid[version.guid].append(version)

    @property
    def digest(self) -> str:
        """SHA-256 of all versions, to tell whether two registries are the same."""
        return hashlib.sha256(repr(self.versions).encode()).hexdigest()

    def has_id(self, number: int) -> bool:
        """Return whether a schema has an id of Confluent's registry, or several have."""
        return ("id", number) in self._by_id

    def find(self, schema_id: SchemaId, subject: str | None = None) -> SchemaVersion:
        """Return the version with an id or GUID, as :meth:`find_by_id` and :meth:`find_by_guid` do.
        Raise SchemaError if there is none, or several that differ, or if the frame also has the id
        of another registry.
        """
        if schema_id.number is None:
            return self.find_by_guid(str(schema_id.guid))
        if schema_id.other is not None:
            raise SchemaError(
                f"it begins with the id {schema_id.other} in 4 bytes, and with the id {schema_id.number} in 8 bytes as"
                " Apicurio writes it, and both have schemas: give the schemas of one registry (--schemas)"
            )
        return self.find_by_id(schema_id.number, subject, schema_id.kinds)

    def find_by_id(
        self, number: int, subject: str | None = None, kinds: Sequence[IdKind] = ("id",)
    ) -> SchemaVersion:
        """Return the version with an id of one of ``kinds``: of ``subject`` if it has one, else of
        the default context, else of any; the last of several, a removed one only if these have no
        other. Raise SchemaError if no schema has the id, or if those to choose from differ in type,
        text or references.
        """
        found = [version for kind in kinds for version in self._by_id.get((kind, number), [])]
        name = f"{' or '.join(kinds)} {number}"
        if not found:
            raise SchemaError(f"no schema with {name} is registered: {OTHER_SOURCE}")
        return self._select(found, subject, name)

    def find_by_guid(self, guid: str) -> SchemaVersion:
        """Return the version with a GUID: of the default context if it has one, else of any; a
        removed one only if these have no other. Raise SchemaError if no schema has it, or if those
        to choose from differ in type, text or references. GUIDs are compared as they are spelled.
        """
        found = self._by_guid.get(guid, [])
        if not found:
            raise SchemaError(f"no schema with GUID {guid} is registered: {OTHER_SOURCE}")
        return self._select(found, None, f"GUID {guid}")

    def _select(
        self, found: Sequence[SchemaVersion], subject: str | None, name: str
    ) -> SchemaVersion:
        """Return a version of ``found``: of ``subject``, else of the default context, else any;
        removed ones only if the group has no other; the last of several. Raise SchemaError, which
        begins with ``name``, if the candidates differ in content.
        """
        tries: list[Callable[[SchemaVersion], bool]] = [
            lambda v: v.subject == subject and v.state != "removed",
            lambda v: v.subject == subject,
            lambda v: v.context == _DEFAULT_CONTEXT and v.state != "removed",
            lambda v: v.context == _DEFAULT_CONTEXT,
            lambda v: v.state != "removed",
            lambda v: True,
        ]
        for is_candidate in tries:
            candidates = [version for version in found if is_candidate(version)]
            if candidates:
                break
        if len({version.content for version in candidates}) > 1:
            subjects = ", ".join(sorted({repr(v.subject) for v in candidates})[:5])
            raise SchemaError(
                f"{name} belongs to several schemas that differ (subjects {subjects}): give schemas with only one of them"
                " (schemas, --schemas)"
            )
        return candidates[-1]

    def subject_versions(self, subject: str) -> tuple[SchemaVersion, ...]:
        """Return the versions of a subject that are not removed, oldest first; all if every one is
        removed; ``()`` for an unknown subject.
        """
        found = self._by_subject.get(subject, [])
        return tuple(v for v in found if v.state != "removed") or tuple(found)

    def find_version(self, subject: str, version: int) -> SchemaVersion:
        """Return a version of a subject, also a deleted one; a removed one only if all versions of
        the subject are removed. Raise SchemaError if the subject has none with this number, or has
        had several that differ.
        """
        found = [v for v in self.subject_versions(subject) if v.version == version]
        if not found:
            numbers = [str(v.version) for v in self.subject_versions(subject) if v.version]
            listed = ", ".join(numbers[:20])
            known = f"its versions: {listed}" if listed else "no version of the subject is known"
            raise SchemaError(f"subject {subject!r} has no version {version}; {known}")
        return self._select(found, subject, f"version {version} of subject {subject!r}")

    def resolve_references(self, version: SchemaVersion) -> tuple[tuple[str, SchemaVersion], ...]:
        """Return the schemas that a schema refers to, directly and through others, as pairs of name
        and version. Each comes after the schemas that it needs itself. Raise SchemaError for a
        schema that is missing or has several texts, a cycle, one name for two schemas, or more than
        1,000 of them. Texts are not parsed.
        """
        found: dict[str, SchemaVersion] = {}
        pending: list[tuple[str, SchemaVersion, Iterator[SchemaReference]]] = [
            ("", version, iter(version.references))
        ]
        open_keys = {(version.subject, version.version)}
        while pending:
            name, current, references = pending[-1]
            reference = next(references, None)
            if reference is None:
                pending.pop()
                open_keys.discard((current.subject, current.version))
                if pending and found.setdefault(name, current).content != current.content:
                    raise SchemaError(
                        f"schema {version.label} refers to two schemas by the name {name!r}: its values are not decoded"
                    )
                continue
            key = reference.subject, reference.version
            if key in open_keys:
                raise SchemaError(
                    f"schema {version.label} refers to itself through subject {reference.subject!r},"
                    f" version {reference.version}"
                )
            target = self.find_version(*key)
            if found.get(reference.name) == target:
                continue
            if len(found) + len(pending) > MAX_REFERENCES:
                raise SchemaError(
                    f"schema {version.label} refers to more than {MAX_REFERENCES} schemas, the most that kafka-log takes: read the values as bytes"
                )
            open_keys.add(key)
            pending.append((reference.name, target, iter(target.references)))
        return tuple(found.items())


class RegistryBuilder:
    """Builds a registry from the records of its topic, given in offset order."""

    def __init__(self) -> None:
        self._current: dict[str, dict[int, SchemaVersion]] = defaultdict(dict)
        self._removed: dict[tuple[str, int, int], SchemaVersion] = {}
        self._problems: list[str] = []
        self._dropped = 0

    def add_problem(self, text: str) -> None:
        """Add a line to the problems of the registry; after 1,000 lines only count it."""
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(text)
        else:
            self._dropped += 1

    def add_record(self, key: bytes | None, value: bytes | None, place: str) -> None:
        """Apply a record of the registry's topic to the schemas: it adds a version, removes it
        (``value`` None), or deletes or clears a subject. A record that is invalid or has no key
        changes nothing and is a problem, which begins with ``place``. Records of other kinds
        (configurations, modes, ...) change nothing, nor do deletions of a subject without a value.
        """
        try:
            if key is None:
                raise SchemaError("the record of the topic _schemas has no key, and is ignored")
            names = parse_object(key)
            kind = _text_in(names, "keytype")
            if kind == "SCHEMA":
                self._add_schema(names, value)
            elif kind in ("DELETE_SUBJECT", "CLEAR_SUBJECT") and value is not None:
                self._delete_subject(kind, names, parse_object(value))
        except SchemaError as error:
            self.add_problem(f"{place}: {error}")

    def add_version(self, version: SchemaVersion) -> None:
        """Add a version, which replaces one with the same subject and number. If the replaced one
        has another id, it is kept with the state ``removed``.
        """
        key = version.subject, version.version
        self._remove(key)
        self._current[version.subject][version.version] = version
        self._removed.pop((*key, version.id), None)

    def build(self) -> SchemaRegistry:
        """Return the registry of all records so far: current and removed versions, and the
        problems, with a last line that counts those beyond the first 1,000.
        """
        problems = list(self._problems)
        if self._dropped:
            problems.append(f"{self._dropped:,} more records of the registry are invalid")
        current = [
            version for of_subject in self._current.values() for version in of_subject.values()
        ]
        return SchemaRegistry([*current, *self._removed.values()], problems)

    def _add_schema(self, names: Mapping[str, Any], value: bytes | None) -> None:
        """Add the version that a record stores, or remove the one that its key ``names`` if its
        value is null. Raise SchemaError for an invalid record, also if key and value name different
        versions.
        """
        key = _text_in(names, "subject"), _number_in(names, "version")
        if value is None:
            self._remove(key)
            return
        version = parse_version(parse_object(value))
        if (version.subject, version.version) != key:
            raise SchemaError(
                f"the key names version {key[1]} of subject {key[0]!r}, the value version"
                f" {version.version} of subject {version.subject!r}: the record is ignored"
            )
        self.add_version(version)

    def _delete_subject(
        self, kind: str, names: Mapping[str, Any], value: Mapping[str, Any]
    ) -> None:
        """For DELETE_SUBJECT (``kind``) mark the versions of the subject in the key ``names`` as
        deleted, up to the version in ``value``, which is included; for CLEAR_SUBJECT remove all of
        them. Raise SchemaError for an invalid record.
        """
        subject = _text_in(names, "subject")
        last = _number_in(value, "version") if kind == "DELETE_SUBJECT" else _MAX_NUMBER
        of_subject = self._current[subject]
        for number, version in list(of_subject.items()):
            if number > last:
                continue
            if kind == "CLEAR_SUBJECT":
                self._remove((subject, number))
            elif version.state != "deleted":
                of_subject[number] = replace(version, state="deleted")

    def _remove(self, key: tuple[str, int]) -> None:
        """Keep the current version of a key as removed; do nothing if there is none."""
        before = self._current[key[0]].pop(key[1], None)
        if before is not None:
            self._removed[*key, before.id] = replace(before, state="removed")


def parse_version(fields: Mapping[str, Any]) -> SchemaVersion:
    """Return the version that a JSON object describes, as the topic of a registry and its REST API
    write it. Without ``schemaType`` it is Avro; unknown types are accepted, in upper case. It is
    registered unless ``deleted`` is true; references and ``guid`` may be missing. Raise SchemaError
    for other missing, and for invalid fields. The text of the schema is not parsed.
    """
    references = fields.get("references")
    if references is None:
        references = []
    if not isinstance(references, list) or len(references) > MAX_REFERENCES:
        raise SchemaError(
            f"'references' of a schema is not a list of at most {MAX_REFERENCES} references"
        )
    guid = fields.get("guid")
    kind = fields.get("schemaType")
    return SchemaVersion(
        _text_in(fields, "subject"),
        _number_in(fields, "version"),
        _number_in(fields, "id", 0),
        AVRO if kind is None else _text_in(fields, "schemaType").upper(),
        _text_in(fields, "schema"),
        tuple(_parse_reference(reference) for reference in references),
        "deleted" if fields.get("deleted") is True else "registered",
        None if guid is None else _text_in(fields, "guid").lower(),
    )


def _parse_reference(fields: Any) -> SchemaReference:
    """Return a reference from its JSON object. Raise SchemaError if it is not one."""
    if not isinstance(fields, dict):
        raise SchemaError("a reference of a schema is not a JSON object")
    return SchemaReference(
        _text_in(fields, "name"), _text_in(fields, "subject"), _number_in(fields, "version")
    )


def parse_object(data: bytes | str) -> dict[str, Any]:
    """Return the JSON object of a text. Raise SchemaError for anything else, and above 16 Mi
    characters or bytes. Of equal names the last one counts.
    """
    if len(data) > MAX_TEXT:
        raise SchemaError(
            f"the JSON has {len(data):,} bytes, more than the {MAX_TEXT:,} that kafka-log reads"
        )
    found = parse_json(data)
    if not isinstance(found, dict):
        raise SchemaError("the text is not a JSON object")
    return found


def parse_json(data: bytes | str) -> Any:
    """Return the JSON value of a text, or of bytes in UTF-8, UTF-16 or UTF-32. Of equal names in an
    object the last one counts; NaN and Infinity are accepted. Raise SchemaError if it is not JSON,
    such as an empty text, or nested too deep, or bytes are invalid.
    """
    try:
        return json.loads(data)
    except RecursionError:
        raise SchemaError("the JSON is nested too deep to be read") from None
    except ValueError as error:
        raise SchemaError(f"the text is not JSON: {error}") from None


def _text_in(fields: Mapping[str, Any], name: str) -> str:
    """Return the text with the key ``name`` of a JSON object. Raise SchemaError if it is missing,
    no text, or has half of a surrogate pair, so that UTF-8 cannot hold it.
    """
    found = fields.get(name)
    if not isinstance(found, str):
        raise SchemaError(f"the field {name!r} is missing or not text")
    try:
        found.encode()
    except UnicodeEncodeError:
        raise SchemaError(
            f"the field {name!r} has half of a surrogate pair, which UTF-8 cannot hold"
        ) from None
    return found


def _number_in(fields: Mapping[str, Any], name: str, low: int = 1) -> int:
    """Return the number with the key ``name`` of a JSON object. Raise SchemaError if it is missing,
    no whole number, below ``low``, or above 2^31 - 1.
    """
    found = fields.get(name)
    if type(found) is not int or not low <= found <= _MAX_NUMBER:
        raise SchemaError(
            f"the field {name!r} is missing or not a whole number from {low} to {_MAX_NUMBER}"
        )
    return found
