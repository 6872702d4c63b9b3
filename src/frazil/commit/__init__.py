"""Data files to a new snapshot: actions, the one retry loop, and what may go wrong between two writers. No JVM."""
