"""The file quorum-state of the metadata log: what a voter knows of elections."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from codecgen.runtime.errors import CodecError
from kafka_log.inspect.check.base import Check, are
from kafka_log.inspect.check.finding import Finding
from kafka_log.logs.broker_files import TooLargeError, read_meta_properties, read_small_file
from kafka_log.logs.names import CLUSTER_METADATA, META

NAME = "quorum-state"
MOST = 1 << 20
"""Bytes that it has at most: a line with an entry for each voter."""

_EVERY = {"leaderId": int, "leaderEpoch": int, "votedId": int}
_FIELDS: dict[int, dict[str, type]] = {
    0: {"clusterId": str, **_EVERY, "appliedOffset": int},
    1: {**_EVERY, "votedDirectoryId": str},
}
"""What each version has, but the voters of version 0, which may be null."""


class QuorumStateCheck(Check):
    """A broker reads the first line of the file, and does not start when that is not what it should be."""

    def end(self) -> Iterable[Finding]:
        if self.context.is_whole and self.context.key[0] == CLUSTER_METADATA:
            directory = self.context.partition.directory
            yield from self._of(directory / NAME)
            yield from self._without_id(directory / NAME, directory.parent)

    def _of(self, path: Path) -> Iterator[Finding]:
        try:
            wrong = problem(read_small_file(path, MOST))
        except FileNotFoundError:
            return
        except TooLargeError as error:
            wrong = error.reason, None
        if wrong is not None:
            yield self.context.finding(
                "error",
                "quorum_state",
                path,
                f"The file cannot be read: {wrong[0]}. No broker starts with it.",
                "Make a copy, and start the broker without it while the other voters run: it forgets whom it has voted for.",
                byte=wrong[1],
            )

    def _without_id(self, path: Path, directory: Path) -> Iterator[Finding]:
        """The voters of a dynamic quorum are known by the ids of their directories. Brokers that know no such quorums write none."""
        try:
            state = _state(read_small_file(path, MOST))
        except (OSError, CodecError, ValueError):
            return
        said = read_meta_properties(directory)
        if said is None or said.node_id is None or said.directory_id is not None:
            return
        is_voter = state["votedId"] >= 0 or state["leaderId"] == said.node_id
        if state["data_version"] != 1 or not is_voter:
            yield from self._unassigned(directory / META, said.node_id)
            return
        yield self.context.finding(
            "error",
            "meta_properties",
            directory / META,
            "The file has no directory.id, and voters of the metadata are known by theirs: the node makes a new one when it starts, and is no voter with it.",
            f"Write directory.id into it before you start the node: {NAME} has it as votedDirectoryId if votedId is {said.node_id}, and the other voters know it.",
        )

    def _unassigned(self, properties: Path, node: int) -> Iterator[Finding]:
        """Partitions belong into directories by their ids. Brokers before 3.7 know of none."""
        count = self.context.cluster.assigned_to(node)
        if count:
            yield self.context.finding(
                "warning",
                "meta_properties",
                properties,
                f"The file has no directory.id, and by the metadata {are(count, 'partition')} of the node belong into directories by their ids: the node makes a new id when it "
                "starts, and does not lead those of this directory before it is started once more.",
                "Write directory.id into it before you start the node: the metadata says it of the partitions here (kafka-log metadata).",
            )


def _state(data: bytes) -> dict[str, Any]:
    """The fields of the first line, where they can be read. Raises ValueError."""
    if problem(data) is not None:
        raise ValueError("no state of a quorum")
    found: dict[str, Any] = json.JSONDecoder().raw_decode(data.splitlines()[0].decode().lstrip())[0]
    return found


def problem(data: bytes) -> tuple[str, int | None] | None:
    """Why the bytes are no state of a quorum, and where; None when they are one."""
    if not data:
        return "it is empty", None
    line = data.splitlines()[0].decode("utf-8", "replace")
    try:
        state, _ = json.JSONDecoder().raw_decode(line.lstrip())
    except json.JSONDecodeError as error:
        at = error.pos + len(line) - len(line.lstrip())
        byte = None if "\ufffd" in line[:at] else len(line[:at].encode())
        return f"its first line is no JSON ({error.msg})", byte
    except (ValueError, RecursionError):
        return "its first line is no JSON of such a state", None
    if not isinstance(state, dict):
        return "its first line is no JSON object", None
    return _wrong_fields(state)


def _wrong_fields(state: dict[str, Any]) -> tuple[str, int | None] | None:
    version = state.get("data_version")
    if not _is(version, int) or version not in _FIELDS:
        return "its data_version is not one of 0 and 1", None
    for name, kind in _FIELDS[version].items():
        if not _is(state.get(name), kind):
            return f"it has no {name}, or one of another type", None
    return None


def _is(value: object, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
