"""The reference engine: runs a plan in plain Python over `steps/`; the semantics that kernels are checked against."""
