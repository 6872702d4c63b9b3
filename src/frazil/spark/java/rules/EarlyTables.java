package frazil.rules;

import frazil.Door;
import frazil.Request;
import frazil.Spark;
import frazil.catalog.LakeCatalog;
import frazil.catalog.LakeTable;
import frazil.stream.LakeSink;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.streaming.WriteToStreamStatement;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.collection.immutable.Seq;

/**
 * An analyser rule that runs before names are resolved: loads tables in a state that options name, streams, and targets of
 * writes WITH SCHEMA EVOLUTION. Spark would change the schema during analysis; here the statement's own commit does it.
 */
public class EarlyTables extends org.apache.spark.sql.catalyst.rules.Rule {
  /** The option that stands for WITH SCHEMA EVOLUTION if Spark's grammar lacks it. */
  public static final String OPTION = "frazil.schema-evolution";

  static final String PRIVILEGES = "__required_write_privileges__";

  public TreeNode apply(TreeNode node) {
    LogicalPlan plan = ((LogicalPlan) node).resolveOperatorsUp(new StateOptions());
    plan = (LogicalPlan) plan.resolveOperatorsUp(new StreamNames());
    if (plan instanceof InsertIntoStatement || plan instanceof V2WriteCommand) return write(plan);
    if (plan instanceof MergeIntoTable) return merge((MergeIntoTable) plan);
    if (plan instanceof WriteToStreamStatement) LakeSink.check((WriteToStreamStatement) plan);
    if (!(plan instanceof Union || plan instanceof WithCTE)) return plan;
    ArrayList children = new ArrayList();
    boolean changed = false;
    for (Object one : Door.list(plan.children())) {
      TreeNode now = apply((TreeNode) one);
      changed = changed || now != one;
      children.add(now);
    }
    return changed ? plan.withNewChildren(Door.seq(children)) : plan;
  }

  private static LogicalPlan write(LogicalPlan plan) {
    if (!(plan.productElement(0) instanceof UnresolvedRelation)) return plan;
    UnresolvedRelation name = (UnresolvedRelation) plan.productElement(0);
    if (!Spark.flag(plan, "withSchemaEvolution") && !name.options().containsKey(OPTION)) return plan;
    LakeTable table = find(name, Collections.EMPTY_MAP, "evolve");
    if (table == null) return plan;
    return (LogicalPlan) Spark.with(plan, new int[] {0}, new Object[] {Spark.relation(table, options(name))});
  }

  private static LogicalPlan merge(MergeIntoTable plan) {
    LogicalPlan target = LakeRelations.relation(plan.targetTable());
    if (!plan.withSchemaEvolution() || !(target instanceof UnresolvedRelation)) return plan;
    LakeTable table = find((UnresolvedRelation) target, Collections.EMPTY_MAP, "evolve");
    if (table == null) return plan;
    LogicalPlan waits = new EvolvingTarget(table, options((UnresolvedRelation) target));
    waits = new SubqueryAlias(table.alias(), waits);
    return (LogicalPlan) Spark.with(plan, new int[] {0}, new Object[] {in(plan.targetTable(), waits)});
  }

  /** Replaces a target, keeping its aliases. */
  private static LogicalPlan in(LogicalPlan aliases, LogicalPlan target) {
    if (!(aliases instanceof SubqueryAlias)) return target;
    SubqueryAlias alias = (SubqueryAlias) aliases;
    return new SubqueryAlias(alias.identifier(), in(alias.child(), target));
  }

  /** Returns the lake's table of a name; null if there is none, which Spark then reports. */
  public static LakeTable find(UnresolvedRelation name, Map options, String purpose) {
    ArrayList parts = new ArrayList(Door.list(name.multipartIdentifier()));
    org.apache.spark.sql.classic.SparkSession session = SparkSession.active();
    if (session.sessionState().catalog().isTempView(name.multipartIdentifier())) return null;
    CatalogManager catalogs = session.sessionState().catalogManager();
    CatalogPlugin catalog = catalogs.currentCatalog();
    if (parts.size() == 1) {
      parts.addAll(0, Door.names(catalogs.currentNamespace()));
    } else if (catalogs.isCatalogRegistered((String) parts.get(0))) {
      catalog = catalogs.catalog((String) parts.remove(0));
    }
    if (!(catalog instanceof LakeCatalog)) return null;
    String last = (String) parts.remove(parts.size() - 1);
    Identifier table = Identifier.of((String[]) parts.toArray(new String[0]), last);
    return ((LakeCatalog) catalog).find(table, options, purpose);
  }

