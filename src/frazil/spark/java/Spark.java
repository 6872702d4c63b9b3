package frazil;

import frazil.catalog.LakeTable;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.QueryContext;
import org.apache.spark.QueryContextType;
import org.apache.spark.sql.catalyst.plans.logical.ColumnDefinition;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.UpdateAction;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.collection.immutable.Seq;

/** Parts of Spark whose names or arguments differ between its versions. */
public class Spark {
  /** Call the overload of a Scala object's method with the most parameters, since older versions may have fewer. */
  public static Object call(Class kind, String name, Object[] arguments) {
    try {
      Object module = kind.getField("MODULE$").get(null);
      Method method = null;
      Method[] all = kind.getMethods();
      for (int i = 0; i < all.length; i++) {
        if (!all[i].getName().equals(name) || all[i].getParameterCount() > arguments.length) continue;
        if (method == null || all[i].getParameterCount() > method.getParameterCount()) method = all[i];
      }
      if (method != null) return method.invoke(module, java.util.Arrays.copyOf(arguments, method.getParameterCount()));
    } catch (InvocationTargetException e) {
      Door.raise(e.getCause());
    } catch (ReflectiveOperationException e) {
      throw new UnsupportedOperationException(String.valueOf(e));
    }
    throw new UnsupportedOperationException("This Spark has no " + kind.getName() + name);
  }

  /** Returns a statement with its parameters replaced by values; unchanged if Spark cannot do that. */
  public static String filled(String text, Object parameters) {
    if (parameters == null) return text;
    try {
      Class kind = Class.forName("org.apache.spark.sql.catalyst.parser.ParameterHandler$");
      return (String) ((scala.Tuple2) call(kind, "substituteParameters", new Object[] {text, parameters}))._1();
    } catch (Exception e) {
      return text;
    }
  }

  /** Call a method without arguments that Janino cannot see. */
  public static Object get(Object target, String name) {
    try {
      Method method = target.getClass().getMethod(name, new Class[0]);
      method.setAccessible(true);
      return method.invoke(target, new Object[0]);
    } catch (InvocationTargetException e) {
      Door.raise(e.getCause());
      return null;
    } catch (ReflectiveOperationException e) {
      throw new UnsupportedOperationException(String.valueOf(e));
    }
  }

  public static Seq align(String verb, Object[] arguments) {
    return (Seq) call(org.apache.spark.sql.catalyst.analysis.AssignmentUtils$.class, verb, arguments);
  }

  /** Returns whether a plan's flag is set; older versions may lack it. */
  public static boolean flag(Object plan, String name) {
    try {
      return Boolean.TRUE.equals(plan.getClass().getMethod(name, new Class[0]).invoke(plan, new Object[0]));
    } catch (ReflectiveOperationException e) {
      return false;
    }
  }

  /** Returns whether a stream has a continuous trigger; newer plans have the trigger itself. */
  public static boolean isContinuous(Object plan) {
    if (flag(plan, "isContinuousTrigger")) return true;
    scala.Product parts = (scala.Product) plan;
    for (int i = 0; i < parts.productArity(); i++)
      if ("trigger".equals(parts.productElementName(i))) {
        String kind = parts.productElement(i).getClass().getSimpleName();
        return kind.startsWith("Continuous") || kind.startsWith("RealTime");
      }
    return false;
  }

  /** Returns a plan or an expression with some arguments replaced. */
  public static TreeNode with(TreeNode plan, int[] places, Object[] values) {
    Object[] arguments = new Object[((scala.Product) plan).productArity()];
    for (int i = 0; i < arguments.length; i++) arguments[i] = ((scala.Product) plan).productElement(i);
    for (int i = 0; i < places.length; i++) arguments[places[i]] = values[i];
    return plan.makeCopy(arguments);
  }

  public static DataSourceV2Relation relation(LakeTable table, CaseInsensitiveStringMap options) {
    Object[] arguments = {
      table,
      scala.Option.apply(table.catalog()),
      scala.Option.apply(table.identifier()),
      options,
      scala.Option.empty()
    };
    return (DataSourceV2Relation)
        call(org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation$.class, "create", arguments);
  }

