"""What the tests that boot guests take: processor time, shown after a run, and bounded.

It is not time on the clock, so that it does not matter how busy a machine is otherwise.
"""

from __future__ import annotations

import resource

import pytest

MOST_CPU_S = 4200
"""Of the 5400 s that two processors have in the 45 minutes that all tests may take."""

_CPU_S = "vm_cpu_s"
_MOST_EXPENSIVE = 12

_started = pytest.StashKey[float]()


class VmCosts:
    """A plugin of pytest's: adds up what tests took, in whichever process they were run."""

    def __init__(self) -> None:
        self._by_test: dict[str, float] = {}

    @property
    def total_s(self) -> float:
        """What all of them took."""
        return sum(self._by_test.values())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take note of a test that is over."""
        if report.when == "teardown":
            for name, value in report.user_properties:
                if name == _CPU_S:
                    self._by_test[report.nodeid] = float(str(value))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run that took too much."""
        if self.total_s > MOST_CPU_S:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what it was, and what took most of it."""
        if not self._by_test:
            return
        words = "more than" if self.total_s > MOST_CPU_S else "of at most"
        terminalreporter.write_line(
            f"guests took {self.total_s:.0f} s of processors, {words} {MOST_CPU_S}:"
        )
        expensive = sorted(self._by_test.items(), key=lambda test: -test[1])
        for name, cost_s in expensive[:_MOST_EXPENSIVE]:
            terminalreporter.write_line(f"{cost_s:6.0f} s {name}")


def begin(item: pytest.Item) -> None:
    """Start to count, before a test's fixtures are made."""
    if item.get_closest_marker("vm"):
        item.stash[_started] = _children_cpu_s()


def end(item: pytest.Item) -> None:
    """Put what was counted into the test's last report."""
    if _started in item.stash:
        item.user_properties.append((_CPU_S, _children_cpu_s() - item.stash[_started]))


def _children_cpu_s() -> float:
    """Machines are the test's own children, and dead when it is over."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
