"""How the JVMs of tests are started: half the CPU at start, and room for all that a session of many tests compiles."""

from __future__ import annotations

# The first compiler alone gets 48 MB for its code, which a few files fill: then it throws methods away, and compiles
# them again, over and over.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
