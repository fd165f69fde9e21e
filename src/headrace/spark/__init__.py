"""Plan to Spark: session, kernels, compiler, query life cycle, checkpoints, progress."""
