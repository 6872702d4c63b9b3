package frazil;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.streaming.WriteToStream;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.LogicalExpressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/** At the end of the analysis: what changes a lake becomes a command that Python runs, with what Spark has resolved. */
public class LakeWrites extends org.apache.spark.sql.catalyst.rules.Rule {
  private static final StructType NOTHING = new StructType();
  private static final StructType AFFECTED = NOTHING.add("num_affected_rows", "bigint");
  private static final StructType INSERTED = AFFECTED.add("num_inserted_rows", "bigint");
  private static final StructType MERGED =
      AFFECTED.add("num_updated_rows", "bigint").add("num_deleted_rows", "bigint").add("num_inserted_rows", "bigint");

  public TreeNode apply(TreeNode node) {
    LogicalPlan plan = (LogicalPlan) node;
    if (!plan.resolved()) return plan;
    return plan instanceof Union ? several((Union) plan) : change(plan);
  }

  /** Several inserts of one source: one after the other, each with what was read before the first. */
  private static LogicalPlan several(Union plan) {
    ArrayList made = new ArrayList();
    String statement = java.util.UUID.randomUUID().toString();
    boolean ours = false;
    boolean all = true;
    for (Object one : Door.list(plan.children())) {
      LogicalPlan changed = change((LogicalPlan) one);
      if (changed instanceof LakeCommand) {
        ((LakeCommand) changed).told().put("statement", statement);
        ours = true;
      } else {
        all = false;
      }
      made.add(changed);
    }
    if (!ours) return plan;
    return all ? new LakeCommands(made) : (LogicalPlan) plan.withNewChildren(Door.seq(made));
  }

  private static LogicalPlan change(LogicalPlan plan) {
    if (plan instanceof AppendData) return append((AppendData) plan);
    if (plan instanceof OverwriteByExpression) return overwrite((OverwriteByExpression) plan);
    if (plan instanceof OverwritePartitionsDynamic) return partitions((OverwritePartitionsDynamic) plan);
    if (plan instanceof DeleteFromTable) return delete((DeleteFromTable) plan);
    if (plan instanceof UpdateTable) return update((UpdateTable) plan);
    if (plan instanceof MergeIntoTable) return merge((MergeIntoTable) plan);
    if (plan instanceof TruncateTable) return truncate((TruncateTable) plan);
    if (plan instanceof AnalyzeTable) return analyze(plan, ((AnalyzeTable) plan).child());
    if (plan instanceof AnalyzeColumn) return analyze(plan, ((AnalyzeColumn) plan).child());
    if (plan instanceof V2CreateTablePlan) return create((V2CreateTablePlan) plan);
    if (plan instanceof WriteToStream) return LakeSink.of((WriteToStream) plan);
    return plan;
  }

  static DataSourceV2Relation target(Object plan) {
    LogicalPlan found = LakeRelations.relation((LogicalPlan) plan);
    if (!(found instanceof DataSourceV2Relation)) return null;
    return ((DataSourceV2Relation) found).table() instanceof LakeTable ? (DataSourceV2Relation) found : null;
  }

  /** Which states of lakes' tables a plan reads, as Python knows them. */
  private static void reads(TreeNode node, Set into) {
    if (node instanceof HiddenColumns) into.add(((HiddenColumns) node).key());
    for (Object one : Door.list(node.children())) reads((TreeNode) one, into);
    if (node instanceof LogicalPlan)
      for (Object one : Door.list(((LogicalPlan) node).expressions())) reads((TreeNode) one, into);
    if (node instanceof PlanExpression) reads((TreeNode) ((PlanExpression) node).plan(), into);
  }

  /** A command that says which states it was computed from: others' changes since then are conflicts. */
  private static LogicalPlan command(String verb, Map told, List objects, StructType columns) {
    HashSet keys = new HashSet();
    for (Object one : objects) if (one instanceof TreeNode) reads((TreeNode) one, keys);
    told.put("reads", keys);
    return new LakeCommand(verb, told, objects, columns);
  }

  private static Map told(DataSourceV2Relation relation) {
    Map told = ((LakeTable) relation.table()).told();
    told.put("options", new HashMap(relation.options().asCaseSensitiveMap()));
    return told;
  }

  /** What Python is handed first of a change: the columns of the table, by the ids that expressions know. */
  private static ArrayList columns(DataSourceV2Relation relation) {
    ArrayList objects = new ArrayList();
    objects.add(relation.output());
    return objects;
  }

