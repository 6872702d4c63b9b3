"""Predicates over rows, partitions and metrics."""
