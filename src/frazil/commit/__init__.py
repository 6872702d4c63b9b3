"""From data files to a new snapshot: actions, the retry loop, and conflicts between writers. No JVM."""
