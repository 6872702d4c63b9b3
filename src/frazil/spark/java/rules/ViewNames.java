package frazil.rules;

import frazil.Door;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.collection.immutable.Seq;

/** Finds the names of tables and functions in a parsed query, except those that the query defines itself. */
public class ViewNames {
  private final ArrayList nodes = new ArrayList();
  private final ArrayList names = new ArrayList();

  private ViewNames(LogicalPlan plan) {
    walk(plan, new HashSet());
  }

  /** Returns the names as JSON, in a stable order: `{"kind": "table", "parts": ["db", "t"]}`. */
  public static String find(LogicalPlan plan) {
    return Door.text(new ViewNames(plan).names);
  }

  /** Returns the query with other names: a JSON list in the order of `find`, null for a name that is unchanged. */
  public static LogicalPlan renamed(LogicalPlan plan, String names) {
    ViewNames finder = new ViewNames(plan);
    List newNames = (List) Door.parse(names);
    IdentityHashMap places = new IdentityHashMap();
    for (int i = 0; i < newNames.size(); i++)
      if (newNames.get(i) != null) places.put(finder.nodes.get(i), Door.seq((List) newNames.get(i)));
    return (LogicalPlan) rewrite(plan, places);
  }

  private static boolean isContainer(Object o) {
    return o instanceof scala.Some || o instanceof scala.Tuple2 || o instanceof scala.Tuple3;
  }

  private void walk(Object o, Set defined) {
    if (o instanceof UnresolvedRelation) {
      Seq parts = ((UnresolvedRelation) o).multipartIdentifier();
      if (parts.size() != 1 || !defined.contains(((String) parts.apply(0)).toLowerCase())) add(o, "table", parts);
    } else if (o instanceof UnresolvedWith) {
      with((UnresolvedWith) o, defined);
    } else if (o instanceof scala.collection.Iterable) {
      scala.collection.Iterator parts = ((scala.collection.Iterable) o).iterator();
      while (parts.hasNext()) walk(parts.next(), defined);
    } else if (o instanceof TreeNode || isContainer(o)) {
      if (o instanceof UnresolvedFunction) add(o, "function", ((UnresolvedFunction) o).nameParts());
      scala.collection.Iterator parts = ((scala.Product) o).productIterator();
      while (parts.hasNext()) walk(parts.next(), defined);
    }
  }

  private void with(UnresolvedWith with, Set defined) {
    HashSet inner = new HashSet(defined);
    scala.collection.Iterator ctes = with.cteRelations().iterator();
    while (ctes.hasNext()) {
      scala.Product cte = (scala.Product) ctes.next();
      String name = ((String) cte.productElement(0)).toLowerCase();
      // A recursive query refers to itself.
      if (with.productArity() > 2 && Boolean.TRUE.equals(with.productElement(2))) inner.add(name);
      walk(cte.productElement(1), inner);
      inner.add(name);
    }
    walk(with.child(), inner);
  }

  private void add(Object node, String kind, Seq parts) {
    LinkedHashMap name = new LinkedHashMap();
    name.put("kind", kind);
    name.put("parts", new ArrayList(Door.list(parts)));
    nodes.add(node);
    names.add(name);
  }

  private static Object rewrite(Object o, Map places) {
    if (o instanceof scala.collection.immutable.Map || o instanceof scala.collection.immutable.Set) return o;
    if (o instanceof scala.collection.immutable.Seq) return all((Seq) o, places);
    if (!(o instanceof TreeNode) && !isContainer(o)) return o;
    scala.Product product = (scala.Product) o;
    Object[] parts = new Object[product.productArity()];
    boolean changed = places.containsKey(o);
    for (int i = 0; i < parts.length; i++) {
      Object part = product.productElement(i);
      // The name is the first argument of a table and of a function.
      parts[i] = i == 0 && places.containsKey(o) ? places.get(o) : rewrite(part, places);
      changed = changed || parts[i] != part;
    }
    if (!changed) return o;
    if (o instanceof scala.Some) return scala.Option.apply(parts[0]);
    if (o instanceof scala.Tuple2) return new scala.Tuple2(parts[0], parts[1]);
    if (o instanceof scala.Tuple3) return new scala.Tuple3(parts[0], parts[1], parts[2]);
    return ((TreeNode) o).makeCopy(parts);
  }

  private static Object all(Seq items, Map places) {
    ArrayList made = new ArrayList();
    boolean changed = false;
    for (Object one : Door.list(items)) {
      Object other = rewrite(one, places);
      changed = changed || other != one;
      made.add(other);
    }
    return changed ? (Object) Door.seq(made) : items;
  }
}
