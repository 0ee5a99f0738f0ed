"""A setting is applied in a real guest: rehearsed, proven and installed by its units, sandboxed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.fixtures.owners import OWNER
from tests.vm.applying import (
    SETTING,
    applying_guest,
    copying_guest,
)
from tests.vm.blscfg import put_blscfg
from tests.vm.boot import Then, boot
from tests.vm.guest import Loader
from tests.vm.installed import ENABLE, install
from tests.vm.witness import freed_kib

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.vm.boot import Boot
    from tests.vm.guest import Guest

pytestmark = pytest.mark.vm

_SETTLE = "initadvisor-settle.service"
_SLEEP = "initadvisor-sleep.service"
_TRIAL_ENTRY = {
    Loader.SYSTEMD_BOOT: f"/boot/loader/entries/a-initadvisor-{OWNER}-trial.conf",
    Loader.GRUB: "/boot/grub/custom.cfg",
}
"""Of GRUB the file has the previous image's entry, too."""
_LOOK = """
import glob, hashlib, json, pathlib, subprocess, sys

def said(*argv):
    return subprocess.run(argv, capture_output=True, text=True).stdout

def read(path):
    return pathlib.Path(path).read_text()

def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()

record, *_ = sorted(glob.glob("/var/lib/initadvisor/transactions/*.json"))
(image,) = {digest(path) for path in glob.glob("/boot/**/initrd*", recursive=True)}
journal = ("journalctl", "-b", "-q", "-o", "cat", "_COMM=initadvisor", "-u")
print(json.dumps({
    "transaction": json.loads(read(record)),
    "command_line": read("/proc/cmdline").split(),
    "image": image,
    "configuration": read("/etc/initramfs-tools/initramfs.conf"),
    "settled": said(*journal, "initadvisor-settle.service").splitlines(),
    "slept": said(*journal, "initadvisor-sleep.service").splitlines(),
    "failed": said("systemctl", "--failed", "--plain", "--no-legend").splitlines(),
    "entry": "initadvisor.trial=" in (pathlib.Path(sys.argv[1]).read_text()
        if pathlib.Path(sys.argv[1]).exists() else ""),
    "noted": pathlib.Path("/var/lib/initadvisor/trial-entry").exists(),
}))
"""
_ARM = f"""
{ENABLE}
initadvisor apply '{SETTING}' --confirm --unverified
systemctl start {_SLEEP}
until [ "$(systemctl show -P ActiveState {_SLEEP})" = inactive ]; do sleep 0.2; done
"""
_BY_TIMER = f"""
ran() {{ [ "$(systemctl show -P ExecMainStartTimestampMonotonic {_SETTLE})" != 0 ]; }}
until ran && [ "$(systemctl show -P ActiveState {_SETTLE})" != activating ]; do sleep 0.5; done
"""
_BY_HAND = f"""
systemctl start {_SETTLE}
initadvisor settle
"""
_GO_BACK = "initadvisor rollback --confirm"
_COPY_ANEW = f"""
release=$(uname -r)
sums() {{ sha256sum /boot/initrd.img-$release /boot/debian/$release/*; }}
sums >/run/sums
kernel-install add $release /boot/vmlinuz-$release
sums | cmp - /run/sums
kernel-install add $release /boot/vmlinuz-$release /boot/initrd.img-$release
sums | cmp - /run/sums
{_GO_BACK}
"""
"""What Debian's scripts do in both ways: after a kernel's installation, and an image's update."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A boot, and what there was to see in it at its end."""

    boot: Boot
    look: dict[str, Any]

    @property
    def transaction(self) -> dict[str, Any]:
        """The record of what was applied."""
        found: dict[str, Any] = self.look["transaction"]
        return found

    @property
    def new_image(self) -> str:
        """The digest of the image that is to be installed, once or with its copy."""
        (digest,) = {
            file["after"]["sha256"] for file in self.transaction["files"] if file["role"] == "image"
        }
        return str(digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The boot in which it was applied, and the three after it."""

    applied: Told
    rehearsal: Told
    proof: Told
    back: Told


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """How a machine boots by default; ``back`` is what is done in the last boot."""

    make: Callable[[], Guest]
    back: str = _GO_BACK


_CASES = {
    "systemd-boot": Case(make=partial(applying_guest, Loader.SYSTEMD_BOOT)),
    "grub-blscfg": Case(make=partial(applying_guest, Loader.GRUB)),
    "copies": Case(make=copying_guest, back=_COPY_ANEW),
}


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in _CASES],
)
def outcome(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Apply a setting once for all tests, and reboot twice."""
    directory = tmp_path_factory.mktemp("proving")
    case = _CASES[request.param]
    copy = case.make().copied_to(directory / "guest")
    loader = copy.recipe.loader
    install(copy)
    if loader is Loader.GRUB:
        put_blscfg(copy)

    def told(name: str, script: str) -> Told:
        look = f"{script}\npython3 - {_TRIAL_ENTRY[loader]} <<'END'\n{_LOOK}\nEND\n"
        log: Path = directory / f"{name}.log"
        done = boot(copy, script=look, then=Then.REBOOT, log=log)
        return Told(boot=done, look=json.loads(done.output[-1]))

    return Outcome(
        applied=told("applied", _ARM),
        rehearsal=told("rehearsal", _BY_TIMER),
        proof=told("armed_boot", _BY_HAND),
        back=told("back", case.back),
    )


def test_today_s_image_is_armed_first_and_taken_back_around_sleep(outcome: Outcome) -> None:
    look = outcome.applied.look
    assert (outcome.applied.transaction["state"], look["failed"]) == ("proving", [])
    taken, *_, armed = look["slept"]  # with what it may warn of: the guest has no logind
    assert taken.endswith("is not armed for the time being")
    assert armed.endswith("it was taken back while the machine slept or packages were changed")
    assert outcome.applied.transaction["armed_boot"]["stage"] == "rehearsal"
    assert look["image"] == outcome.applied.transaction["armed_boot"]["sha256"]
    assert look["entry"]
    assert look["noted"]


def test_the_timer_judges_the_rehearsal_and_arms_the_new_image(outcome: Outcome) -> None:
    look, before = outcome.rehearsal.look, outcome.applied
    assert f"initadvisor.trial={before.transaction['armed_boot']['trial']}" in look["command_line"]
    *_, said = look["settled"]
    assert said.endswith("has the new image armed for the next boot; it booted and is complete")
    assert (outcome.rehearsal.transaction["state"], look["failed"]) == ("proving", [])
    assert outcome.rehearsal.transaction["armed_boot"]["stage"] == "proof"
    assert (look["image"], look["configuration"]) == (
        before.look["image"],
        before.look["configuration"],
    )


@pytest.mark.shows("apply", "systemd-boot")
@pytest.mark.shows("apply", "systemd-boot with kernel-install")
@pytest.mark.shows("apply", "GRUB with blscfg", system="Debian 13, GRUB 2.14 of sid")
def test_the_new_image_is_installed_after_its_boot(outcome: Outcome) -> None:
    look, before = outcome.proof.look, outcome.rehearsal
    assert f"initadvisor.trial={before.transaction['armed_boot']['trial']}" in look["command_line"]
    *_, said = look["settled"]  # after what it may warn of: the guest has no logind
    assert said.endswith("is done; the proving boot: it booted and is complete")
    assert (outcome.proof.transaction["state"], look["failed"]) == ("committed", [])
    assert look["image"] == outcome.applied.new_image
    assert "COMPRESS=gzip\n" in look["configuration"]


def test_nothing_of_the_trial_is_left(outcome: Outcome) -> None:
    assert not outcome.proof.look["noted"]
    assert not outcome.proof.look["entry"]


@pytest.mark.shows("rollback", "systemd-boot")
@pytest.mark.shows("rollback, kernel-install add", "systemd-boot with kernel-install")
@pytest.mark.shows("rollback", "GRUB with blscfg", system="Debian 13, GRUB 2.14 of sid")
def test_the_next_boot_is_of_the_new_image_by_default_and_going_back_is_to_the_old_one(
    outcome: Outcome,
) -> None:
    look, before = outcome.back.look, outcome.applied.look
    assert not [word for word in look["command_line"] if word.startswith("initadvisor")]
    assert freed_kib(outcome.back.boot) == freed_kib(outcome.proof.boot)
    assert freed_kib(outcome.back.boot) != freed_kib(outcome.applied.boot)
    assert (look["image"], look["configuration"]) == (before["image"], before["configuration"])
    assert look["failed"] == []
