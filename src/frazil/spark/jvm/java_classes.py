"""Java classes of frazil's own (`spark/java`), compiled by Spark's compiler and given to the JVM once.

They are defined by the loader that has Spark itself. So every session, of whatever client, finds them by name, and
there is no jar. A JVM has them once: Py4J keeps methods by the name of their class for as long as the JVM lives.

What was compiled is kept beside the sources, as Python keeps its own, for the Spark and the sources that it is of.
Where nothing can be written there, classes are compiled each time.
"""

from __future__ import annotations

import hashlib
import io
import os
import threading
import zipfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pyspark
from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext

from frazil.errors import EngineError

_SOURCES = Path(__file__).parent.parent / "java"
_NEEDS = "// Needs "
_SCAN = "org.apache.spark.sql.execution.FileSourceScanExec"
_BOXES = {"boolean": "Boolean", "int": "Integer", "long": "Long"}
_lock = threading.Lock()


class Known:
    """A package or a class of the JVM's: Py4J asks for each name on the way to a method, each time; this asks once."""

    def __init__(self, found: Any) -> None:
        self._found = found

    def __getattr__(self, name: str) -> Any:
        found: Any = getattr(self._found, name)
        known = Known(found) if isinstance(found, JavaClass) else found
        vars(self)[name] = known
        return known

    def __call__(self, *given: Any) -> Any:
        """Make an object of a class."""
        return self._found(*given)


_defined: WeakKeyDictionary[Any, Known] = WeakKeyDictionary()


def define_classes(context: SparkContext) -> Known:
    """Give the JVM frazil's classes, where it does not have them; return the package that they are in."""
    gateway: Any = context._gateway
    with _lock:
        if gateway not in _defined:
            try:
                define_in(gateway.jvm, _sparks_loader(gateway.jvm), _read_or_compile(gateway))
            except Exception as error:
                raise EngineError(
                    f"Cannot compile frazil's classes for Spark {pyspark.__version__}: {error}"
                ) from error
            _defined[gateway] = Known(gateway.jvm.frazil)
        return _defined[gateway]


def compile_meanwhile(gateway: Any) -> threading.Thread:
    """Compile the classes while a context starts, where they are not kept: `define_classes` finds them then.

    What fails here is said there.
    """

    def compile_and_keep() -> None:
        with _lock, suppress(Exception):
            _read_or_compile(gateway)

    thread = threading.Thread(target=compile_and_keep, name="frazil compiles", daemon=True)
    thread.start()
    return thread


def java_sources(has_class: Callable[[str], bool]) -> dict[str, str]:
    """Return the sources by the path that their package gives them; in the topmost folder it is `frazil`.

    A source whose first line says that it needs a class is left out where Spark does not have that.
    """
    found = {}
    for file in sorted(_SOURCES.rglob("*.java")):
        path = file.relative_to(_SOURCES).as_posix()
        text = file.read_text("utf-8")
        needed = text.partition("\n")[0].partition(_NEEDS)[2]
        if not needed or has_class(needed):
            found[path if "/" in path else f"frazil/{path}"] = text
    return found


def _read_or_compile(gateway: Any) -> dict[str, bytes]:
    sources = java_sources(partial(has_class, gateway.jvm))
    digest = hashlib.sha256(repr(sorted(sources.items())).encode()).hexdigest()[:16]
    kept = _SOURCES / "__pycache__" / f"spark-{pyspark.__version__}-{digest}.zip"
    with suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(kept) as archive:
        if archive.testzip() is None:
            return {name: archive.read(name) for name in archive.namelist()}
    compiled = compile_classes(gateway)
    with suppress(OSError):
        _keep(kept, compiled)
    return compiled


