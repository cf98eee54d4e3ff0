"""Records and batches of segments, as ``kafka-log dump`` prints them."""

WIDTH = 200
"""Default maximum of the characters shown of a key, value or header."""
