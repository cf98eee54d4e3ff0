"""The list of what a job has written: a file of JSON lines that only grows, with a line for each finished item."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from kafka_log.write.output_files import open_output

_NAME = "name"


class Manifest:
    """A manifest file of JSON lines. Each line is an item with a name; the last one of a name
    counts.

    Lines that are incomplete, or lack one of the `fields`, are ignored. Raises OSError.
    """

    def __init__(self, path: Path, fields: Collection[str]) -> None:
        self.path = path
        self._fields = frozenset(fields)
        self._things: dict[str, dict[str, Any]] = {}
        self._read = 0
        self._update()

    def __iter__(self) -> Iterator[str]:
        return iter(self._things)

    def get(self, name: str) -> dict[str, Any] | None:
        """Return the fields of an item, also if another process added it since, or None if the item
        is not there. Raise OSError if the file cannot be read.
        """
        self._update()
        return self._things.get(name)

    def add(self, name: str, said: Mapping[str, Any]) -> None:
        """Append a line with an item of the fields ``said`` to the file, and sync it to the disk; a
        later item replaces one of the same name. An incomplete last line is ended first. Raise
        OSError if that fails.
        """
        line = json.dumps({_NAME: name, **said}, sort_keys=True).encode("ascii")
        is_cut_off = self._is_cut_off()
        with open_output(self.path, "a") as file:
            file.write((b"\n" if is_cut_off else b"") + line + b"\n")
            file.sync()
        self._update()

    def _is_cut_off(self) -> bool:
        """Return whether the file ends in the middle of a line, as after a write that failed.
        Return False if it is missing or empty. Raise OSError if it cannot be read.
        """
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
        """Read the complete lines that were added to the file since the last call into the items.
        Ignore lines that are no JSON or lack a field, and a missing file. Raise OSError if the file
        cannot be read.
        """
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