  private static LogicalPlan append(AppendData plan) {
    DataSourceV2Relation relation = target(plan.productElement(0));
    if (relation == null) return plan;
    return write("append", relation, plan.query(), plan.writeOptions(), null, plan);
  }

  private static LogicalPlan overwrite(OverwriteByExpression plan) {
    DataSourceV2Relation relation = target(plan.productElement(0));
    if (relation == null) return plan;
    return write("overwrite", relation, plan.query(), plan.writeOptions(), plan.deleteExpr(), plan);
  }

  private static LogicalPlan partitions(OverwritePartitionsDynamic plan) {
    DataSourceV2Relation relation = target(plan.productElement(0));
    if (relation == null) return plan;
    return write("overwrite-partitions", relation, plan.query(), plan.writeOptions(), null, plan);
  }

  private static LogicalPlan write(
      String verb,
      DataSourceV2Relation relation,
      LogicalPlan query,
      Object options,
      Expression where,
      LogicalPlan plan) {
    Map told = told(relation);
    ((Map) told.get("options")).putAll(Door.map(options));
    told.put("by-name", Boolean.valueOf(((V2WriteCommand) plan).isByName()));
    told.put("any-schema", Boolean.valueOf(((LakeTable) relation.table()).takesAnySchema()));
    told.put("evolves", Boolean.valueOf(evolves(relation)));
    ArrayList objects = columns(relation);
    objects.add(query);
    if (where != null) expression(where, told, objects, "where");
    return command(verb, told, objects, INSERTED);
  }

  private static LogicalPlan delete(DeleteFromTable plan) {
    DataSourceV2Relation relation = target(plan.table());
    if (relation == null) return plan;
    Map told = told(relation);
    ArrayList objects = columns(relation);
    expression(plan.condition(), told, objects, "where");
    return command("delete", told, objects, AFFECTED);
  }

  private static LogicalPlan truncate(TruncateTable plan) {
    if (!(plan.table() instanceof ResolvedTable)) return plan;
    Object table = ((ResolvedTable) plan.table()).table();
    return table instanceof LakeTable
        ? new LakeCommand("truncate", ((LakeTable) table).told(), new ArrayList(), NOTHING)
        : plan;
  }

  private static LogicalPlan analyze(LogicalPlan plan, LogicalPlan child) {
    if (!(child instanceof ResolvedTable) || !(((ResolvedTable) child).table() instanceof LakeTable)) return plan;
    Map told = ((LakeTable) ((ResolvedTable) child).table()).told();
    if (plan instanceof AnalyzeTable) {
      told.put("partition", Boolean.valueOf(!((AnalyzeTable) plan).partitionSpec().isEmpty()));
      told.put("noscan", Boolean.valueOf(((AnalyzeTable) plan).noScan()));
    } else if (((AnalyzeColumn) plan).columnNames().isDefined()) {
      told.put("columns", Door.list(((AnalyzeColumn) plan).columnNames().get()));
    }
    return new LakeCommand("analyze", told, new ArrayList(), NOTHING);
  }

  private static LogicalPlan update(UpdateTable plan) {
    DataSourceV2Relation relation = target(plan.table());
    if (relation == null) return plan;
    Map told = told(relation);
    ArrayList objects = columns(relation);
    told.put("values", assignments(updated(relation, plan.assignments(), false), objects));
    if (plan.condition().isDefined()) expression((Expression) plan.condition().get(), told, objects, "where");
    return command("update", told, objects, AFFECTED);
  }

  private static LogicalPlan merge(MergeIntoTable plan) {
    DataSourceV2Relation relation = target(plan.targetTable());
    if (relation == null) return plan;
    Map told = told(relation);
    ArrayList objects = columns(relation);
    objects.add(plan.sourceTable());
    expression(plan.mergeCondition(), told, objects, "on");
    ArrayList clauses = new ArrayList();
    clauses(relation, "matched", plan.matchedActions(), clauses, objects);
    clauses(relation, "not_matched", plan.notMatchedActions(), clauses, objects);
    clauses(relation, "not_matched_by_source", plan.notMatchedBySourceActions(), clauses, objects);
    told.put("clauses", clauses);
    return command("merge", told, objects, MERGED);
  }

