"""A schema directory -> a :class:`Model` and what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from codecgen.diagnostics import Diagnostic, Span
from codecgen.listed_files import list_files
from codecgen.runtime.version import LANGUAGE
from codecgen.schema import forms, yaml_tree
from codecgen.schema.documents import ModelBuilder
from codecgen.schema.model import (
    Manifest,
    Model,
)
from codecgen.schema.reader import Reader, Record
from codecgen.schema.uses import Find, load_used

MANIFEST = "codecgen.yaml"
_DIGITS = re.compile("[0-9]{1,9}")
_NOWHERE = Span(MANIFEST, 1, 1, 1)


def read_files(directory: Path) -> dict[str, str]:
    """Return the text of every ``.yaml`` and ``.yml`` file below a directory, by relative path
    (with ``/``), sorted. Skip hidden files and folders. Windows line ends become newlines. Return
    ``{}`` if the directory does not exist. Raise OSError if a file or directory cannot be read.

    Bytes that are not UTF-8 become lone surrogates, which :func:`load` reports. Of a file that is
    too large, only as much is read as shows that.
    """
    out = {}
    for path in list_files(directory):
        if path.suffix in (".yaml", ".yml"):
            with path.open("rb") as file:
                data = file.read(yaml_tree.MAX_BYTES + 1)
            text = data.decode("utf-8", "surrogateescape")
            out[path.relative_to(directory).as_posix()] = text.replace("\r\n", "\n")
    return dict(sorted(out.items()))


def load(
    files: Mapping[str, str], find: Find | None = None
) -> tuple[Model | None, list[Diagnostic]]:
    """Return the model of schema files, by name, and all diagnostics. The model is None if the
    manifest is missing, invalid or in another language version. Declarations that do not match
    their form, files that are no YAML and files named ``.yml`` are reported and left out. ``find`` locates used
    directories; without it, each of them is reported. The checks of the declarations do not run
    here.
    """
    if MANIFEST not in files:
        message = f"the schema directory has no {MANIFEST}"
        help = (
            f"write one with the keys language, package and title (other YAML files: {len(files)})"
        )
        return None, [Diagnostic("C025", message, _NOWHERE, help=help)]
    documents, diagnostics = yaml_tree.load(MANIFEST, files[MANIFEST])
    if len(documents) != 1:
        if not diagnostics:
            message = f"{MANIFEST} must hold one YAML document, and holds {len(documents)}"
            help = "take out the lines `---` between documents, or write the keys language, package and title"
            diagnostics = [Diagnostic("C025", message, _NOWHERE, help=help)]
        return None, diagnostics
    other = _check_language(documents[0])
    if other is not None:
        return None, [*diagnostics, other]
    reader = Reader()
    record = reader.read_record(documents[0], "manifest")
    diagnostics += reader.diagnostics
    if record is None:
        return None, diagnostics
    manifest = _make_manifest(record)
    builder = ModelBuilder(manifest)
    used, found = load_used(manifest, find)
    diagnostics += found
    for file, text in files.items():
        if file.endswith(".yml"):
            help = f'name it "{file.removesuffix(".yml")}.yaml"'
            place = Span(file, 1, 1, 1)
            diagnostics.append(Diagnostic("C025", "schema files end in .yaml", place, help=help))
            builder.skip_file(text)
        elif file != MANIFEST:
            documents, found = yaml_tree.load(file, text)
            diagnostics += found
            if found and not documents:
                builder.skip_file(text)
            for document in documents:
                builder.add_document(document)
    return builder.build(files, used), diagnostics + builder.reader.diagnostics


def _check_language(manifest: yaml_tree.Node) -> Diagnostic | None:
    """Return a diagnostic if the manifest states another language version than ``LANGUAGE``. Return
    None if it is the same, missing, or no number, which is reported elsewhere.
    """
    node = manifest.get("language") if isinstance(manifest, yaml_tree.Mapping) else None
    if not isinstance(node, yaml_tree.Scalar) or not _DIGITS.fullmatch(node.text):
        return None
    if int(node.text) == LANGUAGE:
        return None
    message = (
        f"the files are in version {int(node.text)} of the schema language; {LANGUAGE} is known"
    )
    help = "install the release of the generator that knows it"
    if int(node.text) < LANGUAGE or int(node.text) == 0:
        help = f"change them as the changelog says, and write `language: {LANGUAGE}`"
    return Diagnostic("C020", message, node.span, help=help)


def _make_manifest(r: Record) -> Manifest:
    """Return the manifest of a schema directory from its record, with defaults for missing keys:
    ``snake`` spelling, and empty text, tuples and mappings.
    """
    documents = r["documents"]
    return Manifest(
        package=str(r["package"]),
        title=r.text("title"),
        doc=r.text("doc"),
        span=r.span,
        spelling=cast(Any, r["spelling"] or "snake"),
        release_line=cast(str | None, r["release_line"]),
        releases=forms.words(r["releases"]),
        links={k: str(v) for k, v in forms.entries(r["links"])},
        as_of=forms.words(documents["as_of"]) if isinstance(documents, Record) else (),
        as_of_folders=forms.words(documents["as_of_folders"])
        if isinstance(documents, Record)
        else (),
        pages_at=documents.text("at") if isinstance(documents, Record) else "",
        uses={k: str(v) for k, v in forms.entries(r["uses"])},
        accepted_breaks=tuple(forms.accepted_breaks(r["accepted_breaks"])),
        places=r.places(),
    )