  /** Returns a relation of Spark's older streaming API over a class that makes its sources, with one option. */
  public static LogicalPlan stream(
      org.apache.spark.sql.classic.SparkSession session, String provider, String option, String value) {
    HashMap options = new HashMap();
    options.put(option, value);
    java.lang.reflect.Constructor constructor =
        org.apache.spark.sql.execution.datasources.DataSource.class.getConstructors()[0];
    Object[] arguments = new Object[constructor.getParameterCount()];
    Class[] kinds = constructor.getParameterTypes();
    for (int i = 0; i < arguments.length; i++) {
      if (kinds[i] == scala.Option.class) arguments[i] = scala.Option.empty();
      else if (kinds[i] == Seq.class) arguments[i] = Door.seq(new ArrayList());
      else if (kinds[i] == String.class) arguments[i] = provider;
      else if (kinds[i] == scala.collection.immutable.Map.class)
        arguments[i] = org.apache.spark.api.python.PythonUtils.toScalaMap(options);
      else arguments[i] = session;
    }
    try {
      return (LogicalPlan) call(streamingRelation(), "apply", new Object[] {constructor.newInstance(arguments)});
    } catch (ReflectiveOperationException e) {
      throw new UnsupportedOperationException(String.valueOf(e));
    }
  }

  private static Class streamingRelation() throws ClassNotFoundException {
    try {
      return Class.forName("org.apache.spark.sql.execution.streaming.runtime.StreamingRelation$");
    } catch (ClassNotFoundException e) {
      return Class.forName("org.apache.spark.sql.execution.streaming.StreamingRelation$");
    }
  }

  /** Returns a streaming relation with another one's name in checkpoints, if this Spark has such names. */
  public static LogicalPlan named(LogicalPlan plan, Object other) {
    for (int i = 0; i < plan.productArity(); i++)
      if ("sourceIdentifyingName".equals(plan.productElementName(i)))
        return (LogicalPlan) with(plan, new int[] {i}, new Object[] {get(other, "sourceIdentifyingName")});
    return plan;
  }

  /** Returns an update action; newer versions note whether it was written as `*`. */
  public static Object update(scala.Option condition, Seq assignments) {
    java.lang.reflect.Constructor constructor = UpdateAction.class.getConstructors()[0];
    Object[] arguments = new Object[constructor.getParameterCount()];
    arguments[0] = condition;
    arguments[1] = assignments;
    if (arguments.length > 2) arguments[2] = Boolean.TRUE;
    try {
      return constructor.newInstance(arguments);
    } catch (ReflectiveOperationException e) {
      throw new UnsupportedOperationException(String.valueOf(e));
    }
  }

  /** Returns a message with the part of the query that it is about, unless that is the whole query. */
  static String placed(String message, Origin origin) {
    QueryContext place = origin.context();
    if (place == null || place.contextType() != QueryContextType.SQL || origin.sqlText().isEmpty()) return message;
    String part = place.fragment().trim();
    boolean isWhole = part.isEmpty() || part.length() >= ((String) origin.sqlText().get()).trim().length();
    return isWhole ? message : message + "\n" + place.summary().trim();
  }

  /** Returns the ids of the lakes that a session sees, by name, as JSON. */
  public static String lakes(org.apache.spark.sql.classic.SparkSession session) {
    HashMap ids = new HashMap();
    for (Object one : Door.map(session.sessionState().conf().getAllConfs()).entrySet()) {
      String key = (String) ((Map.Entry) one).getKey();
      if (key.startsWith("spark.sql.catalog.") && key.endsWith(".lake-id"))
        ids.put(key.substring(18, key.length() - 8), ((Map.Entry) one).getValue());
    }
    return Door.text(ids);
  }

  /** Returns the settings of a session with a prefix, as JSON. */
  public static String settings(org.apache.spark.sql.classic.SparkSession session, String prefix) {
    HashMap settings = new HashMap();
    for (Object one : Door.map(session.sessionState().conf().getAllConfs()).entrySet()) {
      Map.Entry entry = (Map.Entry) one;
      if (((String) entry.getKey()).startsWith(prefix)) settings.put(entry.getKey(), entry.getValue());
    }
    return Door.text(settings);
  }

  public static Column[] columns(Seq definitions, Object plan) {
    ArrayList columns = new ArrayList();
    for (Object one : Door.list(definitions)) columns.add(((ColumnDefinition) one).toV2Column("CREATE TABLE"));
    return (Column[]) columns.toArray(new Column[0]);
  }

  public static NamedReference reference(List parts) {
    ArrayList names = new ArrayList(parts);
    return new org.apache.spark.sql.connector.expressions.FieldReference(Door.seq(names));
  }
}
