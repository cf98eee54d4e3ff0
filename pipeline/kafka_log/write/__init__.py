"""Writing of logs: encoded segments and their indexes, rewritten partitions, and rows appended to log directories."""
