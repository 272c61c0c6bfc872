"""What went wrong in a driver, as the failure of a row."""

from __future__ import annotations

from llamasweep.engines.base import Failure, Reach
from llamasweep.engines.driven import SERVER_DIED
from llamasweep.engines.http_exchange import RequestError
from llamasweep.errors import LlamasweepError, UsageError


class ServerDiedError(LlamasweepError):
    """The server ended by itself. Its last words stand before ours on stderr."""


class ProgramError(LlamasweepError):
    """A program that a driver runs itself could not measure a cell. kind, reach: of the row's failure."""

    def __init__(self, message: str, *, kind: str, reach: Reach = "cell") -> None:
        super().__init__(message)
        self.kind, self.reach = kind, reach


_OF_THE_WHOLE_SERVER = frozenset({"not_reachable", "model_missing"})


def as_failure(problem: Exception) -> Failure:
    """Status, kind, sentence, and whether the whole server is concerned."""
    message = problem.message if isinstance(problem, LlamasweepError) else str(problem)
    if isinstance(problem, RequestError):
        reach: Reach = "load" if problem.kind in _OF_THE_WHOLE_SERVER else "cell"
        return Failure(
            status="timeout" if problem.kind == "timeout" else "failed",
            kind=problem.kind,
            message=message,
            reach=reach,
        )
    if isinstance(problem, ProgramError):
        return Failure(status="failed", kind=problem.kind, message=message, reach=problem.reach)
    if isinstance(problem, ServerDiedError):
        return Failure(status="failed", kind=SERVER_DIED, message=message, reach="load")
    if isinstance(problem, UsageError):
        return Failure(status="failed", kind="bad_argument", message=message, reach="call")
    return Failure(status="failed", kind="driver", message=message or type(problem).__name__)
