"""How a part that runs on Java is started: small heap, quick start, one log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from headrace.stack.java import find_java

Fetch = Callable[[str], Sequence[Path]]  # the jars of a group, in place and verified

# The serial collector is the quickest to start. C1 only would be quicker still, by 0.8 s, but for 200 payments a second
# and their decisions the broker would need 40 % of a core instead of 25 %.
# A class data archive would save another 0.5 s, for 50 MB of disk per Java and 2 s at the first stop: not worth it.
_FLAGS = (
    "-XX:+UseSerialGC",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-UsePerfData",  # no files in /tmp
    "-Xms64m",
)
_LOGGING = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %-5p %c{1}: %m%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
# Hundreds of lines with every setting, at every start and of every client inside:
logger.config.name = org.apache.kafka.common.config
logger.config.level = warn
"""


def command(home: Path, jars: Sequence[Path], heap: str, main: str, *args: str) -> list[str]:
    """The command line of a JVM whose log goes to stdout; its logging is configured in `home`."""
    logging = home / "log4j2.properties"
    logging.write_text(_LOGGING)
    path = ":".join(str(jar) for jar in jars)
    return [
        str(find_java()),
        *_FLAGS,
        f"-Xmx{heap}",
        f"-Dlog4j2.configurationFile={logging}",
        *("-cp", path, main, *args),
    ]
