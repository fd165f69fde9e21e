"""Where results live outside the log: PostgreSQL, Redis, the lake, files; one contract, one file a store."""
