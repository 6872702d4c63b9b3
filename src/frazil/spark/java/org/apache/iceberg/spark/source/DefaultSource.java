package org.apache.iceberg.spark.source;

/** Where Spark looks for `format("org.apache.iceberg.spark.source")`. */
public class DefaultSource extends frazil.LakeSource {}