  private static void clauses(DataSourceV2Relation relation, String when, Seq actions, List into, List objects) {
    for (Object one : Door.list(actions)) {
      MergeAction action = (MergeAction) one;
      LinkedHashMap clause = new LinkedHashMap();
      clause.put("when", when);
      if (action.condition().isDefined()) expression((Expression) action.condition().get(), clause, objects, "where");
      if (action instanceof DeleteAction) {
        clause.put("do", "delete");
      } else if (action instanceof UpdateAction) {
        clause.put("do", "update");
        Seq given = updated(relation, ((UpdateAction) action).assignments(), Spark.flag(action, "fromStar"));
        clause.put("values", assignments(given, objects));
      } else {
        clause.put("do", "insert");
        clause.put("values", assignments(inserted(relation, ((InsertAction) action).assignments()), objects));
      }
      into.add(clause);
    }
  }

  /** The own columns of a table, without metadata columns that a query named. */
  private static Seq own(DataSourceV2Relation relation) {
    return (Seq) relation.output().take(((LakeTable) relation.table()).schema().size());
  }

  /** A value for every column, converted as Spark's rules say; where the schema evolves, structs may lack parts. */
  private static Seq updated(DataSourceV2Relation relation, Seq assignments, boolean isStar) {
    Boolean mayLack = Boolean.valueOf(evolves(relation));
    Object[] given = {own(relation), assignments, Boolean.valueOf(isStar && mayLack.booleanValue()), mayLack};
    return Spark.align("alignUpdateAssignments", given);
  }

  private static Seq inserted(DataSourceV2Relation relation, Seq assignments) {
    Object[] given = {own(relation), assignments, Boolean.valueOf(evolves(relation))};
    return Spark.align("alignInsertAssignments", given);
  }

  /**
   * An UPDATE or MERGE with its values converted by the names of parts. Spark casts those of tables that do not rewrite
   * rows its way, structs by the place of their parts; that is undone.
   */
  static LogicalPlan aligned(LogicalPlan plan) {
    if (plan instanceof UpdateTable) {
      UpdateTable update = (UpdateTable) plan;
      DataSourceV2Relation relation = target(update.table());
      if (relation == null || !isCast(update.assignments())) return plan;
      Seq values = updated(relation, asked(update.assignments()), false);
      return (LogicalPlan) Spark.with(plan, new int[] {1}, new Object[] {values});
    }
    if (!(plan instanceof MergeIntoTable)) return plan;
    MergeIntoTable merge = (MergeIntoTable) plan;
    DataSourceV2Relation relation = target(merge.targetTable());
    boolean isCast = false;
    Object[] actions = {merge.matchedActions(), merge.notMatchedActions(), merge.notMatchedBySourceActions()};
    for (int i = 0; i < actions.length; i++)
      for (Object one : Door.list(actions[i])) isCast = isCast || isCast(values(one));
    if (relation == null || !isCast) return plan;
    for (int i = 0; i < actions.length; i++) {
      ArrayList made = new ArrayList();
      for (Object one : Door.list(actions[i])) made.add(aligned(relation, (MergeAction) one));
      actions[i] = Door.seq(made);
    }
    return (LogicalPlan) Spark.with(plan, new int[] {3, 4, 5}, actions);
  }

  private static Object aligned(DataSourceV2Relation relation, MergeAction action) {
    Seq given = values(action);
    if (given == null) return action;
    Seq values =
        action instanceof UpdateAction
            ? updated(relation, asked(given), Spark.flag(action, "fromStar"))
            : inserted(relation, asked(given));
    return Spark.with(action, new int[] {1}, new Object[] {values});
  }

  private static Seq values(Object action) {
    if (action instanceof UpdateAction) return ((UpdateAction) action).assignments();
    return action instanceof InsertAction ? ((InsertAction) action).assignments() : null;
  }

  private static boolean isCast(Expression value) {
    return value instanceof Cast && value.getTagValue(Cast$.MODULE$.BY_TABLE_INSERTION()).isDefined();
  }

  private static boolean isCast(Seq assignments) {
    if (assignments == null) return false;
    for (Object one : Door.list(assignments)) if (isCast(((Assignment) one).value())) return true;
    return false;
  }

  private static Seq asked(Seq assignments) {
    ArrayList made = new ArrayList();
    for (Object one : Door.list(assignments)) {
      Assignment assignment = (Assignment) one;
      Expression value = assignment.value();
      made.add(new Assignment(assignment.key(), isCast(value) ? ((Cast) value).child() : value));
    }
    return Door.seq(made);
  }

  private static boolean evolves(DataSourceV2Relation relation) {
    return ((LakeTable) relation.table()).evolves();
  }

