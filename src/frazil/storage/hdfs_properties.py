"""The properties that say how HDFS is reached, and the schemes of its locations."""

from __future__ import annotations

from typing import Final

ENDPOINT: Final = "webhdfs.endpoint"
USER: Final = ("webhdfs.user", "hdfs.user")
TOKEN: Final = "webhdfs.delegation-token"
DATA_NODES: Final = "webhdfs.data-nodes"
HDFS_SCHEMES: Final = ("hdfs", "webhdfs", "swebhdfs")
PROPERTIES: Final = frozenset({ENDPOINT, *USER, TOKEN, DATA_NODES})
"""Every property that is looked at."""
