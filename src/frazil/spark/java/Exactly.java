package frazil;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import org.apache.spark.sql.internal.SQLConf;

/** A text that Spark's parser reads to the letter, without its variables. */
public class Exactly extends scala.runtime.AbstractFunction0 {
  private final Object parser;
  private final Method method;
  private final Object[] arguments;

  private Exactly(Object parser, Method method, Object[] arguments) {
    this.parser = parser;
    this.method = method;
    this.arguments = arguments;
  }

  static Object parse(Object parser, Method method, Object[] arguments) {
    SQLConf settings = SQLConf.get().clone();
    settings.setConfString("spark.sql.variable.substitute", "false");
    return org.apache.spark.sql.internal.SQLConf$.MODULE$.withExistingConf(
        settings, new Exactly(parser, method, arguments));
  }

  public Object apply() {
    try {
      return method.invoke(parser, arguments);
    } catch (Throwable e) {
      Door.raise(e instanceof InvocationTargetException ? e.getCause() : e);
      return null;
    }
  }
}
