"""Package managers wait for us and we for them, by the locks that they have themselves."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import InitadvisorError, NeedsRootError
from initadvisor.host import Host
from initadvisor.host.package_managers import (
    busy_package_managers,
    clear_stale_locks,
    package_managers_held,
)
from tests.fakes.runner import FakeRunner
from tests.fixtures.waiting import HANGS_S

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORD_LOCKS = (
    "var/lib/dpkg/lock-frontend",
    "var/lib/dpkg/lock",
    "usr/lib/sysimage/rpm/.rpm.lock",
    "var/lib/rpm/.rpm.lock",
)
PACMAN_LOCK = "var/lib/pacman/db.lck"

OTHER = textwrap.dedent("""
    import sys
    file = open(sys.argv[1], "x" if sys.argv[2] == "x" else "a")
    if sys.argv[2] == "lock":
        import fcntl; fcntl.lockf(file, fcntl.LOCK_EX)
    print("held", flush=True)
    sys.stdin.read()
""")
OURS = textwrap.dedent("""
    import sys
    from pathlib import Path
    from initadvisor.host import Host
    from initadvisor.host.package_managers import package_managers_held
    with package_managers_held(Host(root=Path(sys.argv[1])), wait_s=0):
        print("held", flush=True)
        sys.stdin.read()
""")


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A machine that has the databases of all of them."""
    for lock in (*RECORD_LOCKS, PACMAN_LOCK):
        (tmp_path / lock).parent.mkdir(parents=True, exist_ok=True)
    return Host(root=tmp_path, runner=FakeRunner())


