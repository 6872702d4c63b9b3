"""The terminal: argv and environment variables in, text and exit codes out. `FRAZIL_*` variables are read here."""
