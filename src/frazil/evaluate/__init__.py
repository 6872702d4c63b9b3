"""Spark SQL expressions computed over Arrow, with the meaning that they have in Spark."""
