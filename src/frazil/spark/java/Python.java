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
 * Calls Python on the calling thread, so that Python's own calls of Spark have that thread's session, job tags and settings.
 *
 * <p>Py4J opens a connection, which costs a Python thread too, for each Java thread that calls Python, and keeps both when
 * the Java thread has ended. Spark has many short-lived threads: the connections of ended threads are closed when another
 * thread calls Python for the first time.
 *
 * <p>A thread that serves a call from Python cannot be interrupted by Python. After ctrl-C, Python stops waiting and sends
 * a request to cancel all jobs or to close the connection, which is not read. Unread data thus means that the caller gave
 * up.
 */
public class Python {
  private static final Map CONNECTIONS = new ConcurrentHashMap();
  private static final ThreadLocal SERVED = new ThreadLocal();

  public static Object ask(Function answers, String request) {
    Object before = connection(answers);
    try {
      return answers.apply(request);
    } finally {
      if (before == null) keep(answers);
    }
  }

  public static Object ask(BiFunction answers, String request, Object handed) {
    Object before = connection(answers);
    try {
      return answers.apply(request, handed);
    } finally {
      if (before == null) keep(answers);
    }
  }

  /** Returns this thread's connection; a thread that Python called has Python's. */
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

  /** Returns whether the caller of this thread's statement gave up, or a server interrupted it. */
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

  /** Returns the socket of the call that this thread serves; null if it serves none, or Py4J does not reveal it. */
  static Socket served() {
    Object[] cached = (Object[]) SERVED.get();
    if (cached == null) {
      cached = new Object[] {Door.python() == null ? null : find(Door.python())};
      SERVED.set(cached);
    }
    return (Socket) cached[0];
  }

  private static Socket find(Object answers) {
    try {
      Object handler = Proxy.getInvocationHandler(answers);
      Object server = ((Gateway) read(handler, handler.getClass(), "gateway")).getObject("GATEWAY_SERVER");
      // Other connections may open and close meanwhile.
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
    Object connection = connection(answers);
    if (connection == null) return;
    for (Iterator all = CONNECTIONS.entrySet().iterator(); all.hasNext(); ) {
      Map.Entry one = (Map.Entry) all.next();
      if (((Thread) one.getKey()).isAlive()) continue;
      all.remove();
      ((ClientServerConnection) one.getValue()).shutdown();
    }
    CONNECTIONS.put(Thread.currentThread(), connection);
  }
}
