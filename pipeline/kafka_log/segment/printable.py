"""Escapes for texts that are printed: names, paths and messages come from files, which may be hostile."""


def escape_unprintable(text: str) -> str:
    """Return `text` with each character escaped, as in Python, that a terminal does not print: control characters and those that change the
    direction of text.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
