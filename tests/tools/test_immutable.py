"""Files with real attributes of chattr(1), on whatever file system the tests' files are on."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from initadvisor.bootloaders.managed_files import remove_file, write_whole
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.host.replace import forbidding_attribute
from initadvisor.transaction.log import read_transactions
from initadvisor.transaction.transactions import transactions
from tests.fixtures.owners import identify
from tests.fixtures.replaced_files import NEW, OLD, apply, held, host_of_old, wanted
from tests.fixtures.trees import host_at
from tests.fixtures.waiting import HANGS_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from initadvisor.host import Host

pytestmark = pytest.mark.tools


def chattr(*words: str | Path) -> bool:
    """Change attributes; tell whether this user may on this file system."""
    path = "/usr/sbin:/sbin:/usr/bin:/bin"
    command = ["chattr", *map(str, words)]
    done = subprocess.run(
        command, check=False, capture_output=True, timeout=HANGS_S, env={"PATH": path}
    )
    return done.returncode == 0


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine with an image and a configuration."""
    return host_of_old(tmp_path, monkeypatch)


@pytest.fixture
def give() -> Iterator[Callable[[str, Path], bool]]:
    """Give an attribute until the test is over; tell whether that can be done here."""
    given: list[tuple[str, Path]] = []

    def do(letter: str, path: Path) -> bool:
        done = chattr(f"+{letter}", path)
        if done:
            given.append((letter, path))
        return done

    yield do
    for letter, path in given:
        chattr(f"-{letter}", path)


@pytest.mark.parametrize("letter", ["i", "a"])
@pytest.mark.parametrize("name", ["/boot/initrd.img", "/boot"])
def test_replacing_and_going_back_are_refused_with_the_way_out(
    host: Host, give: Callable[[str, Path], bool], letter: str, name: str
) -> None:
    path = host.path(name)
    with transactions(host) as engine:
        done = apply(engine)
        assert forbidding_attribute(path) == ""
        if give(letter, path):
            assert forbidding_attribute(path) == letter
            with pytest.raises(UnsafeError, match=str(path)) as caught:
                engine.undo(done, reason="test")
            assert caught.value.hint == f"chattr -{letter} {path} ends that"
            with pytest.raises(UnsafeError, match=str(path)) as caught:
                engine.begin(wanted(OLD), purpose="test")
            assert caught.value.hint == f"chattr -{letter} {path} ends that"
            assert held(host).items() >= NEW.items()
            assert read_transactions(host) == (done,)
            assert chattr(f"-{letter}", path)
        engine.undo(done, reason="test")
    assert held(host) == OLD


def test_what_becomes_immutable_while_a_boot_is_waited_for_undoes_it(
    host: Host, give: Callable[[str, Path], bool]
) -> None:
    """The kernel's own error is told, of the file that was to be replaced."""
    image = host.path("/boot/initrd.img")
    with transactions(host) as engine:
        ready = engine.verify(engine.begin(wanted(), purpose="test"))
        if give("i", image):
            with pytest.raises(
                InitadvisorError, match=f"{image}.*Operation not permitted"
            ) as caught:
                engine.commit(ready)
            assert caught.value.hint == (
                f"{image} is immutable, as lsattr -d shows; chattr -i {image} ends that"
            )
            engine.recover()
        else:
            engine.undo(ready, reason="test")
    assert held(host) == OLD


def test_an_entry_of_ours_says_so_too(tmp_path: Path, give: Callable[[str, Path], bool]) -> None:
    entry = tmp_path / "entries/a-initadvisor-1-trial.conf"
    entry.parent.mkdir()
    entry.write_text("title x\n")
    host = host_at(tmp_path / "system")
    identify(host.root)
    if give("i", entry):
        with pytest.raises(InitadvisorError, match=f"{entry}: Operation not") as written:
            write_whole(host, entry, b"new")
        with pytest.raises(InitadvisorError, match=f"{entry}: Operation not") as removed:
            remove_file(entry)
        assert {f"chattr -i {entry}" in str(e.value.hint) for e in (written, removed)} == {True}
        assert os.listdir(entry.parent) == [entry.name]  # noqa: PTH208  # nothing unfinished is left
        assert chattr("-i", entry)
    write_whole(host, entry, b"new")
    assert entry.read_bytes() == b"new"
