"""What the contract suites share: a PostgreSQL server where there is one."""

from tests.postgres_server import postgres_server

__all__ = ["postgres_server"]
