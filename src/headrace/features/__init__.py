"""Features when they are asked for: online from Redis, as of any time from the lake, and whether the two agree."""
