"""Schema directories whose facts are changed: the project's own, and those of tests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from codecgen.schema.loader import read_files
from tests.mutants.edits import Mutant
from tests.mutants.facts import mutants
from tests.mutants.selection import Selection, selection
from tests.paths import FOREIGN, NEXT_BATCHES, SCHEMAS

LANGUAGE = "tests/codecgen/language"
OF_FORMATS = {
    "git": "git or index",
    "mbr": "mbr or master_boot_record",
    "protobuf": "protobuf or any_message or known_message",
}
"""What pytest's -k has to find for a foreign format, where it is not the name of the directory."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A schema directory whose facts are changed.

    Attributes:
        directory: Where it lies below a trial's directory; names of mutants begin with it, but for the project's own schemas.
        variable: The name in `tests.paths` by which tests find it, or the directory around it.
        root: The directory that the variable names in the checkout.
        files: What is generated: path -> text.
        changed: The files whose facts are changed.
        select: Which tests a mutant has to get past.
    """

    directory: str
    variable: str
    root: Path
    files: Mapping[str, str]
    changed: Collection[str]
    select: Callable[[Mutant], Selection]

    def mutants(self) -> list[Mutant]:
        """Return the mutants, with paths of files below a trial's directory; without it for the project's own schemas."""
        made = [m for m in mutants(self.files) if m.file in self.changed]
        if self.root == SCHEMAS:
            return made
        return [replace(m, file=f"{self.directory}/{m.file}") for m in made]

    def apply(self, mutant: Mutant | None) -> Mapping[str, str]:
        """Return the files with the change of a mutant, or as they are."""
        if mutant is None:
            return self.files
        path = mutant.file.removeprefix(f"{self.directory}/")
        return {**self.files, path: mutant.apply(self.files[path])}

    def write(self, root: Path, files: Mapping[str, str]) -> Path:
        """Write files to the place of the directory below `root`, and link what lies beside it in the checkout. Return
        what the variable names then."""
        for path, text in files.items():
            target = root / self.directory / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        if self.root == SCHEMAS:
            return root / self.directory
        around = root / self.directory.partition("/")[0]
        name = self.directory.partition("/")[2]
        for place in (self.root, self.root / name):
            for beside in place.iterdir():
                link = around / beside.relative_to(self.root)
                if not link.exists():
                    link.symlink_to(beside)
        return around


def own() -> Subject:
    """Return the project's own schemas."""
    files = read_files(SCHEMAS)
    return Subject("schemas", "SCHEMAS", SCHEMAS, files, files.keys(), selection)


def foreign(name: str) -> Subject:
    """Return a format that is not Kafka's."""
    files = read_files(FOREIGN / name)
    tests = tuple(
        f"{LANGUAGE}/test_{name}.py"
        for name in ("foreign_fields", "foreign_formats", "formats_of_tools")
    )
    wanted = Selection(tests, OF_FORMATS.get(name, name))
    changed = files.keys() - {"codecgen.yaml"}
    return Subject(f"foreign/{name}", "FOREIGN", FOREIGN, files, changed, lambda _: wanted)


def next_batch(name: str) -> Subject:
    """Return a batch that a next version of the log format might have, beside the layouts of today."""
    added = {f"records/{p.name}": p.read_text("utf-8") for p in (NEXT_BATCHES / name).glob("records/*.yaml")}  # fmt: skip
    today = read_files(SCHEMAS)
    files = {path: text for path, text in today.items() if path.startswith("records/")}
    del files["records/control_record_value.yaml"]  # what is in it lies elsewhere
    files |= {"codecgen.yaml": today["codecgen.yaml"], **added}
    tests = ("tests/codecs/test_next_batch_facts.py", "tests/codecs/test_next_batches.py")
    wanted = Selection(tests, f"{name} and not noticed")
    directory = f"next_batches/{name}"
    return Subject(directory, "NEXT_BATCHES", NEXT_BATCHES, files, added.keys(), lambda _: wanted)


def subjects(group: str) -> Sequence[Subject]:
    """Return the subjects of a group: `kafka`, `foreign`, `batches`, or `all`."""
    found: list[Subject] = [own()] if group in ("kafka", "all") else []
    if group in ("foreign", "all"):
        found += [foreign(p.name) for p in sorted(FOREIGN.iterdir()) if p.is_dir()]
    if group in ("batches", "all"):
        places = sorted(NEXT_BATCHES.glob("*/records"))
        found += [next_batch(place.parent.name) for place in places]
    return found


GROUPS = ("kafka", "foreign", "batches", "all")
