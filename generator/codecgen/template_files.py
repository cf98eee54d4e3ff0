"""Read a directory of user templates."""

from __future__ import annotations

from pathlib import Path

from codecgen.listed_files import list_files

SUFFIX = ".j2"
MAX_BYTES = 1 << 20
MAX_FILES = 500


class TemplateFilesError(Exception):
    """A directory of templates cannot be used. The text is one line that says what to do."""


def read_templates(directory: Path) -> dict[str, str]:
    """Return the text of all ``.j2`` files below a directory, by relative path (with ``/``),
    sorted. Hidden files and directories are skipped. Raise TemplateFilesError if it is no directory,
    has no templates or more than ``MAX_FILES`` (500), or one is larger than 1 MiB or not UTF-8;
    OSError if a file or directory cannot be read.
    """
    if not directory.is_dir():
        raise TemplateFilesError(f"{directory} is not a directory; name one with files *{SUFFIX}")
    found: dict[str, str] = {}
    for path in list_files(directory):
        if not path.name.endswith(SUFFIX):
            continue
        if len(found) == MAX_FILES:
            raise TemplateFilesError(f"{directory} has more than {MAX_FILES} templates, the limit")
        found[path.relative_to(directory).as_posix()] = _read_text(path)
    if not found:
        raise TemplateFilesError(f"{directory} has no templates: files that end in {SUFFIX}")
    return found


def _read_text(path: Path) -> str:
    """Return the text of a template. Raise TemplateFilesError if it is larger than ``MAX_BYTES`` or
    not UTF-8; OSError if it cannot be read.
    """
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise TemplateFilesError(
            f"{path} is larger than {MAX_BYTES} bytes, the limit of a template"
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise TemplateFilesError(f"{path} is not UTF-8 text: save it as UTF-8") from None
