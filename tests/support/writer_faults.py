"""Faults of a writer of batches: one stored field, of the header or of a record, that gets another value or is dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path as FilePath
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from hypothesis import reject

from codecgen.runtime.construct import Array, Bits, Layout
from codecgen.runtime.errors import BuildError
from codecgen.runtime.located_bytes import Session, Source
from kafka_log.cli import main
from kafka_log.segment.framing import frame_of
from kafka_log.write import log_writer
from kafka_log.write.field_comparison import is_computed
from kafka_log.write.rewrite import conversion

Path = tuple[str | int, ...]


@dataclass
class FaultyWriter:
    """Changes one field of the first batch that a writer makes, and keeps the checksum right.

    Args:
        make: The writer, which returns the bytes of a batch.
        choose: Chooses one of the fields that the batch has.
    """

    make: Callable[..., bytes]
    choose: Callable[[list[str]], str]
    path: str = ""

    def __call__(self, *args: Any, **options: Any) -> bytes:
        made = self.make(*args, **options)
        if self.path:
            return made
        layout = frame_of(made, 0, "").layout
        parsed = layout.read(Source(made, Session(strict=False)), None)
        paths = {format_path(path): path for path in list_fields(layout, parsed)}
        self.path = self.choose(sorted(paths))
        values = stored_values(layout, parsed)
        change(values, paths[self.path])
        try:
            return bytes(layout.build(values, strict=False))
        except BuildError:  # other fields depend on it
            reject()


def refuses(
    source: FilePath, faults: Mapping[str, str], choose: Callable[[list[str]], str]
) -> None:
    """Run each job of ``faults`` over the partition ``source`` with a fault in its writer, and expect that it names the field and
    leaves nothing. ``faults`` has the name of the function that the job makes batches with, by the command line.
    """
    for command, name in faults.items():
        module = conversion if command.startswith("convert") else log_writer
        writer = FaultyWriter(getattr(module, name), choose)
        with TemporaryDirectory() as place, patch.object(module, name, writer):
            out = FilePath(place, "out")
            told = StringIO()
            with redirect_stdout(told), redirect_stderr(told):
                code = main([*command.split(), str(source), "--out", str(out), "--format", "jsonl"])
            reason = told.getvalue()
            assert writer.path, f"{command} wrote no batch"
            assert code == 1, (command, writer.path, reason)
            assert f"{writer.path} of the batch at offset " in reason, (writer.path, reason)
            assert not [path for path in out.rglob("*") if path.is_file()]


def format_path(path: Path) -> str:
    """Return the text of a path, such as ``records[1].headers[0].key``."""
    texts = (f"[{name}]" if isinstance(name, int) else f".{name}" for name in path)
    return "".join(texts).removeprefix(".")


def list_fields(codec: Any, value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of the fields that builders do not compute: numbers, bits, bytes and arrays."""
    if isinstance(codec, Layout):
        for f in codec.fields:
            if not is_computed(f) and (f.when is None or value[f.name] is not None):
                yield from list_fields(f.codec, value[f.name], (*path, f.name))
    elif isinstance(codec, Bits):
        yield from ((*path, name) for name in codec.by_name if name != "compression")
    else:
        if not isinstance(codec, Array) or len(value):
            yield path
        if isinstance(codec, Array):
            for i, element in enumerate(value):
                yield from list_fields(codec.element, element, (*path, i))


def stored_values(codec: Any, value: Any) -> Any:
    """Return a parsed value without what builders compute, as dicts and lists that can be changed."""
    if isinstance(codec, Layout):
        fields = (f for f in codec.fields if not is_computed(f))
        return {f.name: stored_values(f.codec, value[f.name]) for f in fields}
    if isinstance(codec, Array):
        return [stored_values(codec.element, element) for element in value]
    return dict(value) if isinstance(codec, Bits) else value


def change(values: Any, path: Path) -> None:
    """Give the field with a path another value; drop the last element of an array."""
    *around, last = path
    for name in around:
        values = values[name]
    value = values[last]
    if isinstance(value, list):
        value.pop()
    elif isinstance(value, bool):
        values[last] = not value
    elif isinstance(value, int):
        values[last] = int(value) ^ 1
    else:
        values[last] = "x" if isinstance(value, str) else None if value else b"x"
