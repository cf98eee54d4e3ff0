"""Python source as a tree, printed as a formatter would leave it."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from codecgen.runtime.sensitive import Sensitive

WIDTH = 100


@dataclass(frozen=True, slots=True)
class Call:
    """``head(item, name=item)``; also ``{..}``, ``[..]`` and ``(..)`` with an empty head and other brackets."""

    head: str
    items: tuple[tuple[str, Code], ...]
    brackets: str = "()"


@dataclass(frozen=True, slots=True)
class Condition:
    """A lambda whose condition joins ``terms`` by ``operator`` (``and`` or ``or``), one a line if they do not fit in
    one.
    """

    parameters: str
    terms: tuple[str, ...]
    operator: str = "and"


Code = str | Call | Condition


def call(head: str, *args: Code, **named: Code | None) -> Call:
    """Return a call; named arguments that are None are left out."""
    items = [("", arg) for arg in args]
    items += [(f"{name}=", value) for name, value in named.items() if value is not None]
    return Call(head, tuple(items))


def tuple_of(items: list[Code]) -> Call:
    """Return a tuple display."""
    return Call("", tuple(("", item) for item in items), "()")


def mapping(items: list[tuple[str, Code]]) -> Call:
    """Return a dict display."""
    return Call("", tuple((f"{key}: ", value) for key, value in items), "{}")


def listing(items: list[Code]) -> Call:
    """Return a list display."""
    return Call("", tuple(("", item) for item in items), "[]")


def string(text: str) -> str:
    """Return a Python literal for any text: in double quotes if the text has none, otherwise as
    ``repr`` quotes it. No character of the text can end the literal.
    """
    body = repr(text)
    if body.startswith("'") and '"' not in text:
        inner = body[1:-1].replace("\\'", "'")
        return f'"{inner}"'
    return body


def literal(value: int | str | bytes) -> str:
    """Return a Python literal for a number, a bool, text or bytes. In bytes, quotes, backslashes
    and all that is not printable ASCII become hexadecimal escapes.
    """
    if isinstance(value, str):
        return string(value)
    if isinstance(value, int):
        return str(value)
    plain = (chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\x{b:02x}" for b in value)
    return f'b"{"".join(plain)}"'


def sensitive_code(head: str, found: Sensitive) -> Call:
    """Return the call that creates a ``Sensitive``; ``head`` is the name of its class. It has no
    arguments for a value that is always secret, otherwise the field that decides and the endings of
    its value.
    """
    if found.named_by is None:
        return call(head)
    endings = tuple(("", string(ending)) for ending in found.endings)
    return call(head, string(found.named_by), Call("", endings))


def flat(code: Code) -> str:
    """Return the code on one line, whatever its length. A tuple display of one item gets its comma."""
    if isinstance(code, str):
        return code
    if isinstance(code, Condition):
        return f"lambda {code.parameters}: {f' {code.operator} '.join(code.terms)}"
    opening, closing = tuple(code.brackets)
    items = ", ".join(name + flat(item) for name, item in code.items)
    if code.brackets == "()" and not code.head and len(code.items) == 1:
        items += ","
    return f"{code.head}{opening}{items}{closing}"


def render(code: Code, indent: int = 0, before: int = 0, after: int = 0) -> str:
    """Return the code on one line if it fits in 100 characters with the ``before`` and ``after``
    characters on its line. Otherwise break a call into one argument per line, recursively, and a
    condition at its operators; the following lines are indented from ``indent`` spaces. Text, empty
    calls and conditions of one operand are never broken.
    """
    line = flat(code)
    if isinstance(code, str) or before + len(line) + after <= WIDTH:
        return line
    if isinstance(code, Condition):
        if len(code.terms) == 1:
            return line
        pad = " " * (indent + 4)
        terms = f"\n{pad}{code.operator} ".join(code.terms)
        return f"lambda {code.parameters}: (\n{pad}{terms}\n{' ' * indent})"
    if not code.items:
        return line
    opening, closing = tuple(code.brackets)
    pad = " " * (indent + 4)
    lines = [code.head + opening]
    for name, item in code.items:
        body = render(item, indent + 4, len(pad) + len(name), 1)
        lines.append(f"{pad}{name}{body},")
    lines.append(" " * indent + closing)
    return "\n".join(lines)


def return_statement(code: Code, indent: int) -> list[str]:
    """Return the lines of ``return code``, indented by ``indent`` spaces. If one line exceeds 100
    characters, the arguments of a call go on one line of their own, or on one line each; other code
    stays on one line, with ``# fmt: skip``.
    """
    pad = " " * indent
    one = f"{pad}return {flat(code)}"
    if len(one) <= WIDTH:
        return [one]
    if not isinstance(code, Call):
        return [f"{one}  # fmt: skip"]
    opening, closing = tuple(code.brackets)
    items = [name + flat(item) for name, item in code.items]
    is_tuple = code.brackets == "()" and not code.head
    lines = [f"{pad}    {', '.join(items)}"]
    if len(lines[0]) > WIDTH or (is_tuple and len(items) == 1):  # which its comma makes a tuple
        lines = [f"{pad}    {item}," for item in items]
    return [f"{pad}return {code.head}{opening}", *lines, f"{pad}{closing}"]


def assign(target: str, code: Code) -> str:
    """Return the assignment of code to ``target``."""
    return f"{target} = {render(code, 0, len(target) + 3)}"


def docstring(*paragraphs: str, indent: int = 0) -> str:
    """Return a docstring of the paragraphs that are not blank, indented and wrapped so that lines
    have at most 96 characters without the quotes; longer words are not broken. Backslashes are
    escaped, triple double quotes become ``'''``. A docstring of one line has its closing quotes on
    that line; without paragraphs it is empty.
    """
    pad = " " * indent
    safe = [p.replace("\\", "\\\\").replace('"""', "'''").strip() for p in paragraphs if p.strip()]
    wrapped = [
        "\n".join(
            textwrap.wrap(p, WIDTH - indent - 4, break_long_words=False, break_on_hyphens=False)
        )
        for p in safe
    ]
    text = "\n\n".join(wrapped)
    if text.endswith('"'):
        text += " "
    if "\n" not in text:
        return f'{pad}"""{text}"""'
    lines = [pad + line if line else "" for line in text.split("\n")]
    return f'{pad}"""{lines[0].lstrip()}\n' + "\n".join(lines[1:]) + f'\n{pad}"""'


def comment(text: str, indent: int = 0) -> str:
    """Return text as wrapped comment lines."""
    pad = " " * indent
    return "\n".join(f"{pad}# {line}" for line in textwrap.wrap(text, WIDTH - indent - 2))