  private static CaseInsensitiveStringMap options(UnresolvedRelation name) {
    HashMap options = new HashMap(name.options().asCaseSensitiveMap());
    options.remove(PRIVILEGES);
    options.remove(OPTION);
    return new CaseInsensitiveStringMap(options);
  }

  /** Rewrites a MERGE whose source is resolved to target the table as it will be, with nothing left to evolve. */
  static LogicalPlan evolved(MergeIntoTable plan) {
    LogicalPlan target = LakeRelations.relation(plan.targetTable());
    if (!(target instanceof EvolvingTarget) || !plan.sourceTable().resolved()) return plan;
    EvolvingTarget waits = (EvolvingTarget) target;
    Request request =
        waits
            .table
            .ofTable("evolve")
            .with("source", plan.sourceTable().schema().json())
            .with("assigned", assigned(plan))
            .with("aliases", aliases(plan.targetTable()));
    LakeTable table = new LakeTable(waits.table.catalog(), waits.table.identifier(), (Map) request.read());
    LogicalPlan relation = Spark.relation(table, waits.options);
    return (LogicalPlan) Spark.with(
        plan,
        new int[] {0, 3, 4, 5, 6},
        new Object[] {
          in(plan.targetTable(), relation),
          named(plan.matchedActions(), plan),
          named(plan.notMatchedActions(), plan),
          named(plan.notMatchedBySourceActions(), plan),
          Boolean.FALSE
        });
  }

  /** Returns the paths that clauses assign; null if one of them assigns all columns. */
  private static List assigned(MergeIntoTable plan) {
    ArrayList paths = new ArrayList();
    ArrayList actions = new ArrayList(Door.list(plan.matchedActions()));
    actions.addAll(Door.list(plan.notMatchedActions()));
    actions.addAll(Door.list(plan.notMatchedBySourceActions()));
    for (Object action : actions) {
      if (action instanceof UpdateStarAction || action instanceof InsertStarAction) return null;
      if (action instanceof DeleteAction) continue;
      Seq assignments =
          action instanceof UpdateAction
              ? ((UpdateAction) action).assignments()
              : ((InsertAction) action).assignments();
      for (Object one : Door.list(assignments)) {
        Object key = ((Assignment) one).key();
        if (key instanceof UnresolvedAttribute) paths.add(new ArrayList(Door.list(((UnresolvedAttribute) key).nameParts())));
      }
    }
    return paths;
  }

  private static List aliases(LogicalPlan target) {
    ArrayList names = new ArrayList();
    if (target instanceof SubqueryAlias && ((SubqueryAlias) target).child() instanceof SubqueryAlias)
      names.add(((SubqueryAlias) target).identifier().name());
    return names;
  }

  /** Replaces `*` by assignments of the source's columns. */
  private static Seq named(Seq actions, MergeIntoTable plan) {
    ArrayList made = new ArrayList();
    for (Object one : Door.list(actions)) {
      if (one instanceof UpdateStarAction) {
        made.add(Spark.update(((UpdateStarAction) one).condition(), columns(plan)));
      } else if (one instanceof InsertStarAction) {
        made.add(new InsertAction(((InsertStarAction) one).condition(), columns(plan)));
      } else {
        made.add(one);
      }
    }
    return Door.seq(made);
  }

  private static Seq columns(MergeIntoTable plan) {
    ArrayList assignments = new ArrayList();
    for (Object one : Door.list(plan.sourceTable().output())) {
      Attribute column = (Attribute) one;
      ArrayList name = new ArrayList();
      name.add(column.name());
      assignments.add(new Assignment(new UnresolvedAttribute(Door.seq(name)), column));
    }
    return Door.seq(assignments);
  }
}
