"""A schema file that cannot be read is the only one with diagnostics: names that other files use may be declared in it."""

from __future__ import annotations

import pytest

from codecgen.check import run
from codecgen.schema import loader
from tests.paths import FOREIGN, NEXT_BATCHES, SCHEMAS

RECORDS = {
    path: text
    for path, text in loader.read_files(SCHEMAS).items()
    if path in ("codecgen.yaml", "records/header.yaml", "records/record.yaml", "records/enums.yaml")
}
FILES = [("records", path) for path in RECORDS if path != "codecgen.yaml"]
FILES += [("protobuf", "wire.yaml"), ("protobuf", "person.yaml"), ("leveldb", "leveldb.yaml")]


def files_of(name: str) -> dict[str, str]:
    return dict(RECORDS) if name == "records" else loader.read_files(FOREIGN / name)


def spoiled(files: dict[str, str], path: str, how: str) -> tuple[dict[str, str], str]:
    """Return the files with one that cannot be read, and its name."""
    text = files.pop(path)
    if how == "another name":
        path = path.replace(".yaml", ".yml")
    wrong = {
        "no end": text + "\n---\n{",
        "no UTF-8": "# \udcff\n" + text,
        "an anchor": "&a " + text,
    }
    return files | {path: wrong.get(how, text)}, path


@pytest.mark.parametrize("how", ["no end", "no UTF-8", "an anchor", "another name"])
@pytest.mark.parametrize(("name", "path"), FILES)
def test_only_the_file_has_diagnostics(name: str, path: str, how: str) -> None:
    files, path = spoiled(files_of(name), path, how)
    model, found = loader.load(files)
    assert model is not None
    assert {d.span.file for d in [*found, *run(model)]} == {path}


def test_other_files_are_still_checked() -> None:
    """Mistakes that no name of the unread file can explain are reported too."""
    files = files_of("protobuf")
    files["wire.yaml"] += "\n---\n{"
    files["person.yaml"] = files["person.yaml"].replace("numbers: {", "numbers: {nonsense: 1, ", 1)
    model, found = loader.load(files)
    assert model is not None
    assert sorted({(d.code, d.span.file) for d in [*found, *run(model)]}) == [
        ("C001", "wire.yaml"),
        ("C004", "person.yaml"),
    ]


def test_a_batch_of_which_a_file_is_missing() -> None:
    """Layouts, enums and given values of the dictionary batch lie in files of their own."""
    own = {
        f"records/{p.name}": p.read_text("utf-8")
        for p in NEXT_BATCHES.glob("dictionary/records/*.yaml")
    }
    for path in own:
        files, path = spoiled(RECORDS | own, path, "no end")
        model, found = loader.load(files)
        assert model is not None
        assert {d.span.file for d in [*found, *run(model)]} == {path}
