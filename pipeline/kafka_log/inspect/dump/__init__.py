"""Records and batches of segments, as ``kafka-log dump`` prints them."""
