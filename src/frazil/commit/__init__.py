"""Data files to a new snapshot: actions, the retry loop, and what may go wrong between two writers. No JVM."""