def _keep(path: Path, classes: dict[str, bytes]) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, code in classes.items():
            archive.writestr(name, code)
    path.parent.mkdir(exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(buffer.getvalue())
    unfinished.replace(path)
    for other in path.parent.glob(f"spark-{pyspark.__version__}-*.zip"):
        if other != path:
            # Of sources that are not there any more.
            other.unlink(missing_ok=True)


def has_class(jvm: Any, name: str) -> bool:
    """Return whether a JVM has a class."""
    try:
        jvm.java.lang.Class.forName(name)
    except Py4JJavaError:
        return False
    return True


def compile_classes(gateway: Any) -> dict[str, bytes]:
    """Return the compiled classes for the Spark of a JVM, by their paths."""
    jvm = gateway.jvm
    sources = {name: _for_this_spark(jvm, text) for name, text in java_sources(partial(has_class, jvm)).items()}
    return compile_sources(gateway, _sparks_loader(jvm), sources)


def compile_sources(gateway: Any, loader: Any, sources: dict[str, str]) -> dict[str, bytes]:
    """Return the compiled classes of sources, by their paths; a loader has what they use."""
    jvm = gateway.jvm
    compiler = jvm.org.codehaus.janino.Compiler()
    compiler.setIClassLoader(jvm.org.codehaus.janino.ClassLoaderIClassLoader(loader))
    compiler.setSourceVersion(8)
    compiler.setTargetVersion(8)
    resources = jvm.org.codehaus.commons.compiler.util.resource
    made = jvm.java.util.HashMap()
    compiler.setClassFileCreator(resources.MapResourceCreator(made))
    given = gateway.new_array(resources.Resource, len(sources))
    for index, (name, text) in enumerate(sources.items()):
        given[index] = resources.StringResource(name, text)
    compiler.compile(given)
    return {str(name): bytes(made.get(name)) for name in made.keySet()}


def _for_this_spark(jvm: Any, text: str) -> str:
    """Fill in the parts that a scan of files has in this Spark; every one adds some."""
    if "$PARTS" not in text:
        return text
    (made,) = jvm.java.lang.Class.forName(_SCAN).getConstructors()
    kinds = [str(getparametertype.getName()) for getparametertype in made.getParameterTypes()]
    names = [f"part{index}" for index in range(len(kinds))]
    # The first part is the relation.
    parts = [_part(index, type_name) for index, type_name in enumerate(kinds) if index]
    return (
        text.replace(
            "$PARAMETERS", ", ".join(f"{type_name} {name}" for type_name, name in zip(kinds, names, strict=True))
        )
        .replace("$NAMES", ", ".join(names))
        .replace("$PARTS", ", ".join(parts))
    )


def _part(index: int, type_name: str) -> str:
    box = _BOXES.get(type_name)
    value = f"(({box or type_name}) scan.productElement({index}))"
    return value if box is None else f"{value}.{type_name}Value()"


def define_in(jvm: Any, loader: Any, classes: dict[str, bytes]) -> None:
    """Give a loader classes, each after the one that it extends."""
    methods = jvm.java.lang.Class.forName("java.lang.ClassLoader").getDeclaredMethods()
    (define,) = [method for method in methods if method.getName() == "defineClass" and method.getParameterCount() == 4
                 and method.getParameterTypes()[0].getSimpleName() == "String"]  # fmt: skip
    define.setAccessible(True)
    waiting = list(classes.items())
    while waiting:
        left = [(name, code) for name, code in waiting if not _is_defined(jvm, define, loader, name, code)]
        if len(left) == len(waiting):
            raise EngineError(f"Cannot define {', '.join(name for name, _ in left)}")
        waiting = left


def _is_defined(jvm: Any, define: Any, loader: Any, name: str, code: bytes) -> bool:
    arguments = jvm.java.util.ArrayList()
    for argument in (name.removesuffix(".class").replace("/", "."), bytearray(code), 0, len(code)):
        arguments.add(argument)
    try:
        define.invoke(loader, arguments.toArray())
    except Py4JJavaError:
        return False
    return True


def _sparks_loader(jvm: Any) -> Any:
    return jvm.java.lang.Class.forName("org.apache.spark.sql.classic.Dataset").getClassLoader()
