package frazil.rules;

import frazil.Spark;
import frazil.catalog.LakeChanges;
import frazil.catalog.LakeTable;
import frazil.stream.LakeStreams;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;

/** Replaces the streaming relation of `format("iceberg")` by the lake's table as a stream. */
public class StreamRelation extends scala.runtime.AbstractPartialFunction {
  public static LakeTable table(Object node) {
    if (!(node instanceof StreamingRelationV2)) return null;
    LakeTable table = LakeChanges.of(((StreamingRelationV2) node).table());
    return table != null && table.stream() != null ? table : null;
  }

  public boolean isDefinedAt(Object node) {
    return table(node) != null;
  }

  public Object applyOrElse(Object node, scala.Function1 other) {
    LakeTable table = table(node);
    if (table == null) return other.apply(node);
    StreamingRelationV2 relation = (StreamingRelationV2) node;
    LogicalPlan plan = LakeStreams.relation(table, false);
    return Bind.under(Spark.named(plan, relation), relation.output());
  }
}
