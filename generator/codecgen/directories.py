"""Load schema directories, with the directories that they use, and check them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from codecgen.check import run as run_checks
from codecgen.diagnostics import Diagnostic
from codecgen.plan.generated_names import SHIPPED
from codecgen.runtime.nouns import count_noun
from codecgen.schema import loader, yaml_tree
from codecgen.schema.model import Model, UsedDirectory
from codecgen.schema.other_words import NAME
from codecgen.schema.uses import CannotUse, file_texts

DEEPEST = 16
"""How many directories may use each other in a row."""

Loaded = tuple[Model | None, list[Diagnostic], Mapping[str, str]]


def load(directory: Path) -> Loaded:
    """Return the model of a schema directory (None if unusable), all diagnostics, and the text of its files."""
    return _Loader().load(directory, ())


def load_with(directory: Path, files: Mapping[str, str]) -> Loaded:
    """Return what :func:`load` would return if ``files`` were in the directory, which need not exist."""
    return _Loader().load(directory, (), files)


def read_all_files(directory: Path) -> dict[Path, Mapping[str, str]]:
    """Return the files of a schema directory and of all directories that it uses, directly or
    through others: by resolved directory, the texts by relative file name. A directory that does
    not exist, or is used and has no codecgen.yaml, has the value ``{}``; packages that are not
    installed are left out. Raise OSError if a file cannot be read.
    """
    found: dict[Path, Mapping[str, str]] = {}
    todo = [directory]
    while todo:
        here = todo.pop()
        there = here.resolve()
        if there not in found:
            is_used = len(found) > 0
            missing = is_used and not (here / loader.MANIFEST).is_file()
            found[there] = {} if missing else loader.read_files(here)
            wanted = _find_uses(found[there].get(loader.MANIFEST, ""))
            todo += [place for name in wanted if (place := _locate(name, here)) is not None]
    return found


def _find_uses(manifest: str) -> list[str]:
    """Return the paths and packages that the text of a manifest names under ``uses``, in order.
    Return ``[]`` if there are none or the text is not YAML; entries of another form are left out.
    """
    documents, _ = yaml_tree.load(loader.MANIFEST, manifest)
    uses = documents[0].get("uses") if documents else None
    entries = uses.entries if isinstance(uses, yaml_tree.Mapping) else ()
    return [node.text for _, node in entries if isinstance(node, yaml_tree.Scalar)]


def _locate(wanted: str, directory: Path) -> Path | None:
    """Return the schema directory that ``uses`` of ``directory`` names as ``wanted``: a relative
    path, which need not exist, or that of an installed package. Return None if no such package with
    schemas is installed. Raise OSError if the manifest of an installed package cannot be read.
    """
    return shipped(wanted) if NAME.match(wanted) else directory / wanted


def texts_of(model: Model) -> dict[str, str]:
    """Return the text of the files of a model and of the directories that it uses, by the names in places."""
    used = [file_texts(directory) for directory in model.uses.values()]
    return {file: text for files in (model.files, *used) for file, text in files.items()}


def shipped(package: str) -> Path | None:
    """Return the schema directory of an installed package: ``schemas`` inside it, or up to two
    directories above it (a source tree), if its manifest names the package. Return None if there is
    none, or if ``package`` is no snake_case name. The package is not imported. Raise OSError if a
    manifest cannot be read.
    """
    try:
        spec = find_spec(package) if NAME.match(package) else None
    except (ImportError, ValueError):
        return None
    for location in (spec.submodule_search_locations or ()) if spec is not None else ():
        inside = Path(location)
        for place in (inside, *inside.parents[:2]):
            manifest = place / SHIPPED / loader.MANIFEST
            if manifest.is_file() and _package_of(manifest) == package:
                return manifest.parent
    return None


def explain_missing(package: str) -> tuple[str, str]:
    """Return (message, help) for a name for which :func:`shipped` finds nothing: it is no name of
    a package, the package is not installed, or it has no schemas where it was found.
    """
    if not NAME.match(package):
        return f"{package} is not the name of a package", "name an installed package"
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        spec = None
    if spec is not None:
        location = next(iter(spec.submodule_search_locations or ()), spec.origin)
        message = f"the package {package} ({location}) has no codecgen schemas"
        return message, "name another package (PYTHONPATH may hide the installed one)"
    return f"the package {package} is not installed", "install it with pip"


def named(wanted: str) -> Path:
    """Return the schema directory that a user names: a path if that directory exists, else the
    schemas of an installed package, else the path, which is no directory. ``""`` stands for
    ./schemas, or else the schemas of the only installed package that registers some; for ./schemas,
    which is no directory, if none or several do. Raise OSError if the manifest of an installed
    package cannot be read.
    """
    if not wanted:
        return _default_directory()
    directory = Path(wanted)
    return directory if directory.is_dir() else shipped(wanted) or directory


def _default_directory() -> Path:
    """Return ./schemas if that directory exists, else the schemas of the only installed package
    that registers some, else (none or several) ./schemas although it is no directory. Raise OSError
    if the manifest of an installed package cannot be read.
    """
    here = Path(SHIPPED)
    if here.is_dir():
        return here
    names = {point.name for point in entry_points(group="codecgen.schemas")}
    brought = {name: found for name in sorted(names) if (found := shipped(name)) is not None}
    return next(iter(brought.values())) if len(brought) == 1 else here


def _package_of(manifest: Path) -> str | None:
    """Return the package that a manifest file names, or None if it is not YAML or names none. Raise
    OSError if it cannot be read.
    """
    with manifest.open("rb") as file:
        text = file.read(yaml_tree.MAX_BYTES + 1).decode("utf-8", "surrogateescape")
    documents, _ = yaml_tree.load(loader.MANIFEST, text)
    node = documents[0].get("package") if documents else None
    return node.text if isinstance(node, yaml_tree.Scalar) else None


class _Loader:
    """Loads directories, each one once."""

    def __init__(self) -> None:
        self.known: dict[Path, Loaded] = {}

    def load(
        self, directory: Path, above: tuple[Path, ...], new: Mapping[str, str] | None = None
    ) -> Loaded:
        """Return (model, diagnostics, files) of a directory, loaded and checked once; later calls
        return the same and ignore the other arguments. The model is None if it is unusable.
        ``above`` are the directories that are being loaded and use it; ``new`` are files by name
        that replace or extend those on disk. Raise OSError if a file cannot be read.
        """
        here = directory.resolve()
        if here not in self.known:
            files = loader.read_files(directory)
            if new:
                files = dict(sorted({**files, **new}.items()))
            model, diagnostics = loader.load(
                files, lambda wanted: self.find(wanted, directory, (*above, here))
            )
            if model is not None:
                diagnostics += run_checks(model)
            self.known[here] = model, diagnostics, files
        return self.known[here]

    def find(self, wanted: str, directory: Path, around: tuple[Path, ...]) -> UsedDirectory:
        """Load and return the directory that ``uses`` names as ``wanted``: a path relative to
        ``directory``, or an installed package. ``around`` are the directories being loaded, the
        current one last. Raise CannotUse if it is not installed, has no codecgen.yaml or has
        findings, if it is one of ``around`` or contains or lies in the last, or if ``around`` has
        16 or more. Raise OSError if a file cannot be read.
        """
        installed = NAME.match(wanted) is not None
        found = _locate(wanted, directory)
        if found is None:
            message, help = explain_missing(wanted)
            raise CannotUse(message, f"{help}, or write the path of a schema directory: ../schemas")
        if not (found / loader.MANIFEST).is_file():
            message = f"{wanted} is not a directory with a {loader.MANIFEST}"
            help = f"correct the path: it starts from the directory with this {loader.MANIFEST}"
            raise CannotUse(message, help)
        there, here = found.resolve(), around[-1]
        if there in around[:-1]:
            way = " uses ".join(p.name for p in (*around[around.index(there) :], there))
            raise CannotUse(f"directories use each other: {way}", "put what both need into a third")
        if there == here or there in here.parents or here in there.parents:
            raise CannotUse(
                f"{wanted} is this directory, contains it, or lies in it",
                "use a directory beside this one",
            )
        if len(around) >= DEEPEST:
            message = f"more than {DEEPEST} directories use each other in a row"
            raise CannotUse(message, "put the declarations that are used into fewer directories")
        model, findings, _ = self.load(found, around)
        shown = os.fspath(found) if installed else wanted
        if findings or model is None:
            first = min(findings, key=lambda d: (d.code != "C040", d.span.file, d.span.line))
            what = (
                "a finding of its own"
                if len(findings) == 1
                else f"{count_noun(len(findings), 'finding')} of its own, the first"
            )
            message = f"{wanted} has {what}: {first.message} ({first.span})"
            raise CannotUse(message, f"run `codecgen check {shown}`")
        place = f"{wanted}:" if installed else os.path.normpath(wanted).replace(os.sep, "/") + "/"
        return UsedDirectory(model, os.fspath(there), place)
