"""The log: topics, producers, consumers, groups, tables and dead letters on Kafka; the only room with its client."""
