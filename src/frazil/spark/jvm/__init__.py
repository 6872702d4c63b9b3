"""Calls between Python and the driver's JVM."""
