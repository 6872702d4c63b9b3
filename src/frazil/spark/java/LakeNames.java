package frazil;

import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;

/** In the analyser, before names are looked up: lakes that are not there are said by name. */
public class LakeNames extends org.apache.spark.sql.catalyst.rules.Rule {
  public TreeNode apply(TreeNode plan) {
    return ((LogicalPlan) plan).resolveOperatorsUp(new KnownLake());
  }

  /** A question about a name: where names without a catalog are looked up. */
  static Map told() {
    LinkedHashMap told = new LinkedHashMap();
    CatalogManager catalogs = SparkSession.active().sessionState().catalogManager();
    told.put("current", catalogs.currentCatalog().name());
    told.put("namespace", Door.names(catalogs.currentNamespace()));
    return told;
  }
}
