"""Differences between two replicas of partitions, as ``kafka-log diff`` prints them."""
