"""Lakes and Spark sessions for tests of your own pipelines.

lake = memory_lake()                                    a lake in memory
lake = failing_lake(Fault(3, FaultKind.IO_ERROR))       the third call of storage fails

`frazil.testing.spark` has a small Spark session with a lake, `frazil.testing.fixtures` fixtures of pytest.
"""

from frazil.storage.failing import Call, FailingStorage, Fault, FaultKind, SimulatedCrash
from frazil.testing.lakes import FailingLake, failing_lake, memory_lake

__all__ = [
    "Call",
    "FailingLake",
    "FailingStorage",
    "Fault",
    "FaultKind",
    "SimulatedCrash",
    "failing_lake",
    "memory_lake",
]
