"""One page about logs, to attach to an incident: findings, damage, transactions, groups, traffic, settings."""
