"""systemd-logind's word on who is logged in and what keeps the machine from shutting down.

Over D-Bus; see org.freedesktop.login1(5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from initadvisor.core.errors import InitadvisorError
from initadvisor.core.plain_values import from_json

if TYPE_CHECKING:
    from initadvisor.host import Host


_TIMEOUT_S = 30.0
_SERVICE = "org.freedesktop.login1"
_MANAGER = (_SERVICE, "/org/freedesktop/login1", "org.freedesktop.login1.Manager")
_NOT_UNDERSTOOD = "systemd-logind's answer is not understood"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inhibitor:
    """A lock that is held on shutting down: ``who`` holds it, and ``why``."""

    who: str
    why: str


def shutdown_inhibitors(host: Host) -> tuple[Inhibitor, ...]:
    """Return what blocks a shutdown, whoever holds it; what only delays one is none of it.

    logind lets root pass a lock of root's own, which package managers hold (seen with 252), so that
    it has to be asked. Raises ``InitadvisorError`` where that is not told.
    """
    try:
        return tuple(
            Inhibitor(who=who, why=why)
            for what, who, why, mode, _, _ in _called(host, "ListInhibitors")
            if mode.startswith("block") and "shutdown" in what.split(":")
        )
    except (ValueError, TypeError, AttributeError) as err:
        msg = f"cannot tell what keeps the machine from shutting down: {_NOT_UNDERSTOOD}"
        raise InitadvisorError(msg) from err


def logged_in_users(host: Host) -> dict[int, str]:
    """Return who is logged in, by numbers and names; greeters and services are nobody.

    Raises ``InitadvisorError`` where that is not told, also for a session that has just ended.
    """
    try:
        return {
            number: name
            for _, number, name, _, path in _called(host, "ListSessions")
            if _class_of(host, path).startswith("user")
        }
    except (ValueError, TypeError, AttributeError) as err:
        msg = f"cannot tell who is logged in: {_NOT_UNDERSTOOD}"
        raise InitadvisorError(msg) from err


def _class_of(host: Host, session: str) -> str:
    class_of = _asked(
        host, "get-property", _SERVICE, session, "org.freedesktop.login1.Session", "Class"
    )
    return str(class_of)


def _called(host: Host, method: str) -> Any:  # noqa: ANN401 - whoever asks unpacks it
    [listed] = _asked(host, "call", *_MANAGER, method)
    return listed


def _asked(host: Host, *words: str) -> Any:  # noqa: ANN401 - whoever asks unpacks it
    done = host.runner.run(["busctl", "--json=short", *words], timeout_s=_TIMEOUT_S)
    answer = from_json(done.stdout)
    if not isinstance(answer, dict) or "data" not in answer:
        msg = "no data"
        raise ValueError(msg)
    return answer["data"]
