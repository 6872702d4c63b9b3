package frazil;

import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiFunction;
import java.util.function.Function;
import py4j.ClientServerConnection;
import py4j.Gateway;
import py4j.Py4JPythonClientPerThread;

/**
 * Asks Python on the thread that asks, so that what Python does in turn has that thread's session, job tags and settings.
 *
 * <p>Py4J opens a connection for each thread of Java that asks, which costs a thread of Python too, and keeps both when the
 * thread has ended. Spark's threads come and go: connections of threads that have ended are closed when another thread
 * asks for the first time.
 */
public class Python {
  private static final Map CONNECTIONS = new ConcurrentHashMap();

  static Object ask(Function answers, String request) {
    Object before = connection(answers);
    try {
      return answers.apply(request);
    } finally {
      if (before == null) keep(answers);
    }
  }

  static Object ask(BiFunction answers, String request, Object handed) {
    Object before = connection(answers);
    try {
      return answers.apply(request, handed);
    } finally {
      if (before == null) keep(answers);
    }
  }

  /** The connection of this thread; of those that Python itself calls it is Python's, and none of ours. */
  private static Object connection(Object answers) {
    if (!Proxy.isProxyClass(answers.getClass())) return null;
    try {
      Object handler = Proxy.getInvocationHandler(answers);
      Field field = handler.getClass().getDeclaredField("gateway");
      field.setAccessible(true);
      Object client = ((Gateway) field.get(handler)).getCallbackClient();
      if (!(client instanceof Py4JPythonClientPerThread)) return null;
      return ((Py4JPythonClientPerThread) client).getPerThreadConnection();
    } catch (ReflectiveOperationException e) {
      return null;
    }
  }

  private static void keep(Object answers) {
    Object made = connection(answers);
    if (made == null) return;
    for (Iterator all = CONNECTIONS.entrySet().iterator(); all.hasNext(); ) {
      Map.Entry one = (Map.Entry) all.next();
      if (((Thread) one.getKey()).isAlive()) continue;
      all.remove();
      ((ClientServerConnection) one.getValue()).shutdown();
    }
    CONNECTIONS.put(Thread.currentThread(), made);
  }
}
