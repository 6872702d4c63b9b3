"""What `attach` gives a Spark session: lakes as catalogs of Spark's own."""