@contextlib.contextmanager
def another(code: str, *arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    """Have another process hold something until it is told to end, or is killed."""
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process


def is_free(lock: Path) -> bool:
    """Ask from another process, as a package manager would, whether a lock can be had."""
    code = "import fcntl,sys; fcntl.lockf(open(sys.argv[1], 'a'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    done = subprocess.run([sys.executable, "-c", code, lock], capture_output=True, check=False)
    assert done.returncode == 0 or b"BlockingIOError" in done.stderr
    return done.returncode == 0


def test_all_locks_are_held_as_long_as_the_context_is(host: Host) -> None:
    with package_managers_held(host):
        assert not any(is_free(host.root / lock) for lock in RECORD_LOCKS)
        assert (
            (host.root / PACMAN_LOCK).read_text().startswith(f"initadvisor: process {os.getpid()}")
        )
    assert all(is_free(host.root / lock) for lock in RECORD_LOCKS)
    assert list((host.root / PACMAN_LOCK).parent.iterdir()) == []


def test_a_machine_without_package_managers_gets_no_locks(tmp_path: Path) -> None:
    host = Host(root=tmp_path, runner=FakeRunner())
    with package_managers_held(host):
        assert busy_package_managers(host) == ()
    assert list(tmp_path.iterdir()) == []


def test_one_database_under_two_names_is_locked_once(tmp_path: Path) -> None:
    (tmp_path / "usr/lib/sysimage/rpm").mkdir(parents=True)
    (tmp_path / "var/lib").mkdir(parents=True)
    (tmp_path / "var/lib/rpm").symlink_to("../../usr/lib/sysimage/rpm")
    with package_managers_held(Host(root=tmp_path, runner=FakeRunner())):
        assert not is_free(tmp_path / "usr/lib/sysimage/rpm/.rpm.lock")


def test_looking_whether_any_is_busy_gives_up_none_of_our_own_locks(host: Host) -> None:
    with package_managers_held(host):
        assert busy_package_managers(host) == ()
        assert not any(is_free(host.root / lock) for lock in RECORD_LOCKS)


@pytest.mark.parametrize("lock", RECORD_LOCKS)
def test_who_holds_a_lock_is_named(host: Host, lock: str) -> None:
    name = "dpkg" if "dpkg" in lock else "rpm"
    with another(OTHER, host.root / lock, "lock") as other:
        (busy,) = busy_package_managers(host)
        assert (busy.name, busy.process, busy.around) == (name, other.pid, False)
        with (
            pytest.raises(
                InitadvisorError, match=rf"{name} is at work: process {other.pid} \(pyth"
            ),
            package_managers_held(host, wait_s=0),
        ):
            pytest.fail("it was held")
    assert busy_package_managers(host) == ()
    assert all(is_free(host.root / other_lock) for other_lock in RECORD_LOCKS)
    assert not (host.root / PACMAN_LOCK).exists()


def test_who_holds_the_lock_of_pacman_is_named(host: Host) -> None:
    with another(OTHER, host.root / PACMAN_LOCK, "x") as other:
        (busy,) = busy_package_managers(host)
        assert (busy.name, busy.process, busy.around) == ("pacman", other.pid, False)
        with (
            pytest.raises(
                InitadvisorError, match=rf"pacman is at work: process {other.pid}"
            ) as got,
            package_managers_held(host, wait_s=0),
        ):
            pytest.fail("it was held")
    assert got.value.hint == "wait for it to end"
    assert all(is_free(host.root / lock) for lock in RECORD_LOCKS)


def test_a_lock_of_pacman_that_nobody_holds_is_left_to_the_user(host: Host) -> None:
    (host.root / PACMAN_LOCK).touch(mode=0)
    with (
        pytest.raises(InitadvisorError, match=r"pacman is at work: .*db\.lck is held") as got,
        package_managers_held(host, wait_s=0),
    ):
        pytest.fail("it was held")
    assert got.value.hint is not None
    assert f"remove {host.root / PACMAN_LOCK}" in got.value.hint
    clear_stale_locks(host)
    assert (host.root / PACMAN_LOCK).exists()


def test_a_package_manager_that_ends_in_time_is_waited_for(host: Host) -> None:
    with another(OTHER, host.root / RECORD_LOCKS[1], "lock") as other:
        assert other.stdin is not None
        threading.Timer(0.3, other.stdin.close).start()
        with package_managers_held(host, wait_s=HANGS_S):
            assert other.wait(timeout=HANGS_S) == 0


def test_another_run_of_ours_is_one_that_works(host: Host) -> None:
    with another(OURS, host.root) as other:
        assert {busy.process for busy in busy_package_managers(host)} == {other.pid}
        clear_stale_locks(host)
        assert (host.root / PACMAN_LOCK).exists()
    assert not (host.root / PACMAN_LOCK).exists()


def test_what_a_killed_run_of_ours_left_is_removed_by_the_next(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    for clearing in (True, False):
        with another(OURS, host.root) as other:
            other.send_signal(signal.SIGKILL)
        assert (host.root / PACMAN_LOCK).exists()
        assert busy_package_managers(host) == ()
        if clearing:
            clear_stale_locks(host)
            assert not (host.root / PACMAN_LOCK).exists()
        with package_managers_held(host, wait_s=0):
            assert (host.root / PACMAN_LOCK).exists()
        assert not (host.root / PACMAN_LOCK).exists()
    assert caplog.text.count("which an interrupted run left") == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may be another user")
def test_what_others_hold_of_a_stale_lock_keeps_nobody_waiting() -> None:
    """Earlier versions left it readable for all; whoever can open it can lock it."""
    code = "import fcntl, os; os.setuid(65534)\n" + OTHER.replace('"a")', '"r")').replace(
        "fcntl.lockf(file, fcntl.LOCK_EX)", "fcntl.flock(file, fcntl.LOCK_EX)"
    )
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        lock = Path(name) / PACMAN_LOCK
        lock.parent.mkdir(parents=True)
        host = Host(root=Path(name), runner=FakeRunner())
        for process in (os.getpid(), 4_194_305):  # one that lives and does not have it; none
            lock.write_text(f"initadvisor: process {process} replaces files\n")
            lock.chmod(0o644)
            with another(code, lock, "lock") as other:
                assert busy_package_managers(host) == ()
                with package_managers_held(host, wait_s=0):
                    assert lock.stat().st_mode & 0o077 == 0
                other.communicate(timeout=HANGS_S)
        assert not lock.exists()


@pytest.mark.parametrize("kind", ["lockf", "ofd"])
@pytest.mark.parametrize("lock", RECORD_LOCKS)
def test_a_lock_for_reading_only_keeps_nobody_waiting(host: Host, lock: str, kind: str) -> None:
    """So do users without root lock what they may read; a lock of an open file has no process."""
    locking = {
        "lockf": "fcntl.lockf(file, fcntl.LOCK_SH)",
        "ofd": "import struct; fcntl.fcntl(file, 37, struct.pack('hhqqi0q', 0, 0, 0, 0, 0))",
    }
    code = OTHER.replace('"a")', '"r")').replace("fcntl.lockf(file, fcntl.LOCK_EX)", locking[kind])
    (host.root / lock).touch()
    with another(code, host.root / lock, "lock") as other:
        assert not is_free(host.root / lock)
        assert busy_package_managers(host) == ()
        with package_managers_held(host, wait_s=0):
            other.communicate(timeout=HANGS_S)
            assert not is_free(host.root / lock)
    assert is_free(host.root / lock)


def test_a_lock_file_that_was_replaced_by_hand_is_not_removed(host: Host) -> None:
    lock = host.root / PACMAN_LOCK
    with package_managers_held(host):
        lock.unlink()
        lock.write_text("pacman's by now")
    assert lock.read_text() == "pacman's by now"


@pytest.mark.parametrize("lock", [RECORD_LOCKS[0], PACMAN_LOCK])
def test_a_hook_of_the_package_manager_is_told_that_it_is_one(host: Host, lock: str) -> None:
    """The process that holds the lock runs ours, as a hook or a maintainer script."""
    kind = "x" if lock == PACMAN_LOCK else "lock"
    inner = "import subprocess; subprocess.run([sys.executable, '-c', sys.argv[3], sys.argv[4]])"
    hook = textwrap.dedent("""
        import sys
        from pathlib import Path
        from initadvisor.host import Host
        from initadvisor.host.package_managers import busy_package_managers, package_managers_held
        from initadvisor.core.errors import UnsafeError
        host = Host(root=Path(sys.argv[1]))
        (busy,) = busy_package_managers(host)
        assert busy.around
        assert str(busy).endswith("and it started this run")
        try:
            with package_managers_held(host, wait_s=3600):
                pass
        except UnsafeError as err:
            print(err.message)
    """)
    code = OTHER.replace("sys.stdin.read()", inner)
    done = subprocess.run(
        [sys.executable, "-c", code, host.root / lock, kind, hook, host.root],
        capture_output=True,
        text=True,
        check=True,
        timeout=HANGS_S,
    )
    assert "not from inside a package manager" in done.stdout
    assert "it started this run" in done.stdout


@pytest.mark.parametrize(
    ("config", "database"),
    [
        ("[options]\n#DBPath = /elsewhere\n", "var/lib/pacman"),
        ("[options]\n  DBPath=/srv/db/ \nDBPath = /second\n", "srv/db"),
        ("[core]\nDBPath = /srv/db\n", "var/lib/pacman"),
        ("[options]\nInclude = /etc/pacman.d/*.conf\n", "srv/included"),
        ("[options]\nInclude = /etc/pacman.conf\n", "var/lib/pacman"),
    ],
)
def test_the_lock_of_pacman_is_where_it_is_configured(
    tmp_path: Path, config: str, database: str
) -> None:
    for directory in ("etc/pacman.d", "var/lib/pacman", "srv/db", "srv/included"):
        (tmp_path / directory).mkdir(parents=True)
    (tmp_path / "etc/pacman.conf").write_text(config)
    (tmp_path / "etc/pacman.d/a.conf").write_text("DBPath = /srv/included\n")
    with package_managers_held(Host(root=tmp_path, runner=FakeRunner())):
        assert [path.parent for path in tmp_path.rglob("db.lck")] == [tmp_path / database]


@pytest.mark.usefixtures("ordinary_user")
def test_a_database_that_cannot_be_locked_is_an_error(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", denied)
    with (
        pytest.raises(NeedsRootError, match=r"db\.lck: only root may"),
        package_managers_held(host),
    ):
        pytest.fail("it was held")
    assert list((host.root / PACMAN_LOCK).parent.iterdir()) == []
    (host.root / RECORD_LOCKS[0]).unlink()
    (host.root / RECORD_LOCKS[0]).mkdir()
    with (
        pytest.raises(InitadvisorError, match="lock-frontend: Is a directory"),
        package_managers_held(host),
    ):
        pytest.fail("it was held")


def test_what_was_done_stands_where_the_lock_cannot_be_given_back(
    host: Host, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lock = host.root / PACMAN_LOCK
    with package_managers_held(host):
        monkeypatch.setattr(type(lock), "unlink", denied)
    monkeypatch.undo()
    assert f"pacman will not work before {lock} is removed: Permission denied" in caplog.text
    assert all(is_free(host.root / other) for other in RECORD_LOCKS)
    clear_stale_locks(host)
    assert not lock.exists()


def denied(*_: object) -> None:
    """Refuse as the kernel does."""
    raise PermissionError(13, "Permission denied")
