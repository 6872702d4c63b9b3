"""From a snapshot to scan tasks, without a JVM and without reading data."""
