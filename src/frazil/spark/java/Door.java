package frazil;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import org.apache.spark.sql.catalyst.trees.CurrentOrigin;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.classic.SparkSession;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** The way from Spark to Python: one question at a time, with a word that only this JVM and its Python know. */
public class Door {
  private static volatile BiFunction python;
  private static volatile String word = "";
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void open(BiFunction answers, String secret) {
    python = answers;
    word = secret;
  }

  public static void close() {
    python = null;
  }

  static Object python() {
    return python;
  }

  /** The session that is active; one that was stopped is said to be. */
  static SparkSession session() {
    try {
      return (SparkSession) SparkSession.active();
    } catch (Throwable e) {
      fail("Cannot run it: the Spark session was stopped", "unsupported", "FRAZIL_STOPPED", "08003");
      return null;
    }
  }

  /** Ask Python in the name of the session that is active; `objects` are handed over as they are. */
  public static Object ask(String verb, Map told, List objects) {
    BiFunction answers = python;
    if (answers == null) fail("Cannot " + verb + ": no lake is attached", "analysis", "FRAZIL_DETACHED", "08003");
    SparkSession session = session();
    ArrayList handed = new ArrayList();
    handed.add(session);
    handed.addAll(objects);
    Object answer = Python.ask(answers, word + verb + " " + session.sessionUUID() + " " + text(told), handed);
    if (answer instanceof String && ((String) answer).startsWith("!")) {
      Map problem = (Map) parse(((String) answer).substring(1));
      fail(
          (String) problem.get("message"),
          (String) problem.get("kind"),
          (String) problem.get("condition"),
          (String) problem.get("state"));
    }
    return answer;
  }

  public static Object ask(String verb, Map told) {
    return ask(verb, told, Collections.EMPTY_LIST);
  }

  /** What Python answers as JSON: a map, a list, a text, or null. */
  public static Object read(String verb, Map told) {
    Object answer = ask(verb, told);
    return answer == null ? null : parse((String) answer);
  }

  public static String text(Object value) {
    try {
      return JSON.writeValueAsString(value);
    } catch (Exception e) {
      throw new IllegalArgumentException(e);
    }
  }

  public static Object parse(String text) {
    try {
      return JSON.readValue(text, Object.class);
    } catch (Exception e) {
      throw new IllegalArgumentException(e);
    }
  }

  /** Raise what Python could not do, as the error that Spark's users expect; never returns. */
  public static void fail(String message, String kind, String condition, String state) {
    Origin origin = CurrentOrigin.get();
    if ("unsupported".equals(kind)) raise(new LakeRefusal(message, condition, state, origin));
    if ("execution".equals(kind)) raise(new LakeFailure(message, condition, state, origin));
    raise(new LakeProblem(message, condition, state, origin));
  }

  public static void raise(Throwable error) {
    org.apache.spark.unsafe.Platform.throwException(error);
  }

  public static Seq seq(List items) {
    return CollectionConverters.asScala(items).toList();
  }

  public static List list(Object items) {
    return CollectionConverters.asJava((Seq) items);
  }

  public static Map map(Object items) {
    return CollectionConverters.asJava((scala.collection.Map) items);
  }

  public static List names(String[] parts) {
    return java.util.Arrays.asList(parts);
  }
}
