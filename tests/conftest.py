"""What all tests rely on."""

from __future__ import annotations

import gc
import signal

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("tests.vm.loop_checks", "tests.vm.closed_checks")

from tests import failures  # noqa: E402 - what is imported before is not rewritten
from tests.fixtures.idle_programs import run_like_others  # noqa: E402

_KINDS = ("vm", "tools")
_LONGEST = ("test_story", "test_whole_loop", "test_applying", "test_campaign_cuts", "test_decision")
"""In this order."""

# How long an example takes says nothing on a machine that has other work; tests time nothing.
# The same code is given the same few examples each time; "make hunt" looks for others.
settings.register_profile("same", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("hunt", deadline=None, max_examples=2000)
settings.load_profile("same")

run_like_others()

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Whoever runs the tests in the background of a shell has SIGINT ignored, and every program that
    # a test starts and interrupts would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what takes longest, so that no processor is without work at the end."""
    items.sort(key=_haste)
    if config.getoption("loadgroup", default=False):
        for item in items:
            _name_group(item)


def pytest_collection_finish() -> None:
    """Keep the garbage collector from looking through all tests again and again."""
    gc.collect()
    gc.freeze()


def _name_group(item: pytest.Item) -> None:
    """Have a group's name behind an identifier, by which tests get to the same process.

    pytest-xdist 3.8 means to do that, but sets what pytest 9.2 does not look at any more; without
    it each process makes anew what the tests of a group share.
    """
    groups = {str(mark.args[0]) for mark in item.iter_markers("xdist_group")}
    suffix = f"@{'_'.join(sorted(groups))}"
    if groups and not item.nodeid.endswith(suffix):
        item._id = type(item.id).parse(item.nodeid + suffix)


def _haste(item: pytest.Item) -> tuple[int, int]:
    """Return what sorts first what takes long: guests, and of these the files of many boots."""
    kind = next((n for n, name in enumerate(_KINDS) if item.get_closest_marker(name)), len(_KINDS))
    file = item.path.stem
    return kind, _LONGEST.index(file) if file in _LONGEST else len(_LONGEST)


def pytest_configure(config: pytest.Config) -> None:
    """Have a failed run end with how to repeat what failed."""
    config.pluginmanager.register(failures.Failures(config))
