"""What a job has made, in a file beside it: a line of JSON for each thing, added when that is whole, so that thousands cost no more each than a few."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from kafka_log.write.output_files import open_output

_NAME = "name"


class Manifest:
    """The things in a file, by their names; those without one of the ``fields`` are unknown. Of several lines of one name the last counts. A
    line that was cut off, as where a disk is full, counts for nothing, nor does what no job has written. Raises OSError."""

    def __init__(self, path: Path, fields: Collection[str]) -> None:
        self.path = path
        self._fields = frozenset(fields)
        self._things: dict[str, dict[str, Any]] = {}
        self._read = 0
        self._update()

    def __iter__(self) -> Iterator[str]:
        return iter(self._things)

    def get(self, name: str) -> dict[str, Any] | None:
        """What is said of a thing, also by another process that has written meanwhile; None: nothing."""
        self._update()
        return self._things.get(name)

    def add(self, name: str, said: Mapping[str, Any]) -> None:
        """Say something of a thing. It is on the disk then. Raises OSError."""
        line = json.dumps({_NAME: name, **said}, sort_keys=True).encode("ascii")
        is_cut_off = self._is_cut_off()
        with open_output(self.path, "a") as file:
            file.write((b"\n" if is_cut_off else b"") + line + b"\n")
            file.sync()
        self._update()

    def _is_cut_off(self) -> bool:
        """Return whether the file ends in the middle of a line, as after a write that failed. Raises OSError."""
        try:
            with self.path.open("rb") as file:
                return (
                    file.seek(0, os.SEEK_END) > 0
                    and file.seek(-1, os.SEEK_END) >= 0
                    and file.read(1) != b"\n"
                )
        except FileNotFoundError:
            return False

    def _update(self) -> None:
        """Read the lines that have been added, as far as they are whole."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._read)
                added = file.read()
        except FileNotFoundError:
            return
        whole = added[: added.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            try:
                said = json.loads(line)
            except (ValueError, RecursionError):
                continue
            is_thing = isinstance(said, dict) and self._fields <= said.keys()
            if is_thing and isinstance(said.get(_NAME), str):
                self._things[said.pop(_NAME)] = said
