"""The console: a web interface for a lake, in the process of the REST server. The command is in `cli/`."""
