package frazil.rules;

import frazil.Door;
import frazil.Request;
import frazil.Spark;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.ExplainMode;
import org.apache.spark.sql.execution.command.ExplainCommand;
import org.apache.spark.sql.internal.VariableSubstitution;
import org.apache.spark.sql.types.StructType;

/** Wraps Spark's parser: parses the statements about lakes that Spark lacks or would handle differently. */
public class LakeParser implements InvocationHandler {
  /** The first words of statements that a lake may answer; Spark parses those that read or change rows. */
  private static final Set OURS =
      new HashSet(
          Arrays.asList(
              new Object[] {
                "create", "drop", "alter", "show", "desc", "describe", "refresh", "comment"
              }));

  private static final Set MODES =
      new HashSet(Arrays.asList(new Object[] {"extended", "codegen", "cost", "formatted"}));

  /** Syntax of newer Spark versions, which Python translates for older ones. */
  private static final Pattern NEWER = Pattern.compile("(?i)\\bschema\\s+evolution\\b|\\bchanges\\b");

  private final ParserInterface spark;

  private LakeParser(ParserInterface spark) {
    this.spark = spark;
  }

  public static ParserInterface over(ParserInterface parser) {
    return (ParserInterface)
        Proxy.newProxyInstance(
            ParserInterface.class.getClassLoader(), new Class[] {ParserInterface.class}, new LakeParser(parser));
  }

  /** Returns the parser that this one wraps. */
  public static ParserInterface under(ParserInterface parser) {
    if (!Proxy.isProxyClass(parser.getClass())) return parser;
    InvocationHandler handler = Proxy.getInvocationHandler(parser);
    return handler instanceof LakeParser ? ((LakeParser) handler).spark : parser;
  }

  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    boolean isNewer = false;
    boolean isName = method.getName().endsWith("Identifier") && arguments != null && arguments.length > 0;
    boolean isPlan = method.getName().startsWith("parsePlan") && arguments.length > 0;
    // In a stopped session, Spark's later failures give no reason.
    if (isName || isPlan) Door.session();
    if (isPlan) {
      String text = (String) arguments[0];
      LogicalPlan parsed = statement(text, arguments.length > 1 ? arguments[1] : null);
      if (parsed != null) return parsed;
      if (firstWord(text).equals("begin")) {
        try {
          arguments[0] = Request.ofText("script", text).ask();
        } catch (Throwable problem) {
          return refused(problem);
        }
      }
      isNewer = NEWER.matcher(text).find();
    }
    // Variables in a name are not substituted.
    if (isName && String.valueOf(arguments[0]).contains("${")) return Exactly.parse(spark, method, arguments);
    try {
      return method.invoke(spark, arguments);
    } catch (InvocationTargetException e) {
      if (!isNewer || !(e.getCause() instanceof ParseException)) return failed(e.getCause(), isPlan);
      Object older;
      try {
        older = Request.ofText("translate", (String) arguments[0]).ask();
      } catch (Throwable problem) {
        return refused(problem);
      }
      if (older.equals(arguments[0])) throw e.getCause();
      arguments[0] = older;
    }
    try {
      return method.invoke(spark, arguments);
    } catch (InvocationTargetException e) {
      return failed(e.getCause(), isPlan);
    }
  }

  /** Handles an exception of Spark's parser. */
  private static LogicalPlan failed(Throwable cause, boolean isPlan) throws Throwable {
    if (!isPlan) throw cause;
    return refused(cause);
  }

  /** Returns the first word after whitespace and comments, in lower case. */
  static String firstWord(String text) {
    int at = start(text);
    int end = at;
    while (end < text.length() && Character.isLetter(text.charAt(end))) end++;
    return text.substring(at, end).toLowerCase(Locale.ROOT);
  }

  private static int start(String text) {
    int at = 0;
    int size = text.length();
    while (at < size) {
      if (Character.isWhitespace(text.charAt(at))) at++;
      else if (text.startsWith("--", at)) at = after(text, at, "\n");
      else if (text.startsWith("/*", at)) at = afterComment(text, at);
      else break;
    }
    return at;
  }

  private static int after(String text, int at, String mark) {
    int index = text.indexOf(mark, at);
    return index < 0 ? text.length() : index + mark.length();
  }

  /** Comments may be nested. */
  private static int afterComment(String text, int at) {
    int depth = 0;
    do {
      if (text.startsWith("/*", at)) depth++;
      else if (text.startsWith("*/", at)) depth--;
      else at--;
      at += 2;
    } while (depth > 0 && at < text.length());
    return at;
  }

  private LogicalPlan statement(String text, Object parameters) {
    String word = firstWord(text);
    if (word.equals("explain")) return explained(text.substring(start(text) + word.length()), parameters);
    if (!OURS.contains(word)) return null;
    String filled = Spark.filled(new VariableSubstitution().substitute(text), parameters);
    Map parsed;
    try {
      parsed = (Map) Request.ofText("parse", filled).read();
    } catch (Throwable problem) {
      return refused(problem);
    }
    return parsed == null ? null : command(parsed);
  }

  private static LogicalPlan command(Map parsed) {
    ArrayList target = null;
    if (parsed.get("name") != null) {
      target = new ArrayList((List) parsed.get("name"));
      target.add(0, parsed.get("catalog"));
    }
    StructType columns = (StructType) StructType.fromJson((String) parsed.get("columns"));
    Request request = Request.inPlace("statement").with("key", parsed.get("key"));
    return new LakeCommand((String) parsed.get("label"), request, target, new ArrayList(), columns);
  }

  /** A parser may only throw the checked exceptions that it declares; a command throws the others when it is run. */
  private static LogicalPlan refused(Throwable problem) {
    boolean isDeclared = problem instanceof ParseException || problem instanceof RuntimeException;
    if (isDeclared || problem instanceof Error) Door.raise(problem);
    return new LakeRefused(problem);
  }

  /** EXPLAIN of a statement that a lake answers. */
  private LogicalPlan explained(String text, Object parameters) {
    String mode = firstWord(text);
    boolean isMode = MODES.contains(mode);
    LogicalPlan plan = statement(isMode ? text.substring(start(text) + mode.length()) : text, parameters);
    if (plan == null || !(plan instanceof LakeCommand)) return plan;
    return new ExplainCommand(plan, ExplainMode.fromString(isMode ? mode : "simple"));
  }
}
