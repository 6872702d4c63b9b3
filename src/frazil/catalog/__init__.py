"""The pointer from a name to the current metadata: SQL, filesystem, memory."""
