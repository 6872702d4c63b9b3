package iceberg;

/** The class that Spark loads for `format("iceberg")`. */
public class DefaultSource extends frazil.catalog.LakeSource {}
