package frazil;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.execution.ExplainMode;
import org.apache.spark.sql.execution.command.ExplainCommand;
import org.apache.spark.sql.internal.VariableSubstitution;
import org.apache.spark.sql.types.StructType;

/** Spark's own parser, and before it the statements about lakes that Spark does not know, or knows otherwise. */
public class LakeParser implements InvocationHandler {
  /** How statements begin that may be ours; whatever reads or changes rows is Spark's. */
  private static final Set OURS =
      new HashSet(
          Arrays.asList(
              new Object[] {
                "create", "drop", "alter", "show", "desc", "describe", "refresh", "comment"
              }));

  private static final Set MODES =
      new HashSet(Arrays.asList(new Object[] {"extended", "codegen", "cost", "formatted"}));

  /** Words that newer Sparks know: what says the same in older ones, Python knows. */
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

  /** The parser that was there before. */
  public static ParserInterface under(ParserInterface parser) {
    if (!Proxy.isProxyClass(parser.getClass())) return parser;
    InvocationHandler handler = Proxy.getInvocationHandler(parser);
    return handler instanceof LakeParser ? ((LakeParser) handler).spark : parser;
  }

  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    boolean isNewer = false;
    boolean isName = method.getName().endsWith("Identifier") && arguments != null && arguments.length > 0;
    boolean isPlan = method.getName().startsWith("parsePlan") && arguments.length > 0;
    // Of what fails later in a session that was stopped, Spark itself says nothing.
    if (isName || isPlan) Door.session();
    if (isPlan) {
      String text = (String) arguments[0];
      LogicalPlan found = statement(text, arguments.length > 1 ? arguments[1] : null);
      if (found != null) return found;
      if (firstWord(text).equals("begin")) {
        try {
          arguments[0] = Door.ask("script", told(text));
        } catch (Throwable problem) {
          return refused(problem);
        }
      }
      isNewer = NEWER.matcher(text).find();
    }
    // A name is data: what stands in it is not replaced.
    if (isName && String.valueOf(arguments[0]).contains("${")) return Exactly.parse(spark, method, arguments);
    try {
      return method.invoke(spark, arguments);
    } catch (InvocationTargetException e) {
      if (!isNewer || !(e.getCause() instanceof ParseException)) return failed(e.getCause(), isPlan);
      Object older;
      try {
        older = Door.ask("older-words", told((String) arguments[0]));
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

  /** What Spark's parser raised. */
  private static LogicalPlan failed(Throwable cause, boolean isPlan) throws Throwable {
    if (!isPlan) throw cause;
    return refused(cause);
  }

  /** The word that a text begins with after space and comments, in lower case. */
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
    int found = text.indexOf(mark, at);
    return found < 0 ? text.length() : found + mark.length();
  }

  /** Comments hold others. */
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

  /** A text, and where names are looked up. */
  static Map told(String text) {
    Map told = new LinkedHashMap();
    told.put("text", text);
    CatalogManager catalogs = Door.session().sessionState().catalogManager();
    told.put("current", catalogs.currentCatalog().name());
    told.put("namespace", Door.names(catalogs.currentNamespace()));
    return told;
  }

  private LogicalPlan statement(String text, Object parameters) {
    String word = firstWord(text);
    if (word.equals("explain")) return explained(text.substring(start(text) + word.length()), parameters);
    if (!OURS.contains(word)) return null;
    Map told = told(Spark.filled(new VariableSubstitution().substitute(text), parameters));
    Object answer;
    try {
      answer = Door.ask("parse", told);
    } catch (Throwable problem) {
      return refused(problem);
    }
    if (answer == null) return null;
    Map found = (Map) Door.parse((String) answer);
    told.put("key", found.get("key"));
    told.put("shown", found.get("shown"));
    told.put("catalog", found.get("catalog"));
    told.put("name", found.get("name"));
    StructType columns = (StructType) StructType.fromJson((String) found.get("columns"));
    return new LakeCommand("statement", told, new ArrayList(), columns);
  }

  /** Java lets a parser raise what its methods declare, which are syntax errors: others are raised by the command. */
  private static LogicalPlan refused(Throwable problem) {
    boolean isDeclared = problem instanceof ParseException || problem instanceof RuntimeException;
    if (isDeclared || problem instanceof Error) Door.raise(problem);
    return new LakeRefused(problem);
  }

  /** The plan of a statement of ours is shown, and nothing is run. */
  private LogicalPlan explained(String text, Object parameters) {
    String mode = firstWord(text);
    boolean isMode = MODES.contains(mode);
    LogicalPlan plan = statement(isMode ? text.substring(start(text) + mode.length()) : text, parameters);
    if (plan == null || !(plan instanceof LakeCommand)) return plan;
    return new ExplainCommand(plan, ExplainMode.fromString(isMode ? mode : "simple"));
  }
}
