package frazil.rules;

import frazil.Door;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.internal.SQLConf;

/** Parses a text without substituting variables. */
public class Exactly extends scala.runtime.AbstractFunction0 {
  private final Object parser;
  private final Method method;
  private final Object[] arguments;

  private Exactly(Object parser, Method method, Object[] arguments) {
    this.parser = parser;
    this.method = method;
    this.arguments = arguments;
  }

  public static Object parse(Object parser, Method method, Object[] arguments) {
    return read(SQLConf.get(), parser, method, arguments);
  }

  /** Parse with the settings of a session; `verb` is the parser's method. */
  public static Object parse(SQLConf settings, ParserInterface parser, String verb, String text) throws Exception {
    Method method = ParserInterface.class.getMethod(verb, new Class[] {String.class});
    return read(settings, parser, method, new Object[] {text});
  }

  private static Object read(SQLConf settings, Object parser, Method method, Object[] arguments) {
    SQLConf changed = settings.clone();
    changed.setConfString("spark.sql.variable.substitute", "false");
    return org.apache.spark.sql.internal.SQLConf$.MODULE$.withExistingConf(
        changed, new Exactly(parser, method, arguments));
  }

  public Object apply() {
    try {
      return method.invoke(parser, arguments);
    } catch (Throwable e) {
      // Spark's own exceptions, some of them checked, are rethrown.
      Door.raise(e instanceof InvocationTargetException ? e.getCause() : e);
      return null;
    }
  }
}
