"""The REST catalog server: serves a lake to REST clients, including scan planning. The command is in `cli/`."""
