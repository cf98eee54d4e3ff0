"""One log from several damaged replicas of the same partition, as ``kafka-log merge`` writes it."""
