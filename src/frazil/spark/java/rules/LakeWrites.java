package frazil.rules;

import frazil.Door;
import frazil.Request;
import frazil.Spark;
import frazil.catalog.LakeCatalog;
import frazil.catalog.LakeTable;
import frazil.stream.LakeSink;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
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
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.Cast;
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

/** An analyser rule that runs last: replaces changes of a lake by commands that Python carries out. */
public class LakeWrites extends org.apache.spark.sql.catalyst.rules.Rule {
  private static final StructType NOTHING = new StructType();
  private static final StructType AFFECTED = NOTHING.add("num_affected_rows", "bigint");
  private static final StructType INSERTED = AFFECTED.add("num_inserted_rows", "bigint");
  private static final StructType MERGED =
      AFFECTED.add("num_updated_rows", "bigint").add("num_deleted_rows", "bigint").add("num_inserted_rows", "bigint");

  public TreeNode apply(TreeNode node) {
    LogicalPlan plan = (LogicalPlan) node;
    if (!plan.resolved()) return plan;
    return plan instanceof Union ? several((Union) plan) : change(plan, null);
  }

  /** Several inserts of one source run in order, each with what was read before the first. */
  private static LogicalPlan several(Union plan) {
    ArrayList plans = new ArrayList();
    String statement = java.util.UUID.randomUUID().toString();
    boolean ours = false;
    boolean all = true;
    for (Object one : Door.list(plan.children())) {
      LogicalPlan changed = change((LogicalPlan) one, statement);
      if (changed instanceof LakeCommand) ours = true;
      else all = false;
      plans.add(changed);
    }
    if (!ours) return plan;
    return all ? new LakeCommands(plans) : (LogicalPlan) plan.withNewChildren(Door.seq(plans));
  }

