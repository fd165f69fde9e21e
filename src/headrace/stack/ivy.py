"""Running the Ivy that ships inside PySpark: the one way by which jars reach this machine."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import quoteattr

from headrace.base.errors import EnvironmentFault
from headrace.stack.java import find_java

# No address stands here: `ibiblio` knows its own default. Who has a mirror names the root of it.
MIRROR = "HEADRACE_MAVEN"
# One flat directory, so that what Ivy has finished is where we look for it (Ivy writes to *.part and renames).
# No descriptors and no checksum files are asked for: the lock is exact, and holds stronger sums.
_SETTINGS = """<ivysettings>
  <property name="ivy.checksums" value=""/>
  <settings defaultResolver="public"/>
  <caches defaultCacheDir={cache} artifactPattern="jars/[artifact]-[revision].[ext]"/>
  <resolvers><ibiblio name="public" m2compatible="true" usepoms="false"{root}/></resolvers>
</ivysettings>
"""
_MODULE = """<ivy-module version="2.0">
  <info organisation="headrace" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>{dependencies}</dependencies>
</ivy-module>
"""
_SYSTEM_TRUST = (Path("/etc/ssl/certs/java/cacerts"), Path("/etc/pki/java/cacerts"))  # Debian's, Red Hat's
_DEPENDENCY = "<dependency org={org} name={name} rev={rev} conf={conf} transitive={transitive}/>"


def pyspark_jars() -> Path:
    """The directory of Spark's own jars, found without importing PySpark."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise EnvironmentFault(
            "PySpark is not installed", why="its jars hold Ivy, Scala and Spark", fix="pip install headrace"
        )
    return Path(spec.origin).parent / "jars"


@contextmanager
def downloading(coordinates: Iterable[str], cache: Path, *, hold: int) -> Iterator[subprocess.Popen[str]]:
    """Exactly these jars into `cache`. The child inherits the lock `hold`, so that it outlives us guarded."""
    with tempfile.TemporaryDirectory(prefix="headrace-ivy-") as work:
        mirror = os.environ.get(MIRROR)
        root = f" root={quoteattr(mirror)}" if mirror else ""
        settings = Path(work) / "settings.xml"
        settings.write_text(_SETTINGS.format(cache=quoteattr(str(cache)), root=root))
        module = _module(Path(work), coordinates, conf="default->default", transitive=False)
        command = [*_ivy(), "-verbose", "-settings", str(settings), "-ivy", str(module)]
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            pass_fds=(hold,),
        ) as child:
            try:
                yield child
            finally:
                child.kill()


def resolve(roots: Iterable[str], into: Path) -> dict[str, Path]:
    """The roots and all they need at run time, as coordinate -> file; used to write the lock."""
    with tempfile.TemporaryDirectory(prefix="headrace-ivy-") as work:
        module = _module(Path(work), roots, conf="default->runtime,master", transitive=True)
        pattern = f"{work}/out/[organisation]/[module]/[revision]/[artifact]-[revision].[ext]"
        command = [
            *_ivy(),
            "-cache",
            str(into),
            "-ivy",
            str(module),
            "-types",
            "jar",
            "bundle",
            "-retrieve",
            pattern,
            "-symlink",
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        found = (Path(work) / "out").glob("*/*/*/*.jar")
        return {":".join(jar.parts[-4:-1]): jar.resolve() for jar in found}


def _ivy() -> list[str]:
    jar = next(pyspark_jars().glob("ivy-*.jar"))
    # The wheel's Java knows only public authorities; a company's own one stands in the system's store for Java.
    trust = [f"-Djavax.net.ssl.trustStore={store}" for store in _SYSTEM_TRUST if store.exists()]
    return [str(find_java()), *trust[:1], "-jar", str(jar)]


def _module(work: Path, coordinates: Iterable[str], *, conf: str, transitive: bool) -> Path:
    def line(coordinate: str) -> str:
        org, name, rev = map(quoteattr, coordinate.split(":"))
        flag = quoteattr(str(transitive).lower())
        return _DEPENDENCY.format(org=org, name=name, rev=rev, conf=quoteattr(conf), transitive=flag)

    file = work / "ivy.xml"
    file.write_text(_MODULE.format(dependencies="".join(map(line, coordinates))))
    return file
