"""Transactions of partitions: open, committed, aborted and hanging ones, as ``kafka-log txn`` prints them."""
