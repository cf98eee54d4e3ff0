"""Exports with times that are told from the present: one that was stopped goes on with the times as of when it was begun."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kafka_log.write.beside import whole_file

NOTES = "kafka-log-export-unfinished.json"
"""Beside the files while such an export is not finished: what was asked for, and when (milliseconds since 1970)."""


def begun_at(out: Path, asked: Mapping[str, Any]) -> int | None:
    """When an export that is not finished was begun that asked for the same; None where there is none."""
    return next((time for known, time in _read(out) if known == _plain(asked)), None)


def note_begun(out: Path, asked: Mapping[str, Any], time: int) -> None:
    """Note that an export was begun. Raises OSError."""
    _write(out, [*_others(out, asked), (_plain(asked), time)])


def note_finished(out: Path, asked: Mapping[str, Any]) -> None:
    """Forget an export that has been finished. Raises OSError."""
    before = _read(out)
    rest = _others(out, asked)
    if len(rest) < len(before):
        _write(out, rest)


_Note = tuple[Any, int]


def _others(out: Path, asked: Mapping[str, Any]) -> list[_Note]:
    return [note for note in _read(out) if note[0] != _plain(asked)]


def _read(out: Path) -> list[_Note]:
    try:
        found = json.loads((out / NOTES).read_bytes())
        return [(note["asked"], int(note["begun"])) for note in found]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (ValueError, TypeError, KeyError):
        return []  # not ours, or cut: nobody knows what was begun


def _write(out: Path, notes: list[_Note]) -> None:
    path = out / NOTES
    if not notes:
        path.unlink(missing_ok=True)
        return
    with whole_file(path) as file:
        text = json.dumps([{"asked": asked, "begun": time} for asked, time in notes], indent=1)
        file.write(text.encode("ascii"))


def _plain(asked: Mapping[str, Any]) -> Any:
    return json.loads(json.dumps(asked, default=str, sort_keys=True))
