"""Check of the file quorum-state of the metadata log, in which a voter keeps its vote."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from codecgen.runtime.errors import CodecError
from codecgen.runtime.nouns import count_noun
from kafka_log.inspect.check.base import Check
from kafka_log.inspect.check.finding import Finding
from kafka_log.logs.broker_files import TooLargeError, read_meta_properties, read_small_file
from kafka_log.logs.names import CLUSTER_METADATA, META

NAME = "quorum-state"
MAX_BYTES = 1 << 20
"""Maximum size of the file: one line with an entry for each voter."""

_EVERY = {"leaderId": int, "leaderEpoch": int, "votedId": int}
_FIELDS: dict[int, dict[str, type]] = {
    0: {"clusterId": str, **_EVERY, "appliedOffset": int},
    1: {**_EVERY, "votedDirectoryId": str},
}
"""Required fields of each version and their types. ``currentVoters`` of version 0 may be null."""


class QuorumStateCheck(Check):
    """Finds an unreadable quorum-state, with which a node does not start, and a missing directory id of a voter."""

    def check_end(self) -> Iterable[Finding]:
        if self.context.is_whole and self.context.key[0] == CLUSTER_METADATA:
            directory = self.context.partition.directory
            yield from self._check_file(directory / NAME)
            yield from self._check_directory_id(directory / NAME, directory.parent)

    def _check_file(self, path: Path) -> Iterator[Finding]:
        """Yield a ``quorum_state`` error if the file is empty, larger than MAX_BYTES, or its first
        line is not a valid quorum state. Yield nothing if it does not exist. Raise OSError if it
        cannot be read.
        """
        try:
            wrong = find_problem(read_small_file(path, MAX_BYTES))
        except FileNotFoundError:
            return
        except TooLargeError as error:
            wrong = error.reason, None
        if wrong is not None:
            yield self.context.finding(
                "quorum_state",
                path,
                f"The file cannot be read: {wrong[0]}. The node does not start with it.",
                byte=wrong[1],
            )

    def _check_directory_id(self, path: Path, directory: Path) -> Iterator[Finding]:
        """Yield a ``meta_properties`` finding if meta.properties has a node id but no directory id.
        It is an error if the node is a voter in a dynamic quorum (version 1 of quorum-state), else
        a warning if the metadata assigns its partitions to directory ids. Yield nothing otherwise,
        and if quorum-state or meta.properties is missing or invalid.

        Voters of a dynamic quorum are identified by their directory ids. Brokers that do not support it write none.
        """
        try:
            state = _parse_state(read_small_file(path, MAX_BYTES))
        except (OSError, CodecError, ValueError):
            return
        said = read_meta_properties(directory)
        if said is None or said.node_id is None or said.directory_id is not None:
            return
        is_voter = state["votedId"] >= 0 or state["leaderId"] == said.node_id
        if state["data_version"] != 1 or not is_voter:
            yield from self._check_assignments(directory / META, said.node_id)
            return
        yield self.context.finding(
            "meta_properties",
            directory / META,
            "The file has no directory.id, which identifies voters of the metadata quorum. The node generates a new one when it starts, and is no voter with it.",
            remedy=f"Write directory.id into the file before you start the node: {NAME} has it as votedDirectoryId if votedId is {said.node_id}, and the other voters know it.",
        )

    def _check_assignments(self, properties: Path, node: int) -> Iterator[Finding]:
        """Yield a ``meta_properties`` warning if the cluster metadata assigns partitions of the
        node to directories by their ids. Yield nothing if it assigns none, or the metadata is
        unknown.
        """
        count = self.context.cluster.assigned_to(node)
        if count:
            yield self.context.finding(
                "meta_properties",
                properties,
                f"The file has no directory.id, and the metadata assigns {count_noun(count, 'partition')} of the node to directories by their ids. The node generates a new id when it "
                "starts, and may not lead the partitions of this directory until it is restarted.",
                severity="warning",
                remedy="Write directory.id into the file before you start the node: the metadata has it for the partitions here (kafka-log metadata).",
            )


def _parse_state(data: bytes) -> dict[str, Any]:
    """Return the JSON object in the first line of a quorum-state file. Raise ValueError if the
    bytes are not a valid quorum state (:func:`find_problem`).
    """
    if find_problem(data) is not None:
        raise ValueError("the bytes are not a valid quorum-state file; find_problem says why")
    found: dict[str, Any] = json.JSONDecoder().raw_decode(data.splitlines()[0].decode().lstrip())[0]
    return found


def find_problem(data: bytes) -> tuple[str, int | None] | None:
    """Return why the bytes are not a quorum-state file, and the byte of the error (None if
    unknown); None if they are one. Only the first line is read: it begins with a JSON object that
    has ``data_version`` 0 or 1 and the fields of that version with their types.
    """
    if not data:
        return "it is empty", None
    line = data.splitlines()[0].decode("utf-8", "replace")
    if not line.lstrip().startswith("{"):
        return "its first line does not begin with {", len(line) - len(line.lstrip())
    try:
        state, _ = json.JSONDecoder().raw_decode(line.lstrip())
    except json.JSONDecodeError as error:
        at = error.pos + len(line) - len(line.lstrip())
        byte = None if "\ufffd" in line[:at] else len(line[:at].encode())
        return (
            f"its first line is not valid JSON: at this byte a JSON reader reports {error.msg!r}; the error may be before it",
            byte,
        )
    except (ValueError, RecursionError):
        return "its first line is not the JSON of a quorum state", None
    return _find_wrong_field(state)


def _find_wrong_field(state: dict[str, Any]) -> tuple[str, int | None] | None:
    """Return a reason and None (for the byte) if ``data_version`` is not 0 or 1, or for the first
    required field that is missing or has another type. Return None if all are valid. Booleans are
    not integers.
    """
    version = state.get("data_version")
    if not _has_type(version, int) or version not in _FIELDS:
        return "its data_version is not one of 0 and 1", None
    for name, kind in _FIELDS[version].items():
        if not _has_type(state.get(name), kind):
            return f"its {name} is missing or has the wrong type", None
    return None


def _has_type(value: object, kind: type) -> bool:
    """Return whether ``value`` has the type ``kind``; booleans are not integers."""
    return isinstance(value, kind) and not isinstance(value, bool)
