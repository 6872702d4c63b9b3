"""Verbs: each plans, runs and commits one change of a table."""