  /** Names of columns that are assigned, each with the place of its value among the objects. */
  private static List assignments(Seq assignments, List objects) {
    ArrayList found = new ArrayList();
    for (Object one : Door.list(assignments)) {
      Assignment assignment = (Assignment) one;
      if (assignment.key().semanticEquals(assignment.value())) continue;
      LinkedHashMap told = new LinkedHashMap();
      told.put("column", ((Attribute) assignment.key()).name());
      expression(assignment.value(), told, objects, "value");
      found.add(told);
    }
    return found;
  }

  /** Notes where an expression is handed over, its text where it is about columns alone, and what it names. */
  private static void expression(Expression expression, Map told, List objects, String as) {
    LinkedHashMap found = new LinkedHashMap();
    found.put("at", new Integer(objects.size()));
    objects.add(expression);
    if (!SubqueryExpression.hasSubquery(expression)) {
      try {
        found.put("text", ((Expression) expression.transformUp(new Unqualified())).sql());
      } catch (RuntimeException e) {
        // Some expressions have no text; they are run and not read.
      }
    }
    ArrayList names = new ArrayList();
    scala.collection.Iterator used = expression.references().iterator();
    while (used.hasNext()) names.add(((Attribute) used.next()).name());
    found.put("names", names);
    told.put(as, found);
  }

  // Tables

  private static LogicalPlan create(V2CreateTablePlan plan) {
    Object name = ((LogicalPlan) plan).productElement(0);
    if (!(name instanceof ResolvedIdentifier)) return (LogicalPlan) plan;
    ResolvedIdentifier resolved = (ResolvedIdentifier) name;
    if (!(resolved.catalog() instanceof LakeCatalog)) return (LogicalPlan) plan;
    LakeCatalog catalog = (LakeCatalog) resolved.catalog();
    Map told = catalog.told(resolved.identifier());
    told.put("shown", resolved.identifier().toString());
    told.put("partitions", partitions(plan.partitioning()));
    TableSpec spec = (TableSpec) ((LogicalPlan) plan).productElement(3);
    told.put("properties", new HashMap(Door.map(spec.properties())));
    told.put("provider", option(spec.provider()));
    told.put("location", option(spec.location()));
    told.put("comment", option(spec.comment()));
    told.put("table-options", new HashMap(Door.map(spec.options())));
    ArrayList objects = new ArrayList();
    boolean replaces = plan instanceof ReplaceTable || plan instanceof ReplaceTableAsSelect;
    Object last;
    if (plan instanceof CreateTableAsSelect) {
      CreateTableAsSelect as = (CreateTableAsSelect) plan;
      objects.add(as.query());
      told.put("options", new HashMap(Door.map(as.writeOptions())));
      last = Boolean.valueOf(as.ignoreIfExists());
    } else if (plan instanceof ReplaceTableAsSelect) {
      ReplaceTableAsSelect as = (ReplaceTableAsSelect) plan;
      objects.add(as.query());
      told.put("options", new HashMap(Door.map(as.writeOptions())));
      last = Boolean.valueOf(as.orCreate());
    } else {
      told.put("schema", columns(plan).json());
      last = plan instanceof CreateTable
          ? Boolean.valueOf(((CreateTable) plan).ignoreIfExists())
          : Boolean.valueOf(((ReplaceTable) plan).orCreate());
    }
    told.put("replaces", Boolean.valueOf(replaces));
    told.put("creates", replaces ? last : Boolean.TRUE);
    told.put("if-not-exists", replaces ? Boolean.FALSE : last);
    return command("create", told, objects, NOTHING);
  }

  /** The columns of a table that is made, with the text of their defaults and comments. */
  private static StructType columns(V2CreateTablePlan plan) {
    return columns(Spark.columns((Seq) ((LogicalPlan) plan).productElement(1), plan));
  }

  /** Columns that the format has: none is computed. */
  static StructType columns(Column[] given) {
    for (int i = 0; i < given.length; i++)
      if (given[i].generationExpression() != null || given[i].identityColumnSpec() != null)
        Door.fail(
            "Cannot create a table with the column " + given[i].name() + ": GENERATED has no place in the format\n"
                + "Hint: Compute the value where rows are written, or in a view.",
            "unsupported", "UNSUPPORTED_FEATURE", "0A000");
    return org.apache.spark.sql.connector.catalog.CatalogV2Util.v2ColumnsToStructType(given);
  }

  private static Object option(scala.Option value) {
    return value.isDefined() ? value.get() : null;
  }

