"""Commands that write partitions again into another directory: salvage, cut, convert and reindex."""
