package frazil.rules;

import frazil.Door;
import frazil.Request;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext;
import org.apache.spark.sql.catalyst.analysis.UnresolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTable;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableOrView;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import scala.collection.immutable.Seq;

/** Reports names that begin with an unknown catalog. */
public class KnownLake extends scala.runtime.AbstractPartialFunction {
  public boolean isDefinedAt(Object node) {
    return node instanceof UnresolvedRelation
        || node instanceof InsertIntoStatement
        || node instanceof V2WriteCommand
        || node instanceof UnresolvedTable
        || node instanceof UnresolvedTableOrView
        || node instanceof UnresolvedIdentifier;
  }

  public Object applyOrElse(Object node, scala.Function1 other) {
    if (node instanceof UnresolvedTable) check(((UnresolvedTable) node).multipartIdentifier());
    if (node instanceof UnresolvedTableOrView) check(((UnresolvedTableOrView) node).multipartIdentifier());
    if (node instanceof UnresolvedIdentifier) check(((UnresolvedIdentifier) node).nameParts());
    if (node instanceof InsertIntoStatement) target(((InsertIntoStatement) node).table());
    if (node instanceof V2WriteCommand) target(((LogicalPlan) node).productElement(0));
    if (!(node instanceof UnresolvedRelation)) return isDefinedAt(node) ? node : other.apply(node);
    check(((UnresolvedRelation) node).multipartIdentifier());
    return node;
  }

  private static void target(Object table) {
    if (table instanceof UnresolvedRelation) check(((UnresolvedRelation) table).multipartIdentifier());
  }

  /** Spark's own catalog has names of at most two parts, so a longer one begins with a catalog. */
  private static void check(Seq name) {
    if (name.size() < 3) return;
    CatalogManager catalogs = SparkSession.active().sessionState().catalogManager();
    if (!catalogs.currentCatalog().name().equals("spark_catalog")) return;
    if (!AnalysisContext.get().catalogAndNamespace().isEmpty()) return;
    if (catalogs.isCatalogRegistered((String) name.head())) return;
    new Request("no-lake").with("name", Door.list(name)).ask();
  }
}
