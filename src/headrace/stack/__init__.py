"""The embedded parts: Java, jars, Kafka, PostgreSQL, Redis, Connect; start, stop, health, one file a part."""
