"""Names of layouts of generated packages, as options and arguments take them."""


def is_layout_name(text: str) -> bool:
    """Return whether a text has the form of a layout's name, ``PACKAGE:LAYOUT``."""
    return ":" in text
