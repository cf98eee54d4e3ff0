"""Generated Python without what is not used, and in lines that are not too long."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from codecgen.targets.pycode import WIDTH

_ASSIGNED = re.compile(r" +(\w+) = (?!.*\bput_)(?!.*\($).+\Z")
_CALL = re.compile(r"( *)((?:[\w, ]+ = )?[\w.]+)\((.*)\)\Z")
_VALUE = re.compile(r"( *)(\w+ [-+]?= )(.*)\Z")
_IF = re.compile(r"( *)(if|elif|while) (.*):\Z")


def tidy(lines: list[str]) -> list[str]:
    """Functions without assignments that they do not use, and no line longer than :data:`WIDTH` where that can be."""
    out: list[str] = []
    function: list[str] = []
    for line in [*lines, "@"]:
        if line.startswith("@"):
            out += _used(function)
            function = []
        function.append(line)
    return [short for line in out for short in _fitted(line)]


def _used(lines: list[str]) -> list[str]:
    """A function without assignments to variables that it never reads, nor blocks that are empty then."""
    while True:
        code = re.sub(r'""".*?"""|  # .*?$', "", "\n".join(lines), flags=re.DOTALL | re.MULTILINE)
        words = Counter(re.findall(r"\w+", code))
        stores = Counter(found[1] for text in lines if (found := _ASSIGNED.match(text)))
        kept = [
            text
            for text in lines
            if not ((found := _ASSIGNED.match(text)) and words[found[1]] == stores[found[1]])
        ]
        kept = list(_without_empty_blocks(kept))
        if kept == lines:
            return lines
        lines = kept


def _without_empty_blocks(lines: list[str]) -> Iterator[str]:
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        empty = _depth(following) <= _depth(line) and line.lstrip().startswith("if ")
        if not (empty and line.endswith(":")):
            yield line


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _fitted(line: str) -> list[str]:
    """The line, broken as a formatter would if it is too long."""
    if len(line) <= WIDTH or line.lstrip().startswith("#"):
        return [line]
    found = _CALL.match(line)
    if found is not None and _balanced(found[3]):
        return _broken(found[1], f"{found[2]}(", found[3], ")")
    found = _IF.match(line)
    if found is not None:
        parts = _split(found[3])
        if len(parts) > 1:
            inner = [f"{found[1]}    {part}" for part in parts]
            return [f"{found[1]}{found[2]} (", *inner, f"{found[1]}):"]
        head, bracket, rest = found[3].partition("(")
        if bracket and rest.endswith(")") and _balanced(rest[:-1]):
            return _broken(found[1], f"{found[2]} {head}(", rest[:-1], "):")
    found = _VALUE.match(line)
    if found is not None:
        inner = [f"{found[1]}    {found[3]}"]
        if len(inner[0]) > WIDTH:
            inner = [f"{found[1]}    {part}" for part in _split(found[3], (" | ",))]
        return [f"{found[1]}{found[2]}(", *inner, f"{found[1]})"]
    return [line]


def _broken(indent: str, head: str, arguments: str, tail: str) -> list[str]:
    one = f"{indent}    {arguments}"
    if len(one) <= WIDTH:
        return [f"{indent}{head}", one, f"{indent}{tail}"]
    parts = [f"{indent}    {part}," for part in _arguments(arguments)]
    return [f"{indent}{head}", *parts, f"{indent}{tail}"]


def _balanced(text: str) -> bool:
    """Whether no parenthesis closes that was not opened in the text."""
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return depth == 0


def _arguments(text: str) -> list[str]:
    """The arguments of a call."""
    out = [""]
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            out.append("")
        else:
            out[-1] += character
    return [part.strip() for part in out]


def _split(text: str, words: tuple[str, ...] = (" or ", " and ")) -> list[str]:
    """The text before each ``or``, or without one before each ``and``, that is in no parentheses."""
    for word in words:
        out = [""]
        depth = 0
        at = 0
        while at < len(text):
            if depth == 0 and text.startswith(word, at):
                out.append(word.lstrip())
                at += len(word)
                continue
            depth += (text[at] == "(") - (text[at] == ")")
            out[-1] += text[at]
            at += 1
        if len(out) > 1:
            return out
    return [text]
