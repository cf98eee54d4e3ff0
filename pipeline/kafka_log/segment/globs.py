"""Patterns of names and paths with the syntax of Hadoop's file systems and Spark's file sources.

``*`` matches any characters, ``?`` one character, ``[abc]`` and ``[a-c]`` one of a class, ``[^a]`` and ``[!a]`` one outside of a
class, ``{a,b}`` either alternative. A backslash escapes the next character. A pattern matches the whole name.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

_SPECIAL = "*?[{" if os.name == "nt" else "*?[{\\"
"""With one of these a path is a pattern. On Windows ``\\`` stands between the parts of a path."""

P = TypeVar("P", bound=Path)


class PatternError(ValueError):
    """A pattern that ends too early, or has a range that is none."""


def is_pattern(path: str) -> bool:
    """Return whether a path has a character of patterns: ``*``, ``?``, ``[``, ``{`` or (not on
    Windows) a backslash.
    """
    return any(character in path for character in _SPECIAL)


def matches(name: str, pattern: str) -> bool:
    """Return whether a whole name matches a pattern. Raise PatternError if a bracket, brace or
    escape is incomplete, or a range is in the wrong order.
    """
    return compile_pattern(pattern).fullmatch(name) is not None


@lru_cache(maxsize=64)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return a regular expression for a pattern of names with ``*``, ``?``, ``[a-c]``, ``[^a]``,
    ``{a,b}`` and backslash escapes; use it with ``fullmatch``. Raise PatternError if a bracket,
    brace or escape is incomplete, or the ends of a range are in the wrong order.
    """
    out: list[str] = []
    depth = at = 0
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character == "\\":
            out.append(re.escape(_read_escaped(pattern, at)))
            at += 1
        elif character == "*":
            out.append(".*")
        elif character == "?":
            out.append(".")
        elif character == "[":
            text, at = _bracket_expression(pattern, at)
            out.append(text)
        elif character == "{":
            depth += 1
            out.append("(?:")
        elif character == "," and depth:
            out.append("|")
        elif character == "}" and depth:
            depth -= 1
            out.append(")")
        else:
            out.append(re.escape(character))
    if depth:
        raise PatternError(f"{pattern}: a {{ without its }}; write \\{{ for the character {{")
    return re.compile("".join(out), re.DOTALL)


def _read_escaped(pattern: str, at: int) -> str:
    """Return the character at index ``at``, which follows a backslash. Raise PatternError at the
    end of the pattern.
    """
    if at == len(pattern):
        raise PatternError(f"{pattern}: nothing follows the last \\: write \\\\ for a backslash")
    return pattern[at]


def _bracket_expression(pattern: str, start: int) -> tuple[str, int]:
    """Return the regular expression of the bracket expression whose content begins at index
    ``start``, and the index after its ``]``. ``^`` or ``!`` at the start negates it; a ``]`` there
    is a member. Raise PatternError without a closing ``]``, or for a range in the wrong order.
    """
    at = start
    negated = pattern[at : at + 1] in ("^", "!")
    at += negated
    first, parts = at, []
    while pattern[at : at + 1] != "]" or at == first:
        low, at = _bracket_character(pattern, at)
        high = low
        if pattern[at : at + 1] == "-" and pattern[at + 1 : at + 2] not in ("]", ""):
            high, at = _bracket_character(pattern, at + 1)
        if high < low:
            raise PatternError(
                f"{pattern}: {low}-{high} is not a range: write the lower character first"
            )
        parts.append(f"{re.escape(low)}-{re.escape(high)}")
    return f"[{'^' if negated else ''}{''.join(parts)}]", at + 1


def _bracket_character(pattern: str, at: int) -> tuple[str, int]:
    """Return the character at index ``at`` of a bracket expression, without its backslash, and the
    index after it. Raise PatternError if the pattern ends there, or after the backslash.
    """
    if at >= len(pattern):
        raise PatternError(f"{pattern}: a [ without its ]; write \\[ for the character [")
    if pattern[at] == "\\":
        return _read_escaped(pattern, at + 1), at + 2
    return pattern[at], at + 1


def find_matching_paths(top: P, pattern: str) -> list[P]:
    """Return the existing paths below ``top`` that match a pattern with ``/`` between its parts,
    sorted and without duplicates; ``[]`` if none does, ``top`` itself for an empty pattern. Names
    with a leading dot match only parts with one. Local directories that this user may not list or
    search are skipped with a warning. Raise PatternError for an invalid part of the pattern, unless
    no path matches the parts before it; OSError if a store refuses, or a path cannot be examined.
    """
    found: dict[P, None] = {}
    for one in _without_slashes_in_braces(pattern):
        here = [top]
        for part in filter(None, one.split("/")):
            if is_pattern(part):
                here = [child for path in here for child in _children(path, part)]
            else:
                here = [path / part for path in here]
        found.update(dict.fromkeys(path for path in here if _exists(path)))
    return sorted(found)


def _exists(path: P) -> bool:
    """Return whether a path exists. If this user may not search its directory, warn and return
    False for a local path; raise PermissionError for one in a store. Other errors of the system are
    raised.
    """
    try:
        return path.exists()
    except PermissionError as error:
        _warn_of_skipped(path.parent, error)
        return False


def _warn_of_skipped(directory: P, error: PermissionError) -> None:
    """Warn that a local directory is skipped. Raise ``error`` for a directory of a store."""
    if getattr(directory, "is_remote", False):
        raise error
    warnings.warn(
        f"{directory} is skipped, and files in it that match the pattern are not read: {error.strerror}",
        stacklevel=2,
    )


def _children(path: P, pattern: str) -> Iterator[P]:
    """Yield the children of a directory whose names match a pattern; hidden ones only if it begins
    with a dot. Yield nothing for a path that is no directory, and, with a warning, for one that
    this user may not list (PermissionError in a store). Iterating raises PatternError if the
    pattern is invalid.
    """
    wanted = compile_pattern(pattern)
    shows_hidden = pattern.startswith((".", "\\."))
    try:
        children = list(path.iterdir()) if path.is_dir() else []
    except FileNotFoundError:
        return  # it was there when the directory above it was listed
    except PermissionError as error:
        _warn_of_skipped(path, error)
        return
    for child in children:
        if wanted.fullmatch(child.name) and (shows_hidden or not child.name.startswith(".")):
            yield child


def _without_slashes_in_braces(pattern: str) -> list[str]:
    """Return the patterns without ``/`` in braces that together match what ``pattern`` matches:
    ``{a/b,c}/d`` gives ``a/b/d`` and ``c/d``. Return ``[pattern]`` if no closed braces contain
    ``/``. It never raises.
    """
    opened: list[int] = []
    commas: dict[int, list[int]] = {}
    slashes: set[int] = set()
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == "\\" and os.name != "nt":
            at += 1
        elif character == "{":
            opened.append(at)
            commas[at] = []
        elif character == "," and opened:
            commas[opened[-1]].append(at)
        elif character == "/":
            slashes.update(opened)
        elif character == "}" and opened:
            start = opened.pop()
            if start in slashes and not opened:
                edges = [start, *commas[start], at]
                return [
                    whole
                    for low, high in pairwise(edges)
                    for whole in _without_slashes_in_braces(
                        pattern[:start] + pattern[low + 1 : high] + pattern[at + 1 :]
                    )
                ]
        at += 1
    return [pattern]
