package frazil;

import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.net.Socket;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiFunction;
import java.util.function.Function;
import py4j.ClientServerConnection;
import py4j.Gateway;
import py4j.GatewayServer;
import py4j.Py4JPythonClientPerThread;

/**
 * Asks Python on the thread that asks, so that what Python does in turn has that thread's session, job tags and settings.
 *
 * <p>Py4J opens a connection for each thread of Java that asks, which costs a thread of Python too, and keeps both when the
 * thread has ended. Spark's threads come and go: connections of threads that have ended are closed when another thread
 * asks for the first time.
 *
 * <p>A thread that serves calls of Python's cannot be told to stop while it serves one: ctrl-C ends the wait, and what
 * Python sends then, to cancel all jobs or to end the connection, is not read. That something came says that nobody waits.
 */
public class Python {
  private static final Map CONNECTIONS = new ConcurrentHashMap();
  private static final ThreadLocal SERVED = new ThreadLocal();

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
      Object client = ((Gateway) read(handler, handler.getClass(), "gateway")).getCallbackClient();
      if (!(client instanceof Py4JPythonClientPerThread)) return null;
      return ((Py4JPythonClientPerThread) client).getPerThreadConnection();
    } catch (ReflectiveOperationException e) {
      return null;
    }
  }

  /** Whether who asked for the statement of this thread waits no longer, or a server has interrupted it. */
  public static boolean isGivenUp() {
    return Thread.currentThread().isInterrupted() || isGivenUp(served());
  }

  static boolean isGivenUp(Socket served) {
    if (served == null) return false;
    try {
      return served.isClosed() || served.getInputStream().available() > 0;
    } catch (IOException e) {
      return true;
    }
  }

  /** Where the call comes from that this thread serves; null where Python waits for none, or Py4J does not say. */
  static Socket served() {
    Object[] known = (Object[]) SERVED.get();
    if (known == null) {
      known = new Object[] {Door.python() == null ? null : find(Door.python())};
      SERVED.set(known);
    }
    return (Socket) known[0];
  }

  private static Socket find(Object answers) {
    try {
      Object handler = Proxy.getInvocationHandler(answers);
      Object server = ((Gateway) read(handler, handler.getClass(), "gateway")).getObject("GATEWAY_SERVER");
      // Connections come and go meanwhile, and this thread's stays.
      Object[] all = ((List) read(server, GatewayServer.class, "connections")).toArray();
      for (int i = 0; i < all.length; i++) {
        if (!(all[i] instanceof ClientServerConnection)) continue;
        Object thread = read(all[i], ClientServerConnection.class, "jvmThread");
        if (thread == Thread.currentThread()) return ((ClientServerConnection) all[i]).getSocket();
      }
    } catch (ReflectiveOperationException e) {
      return null;
    } catch (RuntimeException e) {
      return null;
    }
    return null;
  }

  private static Object read(Object of, Class kind, String name) throws ReflectiveOperationException {
    Field field = kind.getDeclaredField(name);
    field.setAccessible(true);
    return field.get(of);
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
