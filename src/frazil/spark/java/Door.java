package frazil;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import org.apache.spark.sql.catalyst.trees.CurrentOrigin;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.classic.SparkSession;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Sends requests from Spark to Python, with a secret that only this JVM and its Python process know. */
public class Door {
  private static volatile BiFunction python;
  private static volatile String secret = "";
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void open(BiFunction answers, String word) {
    python = answers;
    secret = word;
  }

  public static void close() {
    python = null;
  }

  public static Object python() {
    return python;
  }

  /** Returns the active session; fails if it was stopped. */
  public static SparkSession session() {
    try {
      return (SparkSession) SparkSession.active();
    } catch (Throwable e) {
      fail("Cannot run it: the Spark session was stopped", "unsupported", "FRAZIL_STOPPED", "08003");
      return null;
    }
  }

  /** Send a request on behalf of the active session; see Request. */
  public static Object ask(String verb, String json, List objects) {
    BiFunction answers = python;
    if (answers == null) fail("Cannot " + verb + ": no lake is attached", "analysis", "FRAZIL_DETACHED", "08003");
    SparkSession session = session();
    ArrayList handed = new ArrayList();
    handed.add(session);
    handed.addAll(objects);
    Object answer = Python.ask(answers, secret + verb + " " + session.sessionUUID() + " " + json, handed);
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

  /** Raise an error of Python as the exception that Spark uses for its kind; never returns. */
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
