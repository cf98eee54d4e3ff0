"""Real Apache Kafka brokers on loopback, what they write, and what Kafka's own reader makes of a file."""
