"""A lake as a REST catalog: requests to catalogs, scans and back. The command is in `cli/`."""
