package iceberg;

/** Where Spark looks for `format("iceberg")`. */
public class DefaultSource extends frazil.LakeSource {}
