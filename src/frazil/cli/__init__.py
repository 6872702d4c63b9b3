"""The terminal: argv and the environment in, text and exit codes out. Its variables (`FRAZIL_*`) are read here."""
