"""Keys, tombstones and obsolete records, as ``kafka-log keys`` prints them."""
