"""Engines are found out by trying them; one that hangs is tried once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

import pytest

from initadvisor.core.errors import InitadvisorError, NeedsRootError
from initadvisor.host import Host
from initadvisor.records.lab import Engine
from initadvisor.store.store import Store, open_store
from initadvisor.vm.engines import (
    FOR_TIMING,
    FOR_VERIFYING,
    NoEngineError,
    Wanted,
    engine_states,
    machine_for,
    require_verifying,
    why_not_kvm,
)
from tests.fakes.machines import Machines, machine
from tests.fixtures.kernels import bzimage
from tests.fixtures.trees import write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FIRST_WORD = "[    0.000000] Linux version 6.9.1 (builder@host)\n"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """Return a machine with a kernel, QEMU, user-mode Linux and a KVM that works."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.setattr(Host, "machine", lambda _self: "x86_64")
    write(tmp_path, "/boot/vmlinuz-6.9.1", bzimage("6.9.1"))
    write(tmp_path, "/dev/kvm", b"")
    uml = write(tmp_path, "/uml", b"a program")
    runner = Machines(programs=["qemu-system-x86_64", str(uml)], says=lambda *_: FIRST_WORD)
    runner.answer("/usr/bin/qemu-system-x86_64 --version", "QEMU emulator version 9.0\nmore")
    runner.answer(f"{uml} --version", "6.1.176")
    return Host(root=tmp_path, runner=runner)


@pytest.fixture
def wanted(tmp_path: Path) -> Wanted:
    """Return what is asked for."""
    return Wanted(release="6.9.1", uml=tmp_path / "uml")


@pytest.fixture
def store(host: Host) -> Iterator[Store]:
    """Return an open store."""
    with open_store(host) as opened:
        yield opened


def runner_of(host: Host) -> Machines:
    """Return the host's runner."""
    assert isinstance(host.runner, Machines)
    return host.runner


def hangs(host: Host) -> None:
    """Let every virtual machine with KVM hang."""
    runner_of(host).says = lambda _, command: None if "-accel kvm" in command else FIRST_WORD


def kvm_trials(host: Host) -> int:
    """Return how often KVM was tried."""
    return sum("-accel kvm" in command for command in runner_of(host).booted)


def test_kvm_is_the_best_for_everything(host: Host, store: Store, wanted: Wanted) -> None:
    for purpose in (FOR_TIMING, FOR_VERIFYING):
        with machine_for(host, store, purpose, wanted) as found:
            assert found.engine is Engine.KVM
            assert found.kernel.release == "6.9.1"
            assert found.version == "QEMU emulator version 9.0"


def test_a_kvm_that_hangs_is_remembered(host: Host, store: Store, wanted: Wanted) -> None:
    hangs(host)
    for _ in range(3):
        with machine_for(host, store, FOR_VERIFYING, wanted) as found:
            assert found.engine is Engine.TCG
        with machine_for(host, store, FOR_TIMING, wanted) as found:
            assert found.engine is Engine.UML
    assert kvm_trials(host) == 1


def test_it_is_tried_again_where_that_is_asked_for(
    host: Host, store: Store, wanted: Wanted
) -> None:
    hangs(host)
    with machine_for(host, store, FOR_VERIFYING, wanted):
        pass
    runner_of(host).says = lambda *_: FIRST_WORD
    states = {s.engine: s for s in engine_states(host, store, replace(wanted, anew=True))}
    assert [states[engine].problem for engine in Engine] == [None, None, None]
    with machine_for(host, store, FOR_VERIFYING, wanted) as found:
        assert found.engine is Engine.KVM


