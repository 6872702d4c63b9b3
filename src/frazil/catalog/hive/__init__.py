"""The Hive Metastore as a catalog, spoken to by Thrift without Java and without a library."""
