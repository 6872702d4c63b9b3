"""The console: a lake in the browser, beside the REST server and in its process. The command is in `cli/`."""
