package org.apache.iceberg.spark.source;

/** The class that Spark loads for `format("org.apache.iceberg.spark.source")`. */
public class DefaultSource extends frazil.catalog.LakeSource {}
