"""From Python to the JVM of the driver and back."""
