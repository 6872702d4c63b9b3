"""What Spark raises, as frazil's errors: the cause first, without a hundred lines of Java.

A task that fails says why at the bottom of several wrappings. Errors that frazil's own code raised there, in a Python
worker or by `raise_error` in a generated expression, come back as what they were; everything else is an EngineError
whose first line is the innermost reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, ParseException, PySparkException

from frazil import errors
from frazil.errors import EngineError, FrazilError, InvalidRequestError, SchemaMismatchError

_MAX_REASON = 1000
_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\] (.*?)(?: SQLSTATE: \w+)?\s*$", re.DOTALL)
_OURS = re.compile(r"^frazil\.errors\.(\w+): (.*)$", re.MULTILINE)
_CAUSE = re.compile(r"^Caused by: (.*)$", re.MULTILINE)


@contextmanager
def engine_errors(what: str) -> Iterator[None]:
    """Turn what Spark raises into an error of frazil's; `what` goes after `Cannot`."""
    try:
        yield
    except FrazilError:
        raise
    except (PySparkException, Py4JError) as error:
        raise _translate(what, error) from error


def _translate(what: str, error: Exception) -> FrazilError:
    text = str(error)
    head = text.split("\n\nJVM stacktrace:", maxsplit=1)[0].split("JVM stacktrace:", maxsplit=1)[0].strip()
    ours = list(_OURS.finditer(text))
    if ours:
        kind = getattr(errors, ours[-1].group(1), EngineError)
        message = ours[-1].group(2).strip()
        known = kind if isinstance(kind, type) and issubclass(kind, FrazilError) else EngineError
        return known(message)
    raised = _RAISED.search(head)
    if raised is not None and raised.group(1).startswith("Cannot "):
        return SchemaMismatchError(raised.group(1).strip())
    if isinstance(error, AnalysisException | ParseException):
        return InvalidRequestError(f"Cannot {what}: {head[:_MAX_REASON]}")
    causes = _CAUSE.findall(text)
    reason = head if not isinstance(error, Py4JError) or not causes else causes[-1]
    lines = [line for line in reason.strip().splitlines() if not line.lstrip().startswith("at ")]
    shown = "\n".join(lines)[:_MAX_REASON] or type(error).__name__
    return EngineError(f"Cannot {what}: Spark failed: {shown}")
