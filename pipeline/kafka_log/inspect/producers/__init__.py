"""Idempotent and transactional producers, as ``kafka-log producers`` prints them."""
