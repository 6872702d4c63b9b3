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
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext

from frazil.errors import EngineError

_SOURCES = Path(__file__).parent.parent / "java"
_NEEDS = "// Needs "
_lock = threading.Lock()
_defined: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


def define_classes(context: SparkContext) -> Any:
    """Give the JVM frazil's classes, where it does not have them; return the package that they are in."""
    jvm: Any = context._jvm
    with _lock:
        if context._gateway not in _defined:
            try:
                _define(jvm, _read_or_compile(context))
            except Exception as error:
                raise EngineError(
                    f"Cannot compile frazil's classes for Spark {pyspark.__version__}: {error}"
                ) from error
            _defined[context._gateway] = True
    return jvm.frazil


def java_sources(has_class: Callable[[str], bool]) -> dict[str, str]:
    """Return the sources by the path that their package gives them; in the topmost folder it is `frazil`.

    A source whose first line says that it needs a class is left out where Spark does not have that.
    """
    found = {}
    for one in sorted(_SOURCES.rglob("*.java")):
        path = one.relative_to(_SOURCES).as_posix()
        text = one.read_text("utf-8")
        needed = text.partition("\n")[0].partition(_NEEDS)[2]
        if not needed or has_class(needed):
            found[path if "/" in path else f"frazil/{path}"] = text
    return found


def _read_or_compile(context: SparkContext) -> dict[str, bytes]:
    sources = java_sources(partial(has_class, context._jvm))
    digest = hashlib.sha256(repr(sorted(sources.items())).encode()).hexdigest()[:16]
    kept = _SOURCES / "__pycache__" / f"spark-{pyspark.__version__}-{digest}.zip"
    with suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(kept) as archive:
        if archive.testzip() is None:
            return {name: archive.read(name) for name in archive.namelist()}
    compiled = _compile(context, sources)
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


def has_class(jvm: Any, name: str) -> bool:
    """Return whether a JVM has a class."""
    try:
        jvm.java.lang.Class.forName(name)
    except Py4JJavaError:
        return False
    return True


def _compile(context: SparkContext, sources: dict[str, str]) -> dict[str, bytes]:
    jvm: Any = context._jvm
    compiler = jvm.org.codehaus.janino.Compiler()
    compiler.setIClassLoader(jvm.org.codehaus.janino.ClassLoaderIClassLoader(_sparks_loader(jvm)))
    compiler.setSourceVersion(8)
    compiler.setTargetVersion(8)
    resources = jvm.org.codehaus.commons.compiler.util.resource
    made = jvm.java.util.HashMap()
    compiler.setClassFileCreator(resources.MapResourceCreator(made))
    given = context._gateway.new_array(resources.Resource, len(sources))  # type: ignore[union-attr]
    for at, (name, text) in enumerate(sources.items()):
        given[at] = resources.StringResource(name, text)
    compiler.compile(given)
    return {str(name): bytes(made.get(name)) for name in made.keySet()}


def _define(jvm: Any, classes: dict[str, bytes]) -> None:
    loader = _sparks_loader(jvm)
    methods = jvm.java.lang.Class.forName("java.lang.ClassLoader").getDeclaredMethods()
    (define,) = [one for one in methods if one.getName() == "defineClass" and one.getParameterCount() == 4
                 and one.getParameterTypes()[0].getSimpleName() == "String"]  # fmt: skip
    define.setAccessible(True)
    waiting = list(classes.items())
    while waiting:
        # A class comes after the one that it extends.
        left = [(name, code) for name, code in waiting if not _is_defined(jvm, define, loader, name, code)]
        if len(left) == len(waiting):
            raise EngineError(f"Cannot define {', '.join(name for name, _ in left)}")
        waiting = left


def _is_defined(jvm: Any, define: Any, loader: Any, name: str, code: bytes) -> bool:
    arguments = jvm.java.util.ArrayList()
    for one in (name.removesuffix(".class").replace("/", "."), bytearray(code), 0, len(code)):
        arguments.add(one)
    try:
        define.invoke(loader, arguments.toArray())
    except Py4JJavaError:
        return False
    return True


def _sparks_loader(jvm: Any) -> Any:
    return jvm.java.lang.Class.forName("org.apache.spark.sql.classic.Dataset").getClassLoader()
