"""The fault harness: a small bank under seeded faults, and the proof that nothing was lost or doubled."""
