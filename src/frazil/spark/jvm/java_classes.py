"""frazil's Java classes (`spark/java`), compiled by Spark's own compiler and defined in the JVM without a jar.

They are defined in Spark's class loader, so that every session of every client finds them by name. That happens once
per JVM, since Py4J caches methods by class name for the life of the JVM.

Compiled classes are cached beside the sources, like Python's bytecode, per version of Spark and of the sources. If that
folder is not writable, classes are compiled each time.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
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
_PACKAGE = re.compile(r"^package ([\w.]+);", re.MULTILINE)
_SCAN = "org.apache.spark.sql.execution.FileSourceScanExec"
_BOXES = {"boolean": "Boolean", "int": "Integer", "long": "Long"}
_lock = threading.Lock()


class CachedNames:
    """A Java class that caches its members; Py4J itself looks up every name on each call."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Any:
        member: Any = getattr(self._target, name)
        vars(self)[name] = member
        return member

    def __call__(self, *args: Any) -> Any:
        """Create an instance of the class."""
        return self._target(*args)


class JavaClasses:
    """frazil's Java classes by their names, whichever package they are in."""

    def __init__(self, jvm: Any) -> None:
        self._jvm = jvm

    def __getattr__(self, name: str) -> CachedNames:
        member: Any = self._jvm
        for step in full_name(name).split("."):
            member = getattr(member, step)
        vars(self)[name] = cached = CachedNames(member)
        return cached


def full_name(name: str) -> str:
    """Return the name of a class with its package, which is its folder."""
    for file in _SOURCES.rglob(f"{name}.java"):
        return ".".join(("frazil", *file.relative_to(_SOURCES).with_suffix("").parts))
    raise AttributeError(name)


_defined: WeakKeyDictionary[Any, JavaClasses] = WeakKeyDictionary()


def define_classes(context: SparkContext) -> JavaClasses:
    """Define frazil's classes in the JVM, unless they are defined already; return them."""
    gateway: Any = context._gateway
    with _lock:
        if gateway not in _defined:
            try:
                define_in(gateway.jvm, _spark_loader(gateway.jvm), _read_or_compile(gateway))
            except Exception as error:
                raise EngineError(
                    f"Cannot compile frazil's classes for Spark {pyspark.__version__}: {error}"
                ) from error
            _defined[gateway] = JavaClasses(gateway.jvm)
        return _defined[gateway]


def compile_meanwhile(gateway: Any) -> threading.Thread:
    """Compile the classes in a thread while a context starts, unless they are cached.

    `define_classes` reports any failure.
    """

    def compile_and_keep() -> None:
        with _lock, suppress(Exception):
            _read_or_compile(gateway)

    thread = threading.Thread(target=compile_and_keep, name="frazil compiles", daemon=True)
    thread.start()
    return thread


def java_sources(has_class: Callable[[str], bool]) -> dict[str, str]:
    """Return the sources by the path of their class.

    A source whose first line is `// Needs <class>` is left out if Spark lacks that class.
    """
    sources = {}
    for file in sorted(_SOURCES.rglob("*.java")):
        text = file.read_text("utf-8")
        needed = text.partition("\n")[0].partition(_NEEDS)[2]
        package = _PACKAGE.search(text)
        if package is not None and (not needed or has_class(needed)):
            sources[f"{package[1].replace('.', '/')}/{file.name}"] = text
    return sources


def _read_or_compile(gateway: Any) -> dict[str, bytes]:
    sources = java_sources(partial(has_class, gateway.jvm))
    digest = hashlib.sha256(repr(sorted(sources.items())).encode()).hexdigest()[:16]
    cached = _SOURCES / "__pycache__" / f"spark-{pyspark.__version__}-{digest}.zip"
    with suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(cached) as archive:
        if archive.testzip() is None:
            return {name: archive.read(name) for name in archive.namelist()}
    compiled = compile_classes(gateway)
    with suppress(OSError):
        _write_cache(cached, compiled)
    return compiled


def _write_cache(path: Path, classes: dict[str, bytes]) -> None:
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
            # An outdated version of the sources.
            other.unlink(missing_ok=True)


def has_class(jvm: Any, name: str) -> bool:
    """Return whether the JVM can load a class."""
    try:
        jvm.java.lang.Class.forName(name)
    except Py4JJavaError:
        return False
    return True


def compile_classes(gateway: Any) -> dict[str, bytes]:
    """Compile frazil's classes for the version of Spark in a JVM; return their bytecode by path."""
    jvm = gateway.jvm
    sources = {name: _for_this_spark(jvm, text) for name, text in java_sources(partial(has_class, jvm)).items()}
    return compile_sources(gateway, _spark_loader(jvm), sources)


def compile_sources(gateway: Any, loader: Any, sources: dict[str, str]) -> dict[str, bytes]:
    """Compile sources against the classes of a loader; return the bytecode by path."""
    jvm = gateway.jvm
    compiler = jvm.org.codehaus.janino.Compiler()
    compiler.setIClassLoader(jvm.org.codehaus.janino.ClassLoaderIClassLoader(loader))
    compiler.setSourceVersion(8)
    compiler.setTargetVersion(8)
    resources = jvm.org.codehaus.commons.compiler.util.resource
    compiled = jvm.java.util.HashMap()
    compiler.setClassFileCreator(resources.MapResourceCreator(compiled))
    resource_array = gateway.new_array(resources.Resource, len(sources))
    for index, (name, text) in enumerate(sources.items()):
        resource_array[index] = resources.StringResource(name, text)
    compiler.compile(resource_array)
    return {str(name): bytes(compiled.get(name)) for name in compiled.keySet()}


def _for_this_spark(jvm: Any, text: str) -> str:
    """Fill in the constructor parameters of a file scan in this version of Spark."""
    if "$PARTS" not in text:
        return text
    (constructor,) = jvm.java.lang.Class.forName(_SCAN).getConstructors()
    kinds = [str(parameter_type.getName()) for parameter_type in constructor.getParameterTypes()]
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
    """Define classes in a loader, each after its superclass."""
    methods = jvm.java.lang.Class.forName("java.lang.ClassLoader").getDeclaredMethods()
    (define,) = [method for method in methods if method.getName() == "defineClass" and method.getParameterCount() == 4
                 and method.getParameterTypes()[0].getSimpleName() == "String"]  # fmt: skip
    define.setAccessible(True)
    waiting = list(classes.items())
    while waiting:
        remaining = [(name, code) for name, code in waiting if not _is_defined(jvm, define, loader, name, code)]
        if len(remaining) == len(waiting):
            raise EngineError(f"Cannot define {', '.join(name for name, _ in remaining)}")
        waiting = remaining


def _is_defined(jvm: Any, define: Any, loader: Any, name: str, code: bytes) -> bool:
    arguments = jvm.java.util.ArrayList()
    for argument in (name.removesuffix(".class").replace("/", "."), bytearray(code), 0, len(code)):
        arguments.add(argument)
    try:
        define.invoke(loader, arguments.toArray())
    except Py4JJavaError:
        return False
    return True


def _spark_loader(jvm: Any) -> Any:
    return jvm.java.lang.Class.forName("org.apache.spark.sql.classic.Dataset").getClassLoader()
