"""Records and batches of segments, as ``kafka-log dump`` prints them."""

WIDTH = 200
"""Default maximum of the characters shown of a key, value or header."""

INTERNAL, AUTO, NONE = "internal", "auto", "none"
"""Values of ``--decode``: decode records of internal topics; these and values of a schema registry; neither."""
