"""Bytes of files with the field of each, as ``kafka-log hexdump`` prints them."""
