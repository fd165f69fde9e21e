"""The logical plan: what was declared, ordered, named and checked; the same for every engine."""
