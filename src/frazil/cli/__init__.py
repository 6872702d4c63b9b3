"""The terminal: argv and the environment in, text and exit codes out. The only room that reads the environment."""
