"""What the benchmarks share: a broker with payments on it, Spark in processes of its own, one form of table."""
