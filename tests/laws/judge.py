"""One random directory, judged by all laws; what is found has a name that stays the same while it shrinks."""

from __future__ import annotations

import random
import re
import signal
import traceback
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.laws.codec_laws import codec_laws
from tests.laws.encode_laws import encode_laws
from tests.laws.made import checked, generated, imported
from tests.laws.memory import Broken
from tests.laws.payload_laws import payload_laws
from tests.laws.text_laws import text_laws
from tests.laws.value_laws import value_laws
from tests.laws.view_laws import view_laws
from tests.laws.world import World

TARGETS = ("construct", "docs", "arrow")
SECONDS = 20.0
"""What all laws about one directory may take, on a machine that is busy."""

ALLOWED = ("C023",)
"""The numbers by which targets may refuse what `check` accepts."""


@dataclass
class Finding:
    """Something that a law forbids: which law, or which exception and where it comes from."""

    name: str
    text: str
    schema: str


@dataclass
class Verdict:
    """What became of a directory. ``rejected`` is what `check` says of it, if anything."""

    rejected: str = ""
    finding: Finding | None = None
    refused: list[str] = field(default_factory=list)
    views: int = 0
    rows: int = 0
    written: int = 0


def judge(world: World, thorough: int = 1) -> Verdict:
    """Judge a directory by all laws. ``thorough`` multiplies how many values are tried."""
    verdict = Verdict()
    text = str(world)
    r = random.Random(zlib.crc32(text.encode()))
    try:
        model, found = checked(world)
        if found:
            verdict.rejected = found
            return verdict
        with _in_time(SECONDS * thorough):
            _laws(world, model, r, thorough, verdict)
    except Exception as error:
        signal.setitimer(signal.ITIMER_PROF, 0)
        shown = "".join(traceback.format_exception(error))
        verdict.finding = Finding(name_of(error), shown, text)
    return verdict


@contextmanager
def _in_time(seconds: float) -> Iterator[None]:
    """Raise Broken if the block takes more than `seconds` of this process's processor time."""

    def late(*_: object) -> None:
        raise Broken(f"no end after {seconds} s of processor time")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _laws(world: World, model: object, r: random.Random, thorough: int, verdict: Verdict) -> None:
    made = generated(world, model, TARGETS)
    for target, diagnostics in made.refused.items():
        for d in diagnostics:
            verdict.refused.append(f"{target}: {d.message}")
            if d.code not in ALLOWED:
                raise Broken(f"target {target} refuses with {d.code}: {d.message}")
    verdict.refused += [d.message for d in made.notes]
    if "construct" in made.refused:
        return
    with imported(made) as package:
        codec_laws(made, package, r, 3 * thorough, 6)
        value_laws(made, package, r)
        text_laws(made, package, r, 3 * thorough)
        if "arrow" not in made.refused:
            verdict.views = len(made.facts.views)
            verdict.rows = view_laws(made, package, r, 3 * thorough, 5)
            verdict.views += len(made.facts.payloads)
            verdict.rows += payload_laws(made, package, r, 2 + thorough)
            verdict.written = encode_laws(made, package, r, 2 * thorough)


_DETAILS = re.compile(
    r"[0-9a-f]{6,}|'[^']*'|\"[^\"]*\"|\{.*\}|\[.*\]|-?\d+|\b[a-z_0-9]+@\w+|(?<=of )\w+|^\w+(?=:)"
)


def name_of(error: Exception) -> str:
    """What a finding is called: a law, or an exception and the function of ours that it comes from."""
    if isinstance(error, Broken) and "no end" in str(error):
        frames = [
            f for f in traceback.extract_tb(error.__traceback__) if "tests/laws" not in f.filename
        ]
        return f"law: no end in {frames[-1].name if frames else 'the laws'}"
    if isinstance(error, Broken):
        said = re.sub(r"( is refused| as \[|, not \[).*", r"\1", str(error), flags=re.S)
        own = re.sub(
            r"^(\w+@\w+: (build|\w+)).*( is refused|gives|is read with|not ).*",
            r"\2\3",
            said,
            flags=re.S,
        )
        return "law: " + _DETAILS.sub("_", own)[:70]
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if "tests/laws" not in f.filename
    ]
    last = frames[-1] if frames else traceback.extract_tb(error.__traceback__)[-1]
    own = "laws_codecs" in last.filename
    path = Path(last.filename)
    place = _generated(last.filename) if own else f"{path.parent.name}/{path.name}: {last.name}"
    said = _DETAILS.sub("_", str(error).partition("\n")[0])[:50]
    return f"{type(error).__name__} in {place}: {said}"


def _generated(name: str) -> str:
    for part in ("kernels", "encoders", "numpy"):
        if f"_{part}" in name:
            return f"generated {part}"
    return "generated code"
