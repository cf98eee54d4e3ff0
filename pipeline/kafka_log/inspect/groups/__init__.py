"""Consumer groups and the partitions that coordinate them, as ``kafka-log groups`` and ``kafka-log coordinator`` print them."""
