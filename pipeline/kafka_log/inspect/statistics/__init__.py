"""Sums over batches and the largest batches and records, as ``kafka-log stat`` prints them."""