  private static LogicalPlan change(LogicalPlan plan, String statement) {
    if (plan instanceof AppendData) return append((AppendData) plan, statement);
    if (plan instanceof OverwriteByExpression) return overwrite((OverwriteByExpression) plan, statement);
    if (plan instanceof OverwritePartitionsDynamic) return partitions((OverwritePartitionsDynamic) plan, statement);
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

  public static DataSourceV2Relation target(Object plan) {
    LogicalPlan relation = LakeRelations.relation((LogicalPlan) plan);
    if (!(relation instanceof DataSourceV2Relation)) return null;
    return ((DataSourceV2Relation) relation).table() instanceof LakeTable ? (DataSourceV2Relation) relation : null;
  }

  /** Collects the keys of the tables that a plan reads. */
  private static void reads(TreeNode node, Set into) {
    if (node instanceof HiddenColumns) into.add(((HiddenColumns) node).key());
    for (Object one : Door.list(node.children())) reads((TreeNode) one, into);
    if (node instanceof LogicalPlan)
      for (Object one : Door.list(((LogicalPlan) node).expressions())) reads((TreeNode) one, into);
    if (node instanceof PlanExpression) reads((TreeNode) ((PlanExpression) node).plan(), into);
  }

  /** Makes a command that names the tables it was computed from: changes since they were read are conflicts. */
  private static LogicalPlan command(Request request, List target, List objects, StructType columns) {
    HashSet keys = new HashSet();
    for (Object one : objects) if (one instanceof TreeNode) reads((TreeNode) one, keys);
    return new LakeCommand(request.verb(), request.with("reads", keys), target, objects, columns);
  }

  private static Request ofRelation(String verb, DataSourceV2Relation relation) {
    return ofRelation(verb, relation, Collections.EMPTY_MAP);
  }

  private static Request ofRelation(String verb, DataSourceV2Relation relation, Map options) {
    HashMap all = new HashMap(relation.options().asCaseSensitiveMap());
    all.putAll(options);
    return ((LakeTable) relation.table()).ofTable(verb).with("options", all);
  }

  private static List name(DataSourceV2Relation relation) {
    return ((LakeTable) relation.table()).fullName();
  }

  /** The first object of a change: the table's columns, by the ids that expressions use. */
  private static ArrayList columns(DataSourceV2Relation relation) {
    ArrayList objects = new ArrayList();
    objects.add(relation.output());
    return objects;
  }

  private static LogicalPlan append(AppendData plan, String statement) {
    DataSourceV2Relation relation = target(plan.productElement(0));
    if (relation == null) return plan;
    Request request = ofRelation("append", relation, Door.map(plan.writeOptions()));
    return write(request, relation, plan, objects(relation, plan), statement);
  }

  private static LogicalPlan overwrite(OverwriteByExpression plan, String statement) {
    DataSourceV2Relation relation = target(plan.productElement(0));
    if (relation == null) return plan;
    ArrayList objects = objects(relation, plan);
    Request request =
        ofRelation("overwrite", relation, Door.map(plan.writeOptions()))
            .with("where", expression(plan.deleteExpr(), objects));
    return write(request, relation, plan, objects, statement);
  }

  private static LogicalPlan partitions(OverwritePartitionsDynamic plan, String statement) {
    DataSourceV2Relation relation = target(plan.productElement(0));
    if (relation == null) return plan;
    Request request = ofRelation("overwrite-partitions", relation, Door.map(plan.writeOptions()));
    return write(request, relation, plan, objects(relation, plan), statement);
  }

  private static ArrayList objects(DataSourceV2Relation relation, V2WriteCommand plan) {
    ArrayList objects = columns(relation);
    objects.add(plan.query());
    return objects;
  }

  private static LogicalPlan write(
      Request request, DataSourceV2Relation relation, V2WriteCommand plan, List objects, String statement) {
    request
        .with("by-name", Boolean.valueOf(plan.isByName()))
        .with("any-schema", Boolean.valueOf(((LakeTable) relation.table()).takesAnySchema()))
        .with("evolves", Boolean.valueOf(evolves(relation)))
        .with("statement", statement);
    return command(request, name(relation), objects, INSERTED);
  }

  private static LogicalPlan delete(DeleteFromTable plan) {
    DataSourceV2Relation relation = target(plan.table());
    if (relation == null) return plan;
    ArrayList objects = columns(relation);
    Request request = ofRelation("delete", relation).with("where", expression(plan.condition(), objects));
    return command(request, name(relation), objects, AFFECTED);
  }

  private static LogicalPlan truncate(TruncateTable plan) {
    if (!(plan.table() instanceof ResolvedTable)) return plan;
    if (!(((ResolvedTable) plan.table()).table() instanceof LakeTable)) return plan;
    LakeTable table = (LakeTable) ((ResolvedTable) plan.table()).table();
    return new LakeCommand("truncate", table.ofTable("truncate"), table.fullName(), new ArrayList(), NOTHING);
  }

  private static LogicalPlan analyze(LogicalPlan plan, LogicalPlan child) {
    if (!(child instanceof ResolvedTable) || !(((ResolvedTable) child).table() instanceof LakeTable)) return plan;
    LakeTable table = (LakeTable) ((ResolvedTable) child).table();
    Request request = table.ofTable("analyze");
    if (plan instanceof AnalyzeTable) {
      request
          .with("partition", Boolean.valueOf(!((AnalyzeTable) plan).partitionSpec().isEmpty()))
          .with("noscan", Boolean.valueOf(((AnalyzeTable) plan).noScan()));
    } else if (((AnalyzeColumn) plan).columnNames().isDefined()) {
      request.with("columns", Door.list(((AnalyzeColumn) plan).columnNames().get()));
    }
    return new LakeCommand("analyze", request, table.fullName(), new ArrayList(), NOTHING);
  }

  private static LogicalPlan update(UpdateTable plan) {
    DataSourceV2Relation relation = target(plan.table());
    if (relation == null) return plan;
    ArrayList objects = columns(relation);
    Request request =
        ofRelation("update", relation)
            .with("values", assignments(updated(relation, plan.assignments(), false), objects))
            .with("where", expression(plan.condition(), objects));
    return command(request, name(relation), objects, AFFECTED);
  }

  private static LogicalPlan merge(MergeIntoTable plan) {
    DataSourceV2Relation relation = target(plan.targetTable());
    if (relation == null) return plan;
    ArrayList objects = columns(relation);
    objects.add(plan.sourceTable());
    Request request = ofRelation("merge", relation).with("on", expression(plan.mergeCondition(), objects));
    ArrayList clauses = new ArrayList();
    clauses(relation, "matched", plan.matchedActions(), clauses, objects);
    clauses(relation, "not_matched", plan.notMatchedActions(), clauses, objects);
    clauses(relation, "not_matched_by_source", plan.notMatchedBySourceActions(), clauses, objects);
    return command(request.with("clauses", clauses), name(relation), objects, MERGED);
  }

  private static void clauses(DataSourceV2Relation relation, String when, Seq actions, List into, List objects) {
    for (Object one : Door.list(actions)) {
      MergeAction action = (MergeAction) one;
      LinkedHashMap clause = new LinkedHashMap();
      clause.put("when", when);
      clause.put("where", expression(action.condition(), objects));
      if (action instanceof DeleteAction) {
        clause.put("do", "delete");
      } else if (action instanceof UpdateAction) {
        clause.put("do", "update");
        Seq values = updated(relation, ((UpdateAction) action).assignments(), Spark.flag(action, "fromStar"));
        clause.put("values", assignments(values, objects));
      } else {
        clause.put("do", "insert");
        clause.put("values", assignments(inserted(relation, ((InsertAction) action).assignments()), objects));
      }
      into.add(clause);
    }
  }

  /** The table's own columns, without metadata columns that a query named. */
  private static Seq own(DataSourceV2Relation relation) {
    return (Seq) relation.output().take(((LakeTable) relation.table()).schema().size());
  }

  /** Returns a value for every column, converted by Spark's rules; if the schema evolves, structs may lack fields. */
  private static Seq updated(DataSourceV2Relation relation, Seq assignments, boolean isStar) {
    Boolean mayLack = Boolean.valueOf(evolves(relation));
    Object[] arguments = {own(relation), assignments, Boolean.valueOf(isStar && mayLack.booleanValue()), mayLack};
    return Spark.align("alignUpdateAssignments", arguments);
  }

  private static Seq inserted(DataSourceV2Relation relation, Seq assignments) {
    Object[] arguments = {own(relation), assignments, Boolean.valueOf(evolves(relation))};
    return Spark.align("alignInsertAssignments", arguments);
  }

  /**
   * Returns an UPDATE or MERGE whose structs are converted by field name. Spark converts those of tables without its
   * row-level operations by position; that is undone.
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
      ArrayList aligned = new ArrayList();
      for (Object one : Door.list(actions[i])) aligned.add(aligned(relation, (MergeAction) one));
      actions[i] = Door.seq(aligned);
    }
    return (LogicalPlan) Spark.with(plan, new int[] {3, 4, 5}, actions);
  }

  private static Object aligned(DataSourceV2Relation relation, MergeAction action) {
    Seq assignments = values(action);
    if (assignments == null) return action;
    Seq values =
        action instanceof UpdateAction
            ? updated(relation, asked(assignments), Spark.flag(action, "fromStar"))
            : inserted(relation, asked(assignments));
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
    ArrayList uncast = new ArrayList();
    for (Object one : Door.list(assignments)) {
      Assignment assignment = (Assignment) one;
      Expression value = assignment.value();
      uncast.add(new Assignment(assignment.key(), isCast(value) ? ((Cast) value).child() : value));
    }
    return Door.seq(uncast);
  }

  private static boolean evolves(DataSourceV2Relation relation) {
    return ((LakeTable) relation.table()).evolves();
  }

  /** The assigned columns, each with its value. */
  private static List assignments(Seq assignments, List objects) {
    ArrayList sets = new ArrayList();
    for (Object one : Door.list(assignments)) {
      Assignment assignment = (Assignment) one;
      if (assignment.key().semanticEquals(assignment.value())) continue;
      LinkedHashMap set = new LinkedHashMap();
      set.put("column", ((Attribute) assignment.key()).name());
      set.put("value", expression(assignment.value(), objects));
      sets.add(set);
    }
    return sets;
  }

  private static Map expression(scala.Option expression, List objects) {
    return expression.isDefined() ? expression((Expression) expression.get(), objects) : null;
  }

  /** Adds an expression to the objects; returns its index, the columns that it names, and its text without subqueries. */
  private static Map expression(Expression expression, List objects) {
    LinkedHashMap described = new LinkedHashMap();
    described.put("index", new Integer(objects.size()));
    objects.add(expression);
    if (!SubqueryExpression.hasSubquery(expression)) {
      try {
        described.put("text", ((Expression) expression.transformUp(new Unqualified())).sql());
      } catch (RuntimeException e) {
        // Some expressions have no SQL; they are evaluated all the same.
      }
    }
    ArrayList names = new ArrayList();
    scala.collection.Iterator used = expression.references().iterator();
    while (used.hasNext()) names.add(((Attribute) used.next()).name());
    described.put("names", names);
    return described;
  }

  // Tables

  private static LogicalPlan create(V2CreateTablePlan plan) {
    Object name = ((LogicalPlan) plan).productElement(0);
    if (!(name instanceof ResolvedIdentifier)) return (LogicalPlan) plan;
    ResolvedIdentifier resolved = (ResolvedIdentifier) name;
    if (!(resolved.catalog() instanceof LakeCatalog)) return (LogicalPlan) plan;
    LakeCatalog catalog = (LakeCatalog) resolved.catalog();
    TableSpec spec = (TableSpec) ((LogicalPlan) plan).productElement(3);
    Request request =
        catalog
            .ofName("create", resolved.identifier())
            .with("partitions", partitions(plan.partitioning()))
            .with("properties", new HashMap(Door.map(spec.properties())))
            .with("provider", option(spec.provider()))
            .with("location", option(spec.location()))
            .with("comment", option(spec.comment()))
            .with("table-options", new HashMap(Door.map(spec.options())));
    ArrayList objects = new ArrayList();
    boolean replaces = plan instanceof ReplaceTable || plan instanceof ReplaceTableAsSelect;
    Object last;
    if (plan instanceof CreateTableAsSelect) {
      CreateTableAsSelect as = (CreateTableAsSelect) plan;
      objects.add(as.query());
      request.with("options", new HashMap(Door.map(as.writeOptions())));
      last = Boolean.valueOf(as.ignoreIfExists());
    } else if (plan instanceof ReplaceTableAsSelect) {
      ReplaceTableAsSelect as = (ReplaceTableAsSelect) plan;
      objects.add(as.query());
      request.with("options", new HashMap(Door.map(as.writeOptions())));
      last = Boolean.valueOf(as.orCreate());
    } else {
      request.with("schema", columns(plan).json());
      last = plan instanceof CreateTable
          ? Boolean.valueOf(((CreateTable) plan).ignoreIfExists())
          : Boolean.valueOf(((ReplaceTable) plan).orCreate());
    }
    request
        .with("replaces", Boolean.valueOf(replaces))
        .with("creates", replaces ? last : Boolean.TRUE)
        .with("if-not-exists", replaces ? Boolean.FALSE : last);
    return command(request, catalog.fullName(resolved.identifier()), objects, NOTHING);
  }

  /** The columns of a new table, with their defaults and comments. */
  private static StructType columns(V2CreateTablePlan plan) {
    return columns(Spark.columns((Seq) ((LogicalPlan) plan).productElement(1), plan));
  }

  /** Refuses generated columns, which the format does not have. */
  public static StructType columns(Column[] columns) {
    for (int i = 0; i < columns.length; i++)
      if (columns[i].generationExpression() != null || columns[i].identityColumnSpec() != null)
        Door.fail(
            "Cannot create a table with the column " + columns[i].name() + ": GENERATED has no place in the format\n"
                + "Hint: Compute the value where rows are written, or in a view.",
            "unsupported", "UNSUPPORTED_FEATURE", "0A000");
    return org.apache.spark.sql.connector.catalog.CatalogV2Util.v2ColumnsToStructType(columns);
  }

  private static Object option(scala.Option value) {
    return value.isDefined() ? value.get() : null;
  }

  public static List partitions(Object transforms) {
    ArrayList partitions = new ArrayList();
    List terms = transforms instanceof Seq ? Door.list(transforms) : Arrays.asList((Object[]) transforms);
    for (Object one : terms) partitions.add(term((Transform) one));
    return partitions;
  }

  private static Map term(Transform term) {
    LinkedHashMap described = new LinkedHashMap();
    described.put("name", term.name());
    ArrayList arguments = new ArrayList();
    org.apache.spark.sql.connector.expressions.Expression[] operands = term.arguments();
    for (int i = 0; i < operands.length; i++) {
      if (operands[i] instanceof NamedReference) arguments.add(Door.names(((NamedReference) operands[i]).fieldNames()));
      else if (operands[i] instanceof Literal) arguments.add(String.valueOf(((Literal) operands[i]).value()));
      else arguments.add(operands[i].describe());
    }
    described.put("arguments", arguments);
    return described;
  }

  /** Returns a transform that Python describes by name, number and column; equal to those of Spark's writers. */
  public static Transform transform(Map term) {
    String name = (String) term.get("name");
    List arguments = (List) term.get("arguments");
    NamedReference column = Spark.reference((List) arguments.get(arguments.size() - 1));
    if (name.equals("identity")) return LogicalExpressions.identity(column);
    if (name.equals("years")) return LogicalExpressions.years(column);
    if (name.equals("months")) return LogicalExpressions.months(column);
    if (name.equals("days")) return LogicalExpressions.days(column);
    if (name.equals("hours")) return LogicalExpressions.hours(column);
    if (name.equals("bucket"))
      return LogicalExpressions.bucket(((Number) arguments.get(0)).intValue(), new NamedReference[] {column});
    org.apache.spark.sql.connector.expressions.Expression[] operands =
        arguments.size() == 1
            ? new org.apache.spark.sql.connector.expressions.Expression[] {column}
            : new org.apache.spark.sql.connector.expressions.Expression[] {
              Expressions.literal(arguments.get(0)), column
            };
    return Expressions.apply(name, operands);
  }

  public static List changes(TableChange[] changes) {
    ArrayList described = new ArrayList();
    for (int i = 0; i < changes.length; i++) described.add(change(changes[i]));
    return described;
  }

  private static Map change(TableChange change) {
    LinkedHashMap described = new LinkedHashMap();
    String kind = change.getClass().getSimpleName();
    described.put("kind", kind);
    if (change instanceof TableChange.SetProperty) {
      described.put("property", ((TableChange.SetProperty) change).property());
      described.put("value", ((TableChange.SetProperty) change).value());
    } else if (change instanceof TableChange.RemoveProperty) {
      described.put("property", ((TableChange.RemoveProperty) change).property());
    } else if (change instanceof TableChange.ColumnChange) {
      described.put("column", Door.names(((TableChange.ColumnChange) change).fieldNames()));
      if (change instanceof TableChange.AddColumn) {
        TableChange.AddColumn one = (TableChange.AddColumn) change;
        described.put("type", one.dataType().json());
        described.put("nullable", Boolean.valueOf(one.isNullable()));
        described.put("comment", one.comment());
        described.put("position", position(one.position()));
        described.put("default", one.defaultValue() == null ? null : Spark.get(one.defaultValue(), "getSql"));
      } else if (change instanceof TableChange.RenameColumn) {
        described.put("to", ((TableChange.RenameColumn) change).newName());
      } else if (change instanceof TableChange.UpdateColumnType) {
        described.put("type", ((TableChange.UpdateColumnType) change).newDataType().json());
      } else if (change instanceof TableChange.UpdateColumnNullability) {
        described.put("nullable", Boolean.valueOf(((TableChange.UpdateColumnNullability) change).nullable()));
      } else if (change instanceof TableChange.UpdateColumnComment) {
        described.put("comment", ((TableChange.UpdateColumnComment) change).newComment());
      } else if (change instanceof TableChange.UpdateColumnPosition) {
        described.put("position", position(((TableChange.UpdateColumnPosition) change).position()));
      } else if (change instanceof TableChange.UpdateColumnDefaultValue) {
        described.put("default", ((TableChange.UpdateColumnDefaultValue) change).newDefaultValue());
      } else if (change instanceof TableChange.DeleteColumn) {
        described.put("if-exists", ((TableChange.DeleteColumn) change).ifExists());
      } else {
        return other(kind);
      }
    } else {
      return other(kind);
    }
    return described;
  }

  private static Map other(String name) {
    LinkedHashMap described = new LinkedHashMap();
    described.put("kind", "OtherChange");
    described.put("name", name);
    return described;
  }

  private static Object position(TableChange.ColumnPosition position) {
    if (position == null) return null;
    if (position instanceof TableChange.After) return ((TableChange.After) position).column();
    return "";
  }
}
