"""What is happening, as values: one snapshot type per thing shown. Receives, never calls."""
