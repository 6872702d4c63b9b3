"""Java classes of frazil's own (`spark/java`), compiled by Spark's compiler and given to the JVM once.

They are defined by the loader that has Spark itself. So every session, of whatever client, finds them by name, and
there is no jar. A JVM has them once: Py4J keeps methods by the name of their class for as long as the JVM lives.
"""

from __future__ import annotations

import threading
from importlib.resources import files
from typing import Any
from weakref import WeakKeyDictionary

import pyspark
from pyspark import SparkContext

from frazil.errors import EngineError

_DEFINE = """
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.codehaus.commons.compiler.util.resource.*;

public class Define {
  public static void all(Map texts, ClassLoader loader) throws Throwable {
    org.codehaus.janino.Compiler compiler = new org.codehaus.janino.Compiler();
    compiler.setIClassLoader(new org.codehaus.janino.ClassLoaderIClassLoader(loader));
    compiler.setSourceVersion(8);
    compiler.setTargetVersion(8);
    HashMap classes = new HashMap();
    compiler.setClassFileCreator(new MapResourceCreator(classes));
    Resource[] sources = new Resource[texts.size()];
    Iterator all = texts.entrySet().iterator();
    for (int i = 0; i < sources.length; i++) {
      Map.Entry one = (Map.Entry) all.next();
      sources[i] = new StringResource((String) one.getKey(), (String) one.getValue());
    }
    compiler.compile(sources);
    java.lang.reflect.Method define = ClassLoader.class.getDeclaredMethod(
        "defineClass", new Class[] {String.class, byte[].class, Integer.TYPE, Integer.TYPE});
    define.setAccessible(true);
    Iterator made = classes.entrySet().iterator();
    while (made.hasNext()) {
      Map.Entry one = (Map.Entry) made.next();
      String name = ((String) one.getKey()).replace('/', '.').replace(".class", "");
      byte[] code = (byte[]) one.getValue();
      define.invoke(loader, new Object[] {name, code, new Integer(0), new Integer(code.length)});
    }
  }
}
"""

_lock = threading.Lock()
_defined: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


def define_classes(context: SparkContext) -> Any:
    """Give the JVM frazil's classes, where it does not have them; return the package that they are in."""
    jvm: Any = context._jvm
    with _lock:
        if context._gateway not in _defined:
            _define(jvm)
            _defined[context._gateway] = True
    return jvm.frazil


def _define(jvm: Any) -> None:
    texts = jvm.java.util.HashMap()
    for one in files("frazil.spark").joinpath("java").iterdir():
        if one.name.endswith(".java"):
            texts.put(f"frazil/{one.name}", one.read_text("utf-8"))
    try:
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.cook(_DEFINE)
        arguments = jvm.java.util.ArrayList()
        arguments.add(texts)
        # The loader that has Spark: whatever sees Spark sees what it has.
        arguments.add(jvm.java.lang.Class.forName("org.apache.spark.sql.classic.Dataset").getClassLoader())
        methods = compiler.getClassLoader().loadClass("Define").getMethods()
        (define,) = [one for one in methods if one.getName() == "all"]
        define.invoke(None, arguments.toArray())
    except Exception as error:
        raise EngineError(f"Cannot compile frazil's classes for Spark {pyspark.__version__}: {error}") from error
