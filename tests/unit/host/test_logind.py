"""What systemd-logind says of users and of inhibitors, and what it does not say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import InitadvisorError, ProgramError
from initadvisor.host.logind import Inhibitor, logged_in_users, shutdown_inhibitors
from tests.fakes.runner import FakeRunner
from tests.fixtures.logind import with_inhibitors, with_nobody, with_sessions
from tests.fixtures.trees import host_at

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from initadvisor.host import Host


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A host where nobody is logged in."""
    made = host_at(tmp_path)
    with_nobody(programs(made))
    return made


def programs(host: Host) -> FakeRunner:
    assert isinstance(host.runner, FakeRunner)
    return host.runner


def test_nobody_is_logged_in_and_nothing_is_held(host: Host) -> None:
    assert (logged_in_users(host), shutdown_inhibitors(host)) == ({}, ())


@pytest.mark.parametrize("mode", ["block", "block-weak"])
@pytest.mark.parametrize("what", ["shutdown", "shutdown:sleep", "idle:shutdown"])
def test_what_blocks_a_shutdown_is_told(host: Host, what: str, mode: str) -> None:
    with_inhibitors(programs(host), (what, mode))
    assert shutdown_inhibitors(host) == (Inhibitor(who="holder 1", why="work"),)


@pytest.mark.parametrize(
    ("what", "mode"),
    [("shutdown", "delay"), ("sleep", "block"), ("handle-power-key", "block"), ("idle", "block")],
)
def test_what_only_delays_it_or_blocks_something_else_is_not(
    host: Host, what: str, mode: str
) -> None:
    with_inhibitors(programs(host), (what, mode))
    assert shutdown_inhibitors(host) == ()


@pytest.mark.parametrize("kind", ["user", "user-early", "user-incomplete", "user-light"])
def test_users_are_told_by_their_sessions(host: Host, kind: str) -> None:
    with_sessions(
        programs(host), (1000, "alice", kind), (1001, "bob", "user"), (1000, "alice", kind)
    )
    assert logged_in_users(host) == {1000: "alice", 1001: "bob"}


@pytest.mark.parametrize("kind", ["greeter", "lock-screen", "background", "manager"])
def test_a_session_that_is_no_user_s_is_none(host: Host, kind: str) -> None:
    with_sessions(programs(host), (110, "gdm", kind))
    assert logged_in_users(host) == {}


@pytest.mark.parametrize("ask", [logged_in_users, shutdown_inhibitors])
@pytest.mark.parametrize(
    "answer", ["", "{}", "[]", '{"data": 1}', '{"data": [[1]]}', '{"data": [[["a", "b"]]]}']
)
def test_an_answer_that_is_not_understood_is_an_error(
    host: Host, ask: Callable[[Host], object], answer: str
) -> None:
    programs(host).answer("busctl", answer)
    with pytest.raises(InitadvisorError, match="is not understood"):
        ask(host)


@pytest.mark.parametrize("ask", [logged_in_users, shutdown_inhibitors])
def test_without_logind_it_is_an_error(host: Host, ask: Callable[[Host], object]) -> None:
    programs(host).answer("busctl", error=ProgramError("cannot run busctl: not installed"))
    with pytest.raises(InitadvisorError, match="not installed"):
        ask(host)