def test_it_is_tried_again_with_another_kernel_or_qemu(
    host: Host, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs(host)
    first = machine(Engine.KVM)
    assert why_not_kvm(host, first, store, anew=False)
    assert why_not_kvm(host, replace(first, version="QEMU 10"), store, anew=False)
    monkeypatch.setattr(Host, "kernel_release", lambda _self: "7.0")
    assert why_not_kvm(host, first, store, anew=False)
    assert kvm_trials(host) == 3


def test_a_kvm_that_fails_at_once_costs_nothing_and_is_not_remembered(
    host: Host, store: Store
) -> None:
    runner_of(host).says = lambda *_: "qemu: Could not access KVM kernel module\n"
    reason = why_not_kvm(host, machine(Engine.KVM), store, anew=False)
    assert reason == "it does not work: qemu: Could not access KVM kernel module"
    runner_of(host).says = lambda *_: FIRST_WORD
    assert why_not_kvm(host, machine(Engine.KVM), store, anew=False) is None


def test_a_kernel_that_keeps_silent_is_not_taken_for_a_kvm_that_hangs(
    host: Host, store: Store
) -> None:
    runner_of(host).says = lambda *_: None
    reason = why_not_kvm(host, machine(Engine.KVM), store, anew=False)
    assert reason == "no word from /boot/vmlinuz (has it a serial console?)"
    assert why_not_kvm(host, machine(Engine.KVM), store, anew=False) == reason
    assert len(runner_of(host).booted) == 4


def test_without_the_device_nothing_is_started(tmp_path: Path, host: Host, store: Store) -> None:
    (tmp_path / "dev/kvm").unlink()
    assert why_not_kvm(host, machine(Engine.KVM), store, anew=False) == "there is no /dev/kvm"
    assert runner_of(host).booted == []


def test_without_a_kernel_file_only_user_mode_linux_is_left(
    host: Host, store: Store, wanted: Wanted
) -> None:
    other = replace(wanted, release="6.0.0")
    with machine_for(host, store, FOR_TIMING, other) as found:
        assert found.engine is Engine.UML
    with (
        pytest.raises(NoEngineError, match=r"used: cannot find the kernel Linux 6\.0\.0") as error,
        machine_for(host, store, FOR_VERIFYING, other),
    ):
        pass
    assert error.value.hint == "initadvisor lab --kernel FILE names its file"
    assert error.value.exit_code == 3


def test_a_kernel_that_only_root_may_read_is_a_matter_for_root(
    host: Host, store: Store, wanted: Wanted, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(_host: Host, release: str) -> NoReturn:
        msg = f"cannot read the kernel {release}: only root may"
        raise NeedsRootError(msg)

    monkeypatch.setattr("initadvisor.vm.engines.find_kernel", denied)
    with pytest.raises(NeedsRootError), machine_for(host, store, FOR_VERIFYING, wanted):
        pass
    with machine_for(host, store, FOR_TIMING, wanted) as found:
        assert found.engine is Engine.UML


def test_without_any_engine_the_user_is_told_what_to_install(
    host: Host, store: Store, wanted: Wanted
) -> None:
    runner_of(host).programs = []
    with (
        pytest.raises(NoEngineError, match=r"kvm: .* is not installed; uml: ") as error,
        machine_for(host, store, FOR_TIMING, wanted),
    ):
        pass
    assert "user-mode-linux" in str(error.value.hint)
    assert "qemu-system-x86" in str(error.value.hint)


def test_whether_verifying_can_be_had_is_known_without_starting_anything(
    host: Host, wanted: Wanted, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs(host)
    require_verifying(host, wanted)  # emulation is enough
    with pytest.raises(NoEngineError, match="cannot find the kernel"):
        require_verifying(host, replace(wanted, release="6.0.0"))
    assert runner_of(host).booted == []
    runner_of(host).programs = []
    with pytest.raises(NoEngineError, match=r"kvm: .* is not installed; tcg: ") as error:
        require_verifying(host, wanted)
    assert str(error.value.hint).startswith("install qemu-system-x86 (with apt --no-install-recomm")
    monkeypatch.setattr(Host, "machine", lambda _self: "aarch64")
    runner_of(host).programs = ["qemu-system-x86_64"]
    with pytest.raises(NoEngineError, match="aarch64"):
        require_verifying(host, wanted)


def test_an_engine_that_is_asked_for_is_not_replaced(
    host: Host, store: Store, wanted: Wanted
) -> None:
    hangs(host)
    with (
        pytest.raises(NoEngineError, match="hangs"),
        machine_for(host, store, FOR_TIMING, replace(wanted, engine=Engine.KVM)),
    ):
        pass
    assert runner_of(host).booted


def test_another_architecture_is_refused_by_name(
    host: Host, store: Store, wanted: Wanted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Host, "machine", lambda _self: "aarch64")
    with (
        pytest.raises(NoEngineError, match="aarch64: only x86-64"),
        machine_for(host, store, FOR_VERIFYING, wanted),
    ):
        pass


def test_a_program_that_is_no_user_mode_linux_is_refused(
    host: Host, store: Store, wanted: Wanted
) -> None:
    runner_of(host).answer(
        f"{wanted.uml} --version", error=InitadvisorError("unused"), returncode=1
    )
    with pytest.raises(InitadvisorError), machine_for(host, store, (Engine.UML,), wanted):
        pass


def test_the_trial_waits_for_the_kernels_first_word_for_five_seconds(
    host: Host, store: Store
) -> None:
    runner_of(host).says = lambda *_: f"SeaBIOS (version 1.16)\n{FIRST_WORD}"
    assert why_not_kvm(host, machine(Engine.KVM), store, anew=False) is None
    hangs(host)
    reason = why_not_kvm(host, machine(Engine.KVM), store, anew=False)
    assert reason == "it hangs: no word from a kernel within 5 s"
    assert runner_of(host).limits_s == [5.0, 5.0, 15.0]
