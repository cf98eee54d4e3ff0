"""Partitions written again into another directory: salvage, cut, convert and reindex."""