  static List partitions(Object given) {
    ArrayList found = new ArrayList();
    List terms = given instanceof Seq ? Door.list(given) : Arrays.asList((Object[]) given);
    for (Object one : terms) found.add(described((Transform) one));
    return found;
  }

  private static Map described(Transform term) {
    LinkedHashMap told = new LinkedHashMap();
    told.put("name", term.name());
    ArrayList arguments = new ArrayList();
    org.apache.spark.sql.connector.expressions.Expression[] given = term.arguments();
    for (int i = 0; i < given.length; i++) {
      if (given[i] instanceof NamedReference) arguments.add(Door.names(((NamedReference) given[i]).fieldNames()));
      else if (given[i] instanceof Literal) arguments.add(String.valueOf(((Literal) given[i]).value()));
      else arguments.add(given[i].describe());
    }
    told.put("arguments", arguments);
    return told;
  }

  /** A transform as Python describes it: its name, a number, a column. Those that Spark's writers make equal it. */
  static Transform transform(Map told) {
    String name = (String) told.get("name");
    List arguments = (List) told.get("arguments");
    NamedReference column = Spark.reference((List) arguments.get(arguments.size() - 1));
    if (name.equals("identity")) return LogicalExpressions.identity(column);
    if (name.equals("years")) return LogicalExpressions.years(column);
    if (name.equals("months")) return LogicalExpressions.months(column);
    if (name.equals("days")) return LogicalExpressions.days(column);
    if (name.equals("hours")) return LogicalExpressions.hours(column);
    if (name.equals("bucket"))
      return LogicalExpressions.bucket(((Number) arguments.get(0)).intValue(), new NamedReference[] {column});
    org.apache.spark.sql.connector.expressions.Expression[] given =
        arguments.size() == 1
            ? new org.apache.spark.sql.connector.expressions.Expression[] {column}
            : new org.apache.spark.sql.connector.expressions.Expression[] {
              Expressions.literal(arguments.get(0)), column
            };
    return Expressions.apply(name, given);
  }

  static List changes(TableChange[] changes) {
    ArrayList found = new ArrayList();
    for (int i = 0; i < changes.length; i++) found.add(described(changes[i]));
    return found;
  }

  private static Map described(TableChange change) {
    LinkedHashMap told = new LinkedHashMap();
    told.put("kind", change.getClass().getSimpleName());
    if (change instanceof TableChange.SetProperty) {
      told.put("property", ((TableChange.SetProperty) change).property());
      told.put("value", ((TableChange.SetProperty) change).value());
    } else if (change instanceof TableChange.RemoveProperty) {
      told.put("property", ((TableChange.RemoveProperty) change).property());
    } else if (change instanceof TableChange.ColumnChange) {
      told.put("column", Door.names(((TableChange.ColumnChange) change).fieldNames()));
      if (change instanceof TableChange.AddColumn) {
        TableChange.AddColumn one = (TableChange.AddColumn) change;
        told.put("type", one.dataType().json());
        told.put("nullable", Boolean.valueOf(one.isNullable()));
        told.put("comment", one.comment());
        told.put("position", position(one.position()));
        told.put("default", one.defaultValue() == null ? null : Spark.get(one.defaultValue(), "getSql"));
      } else if (change instanceof TableChange.RenameColumn) {
        told.put("to", ((TableChange.RenameColumn) change).newName());
      } else if (change instanceof TableChange.UpdateColumnType) {
        told.put("type", ((TableChange.UpdateColumnType) change).newDataType().json());
      } else if (change instanceof TableChange.UpdateColumnNullability) {
        told.put("nullable", Boolean.valueOf(((TableChange.UpdateColumnNullability) change).nullable()));
      } else if (change instanceof TableChange.UpdateColumnComment) {
        told.put("comment", ((TableChange.UpdateColumnComment) change).newComment());
      } else if (change instanceof TableChange.UpdateColumnPosition) {
        told.put("position", position(((TableChange.UpdateColumnPosition) change).position()));
      } else if (change instanceof TableChange.UpdateColumnDefaultValue) {
        told.put("default", ((TableChange.UpdateColumnDefaultValue) change).newDefaultValue());
      } else if (change instanceof TableChange.DeleteColumn) {
        told.put("if-exists", ((TableChange.DeleteColumn) change).ifExists());
      }
    } else {
      told.put("text", change.toString());
    }
    return told;
  }

  private static Object position(TableChange.ColumnPosition position) {
    if (position == null) return null;
    if (position instanceof TableChange.After) return ((TableChange.After) position).column();
    return "";
  }
}
