"""A setting is applied in a real guest: rehearsed, proven and installed by its units, sandboxed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.vm.applying import SETTING, small_guest
from tests.vm.boot import Then, boot
from tests.vm.guest import Loader
from tests.vm.installed import UNPACK, install
from tests.vm.quick_generator import put_quick_generator

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vm.boot import Boot
    from tests.vm.guest import Guest

pytestmark = [pytest.mark.vm, pytest.mark.xdist_group("proving")]

_SETTLE = "initadvisor-settle.service"
_SLEEP = "initadvisor-sleep.service"
_TRIAL_ENTRY = {
    Loader.SYSTEMD_BOOT: "/boot/loader/entries/a-initadvisor-trial.conf",
    Loader.GRUB: "/boot/grub/custom.cfg",
}
_SELECTED = "next_entry=initadvisor-trial"
_LOOK = """
import glob, hashlib, json, pathlib, subprocess, sys

def said(*argv):
    return subprocess.run(argv, capture_output=True, text=True).stdout

def read(path):
    return pathlib.Path(path).read_text()

(record,) = glob.glob("/var/lib/initadvisor/transactions/*.json")
(image,) = glob.glob("/boot/initrd.img-*")
journal = ("journalctl", "-b", "-q", "-o", "cat", "_COMM=initadvisor", "-u")
print(json.dumps({
    "transaction": json.loads(read(record)),
    "command_line": read("/proc/cmdline").split(),
    "image": hashlib.sha256(pathlib.Path(image).read_bytes()).hexdigest(),
    "configuration": read("/etc/initramfs-tools/initramfs.conf"),
    "settled": said(*journal, "initadvisor-settle.service").splitlines(),
    "slept": said(*journal, "initadvisor-sleep.service").splitlines(),
    "failed": said("systemctl", "--failed", "--plain", "--no-legend").splitlines(),
    "entry": sys.argv[1:] and pathlib.Path(sys.argv[1]).exists(),
    "noted": pathlib.Path("/var/lib/initadvisor/trial-entry").exists(),
}))
"""
_ARM = f"""
{UNPACK}
initadvisor apply '{SETTING}' --confirm --unverified
systemctl start {_SLEEP}
until [ "$(systemctl show -P ActiveState {_SLEEP})" = inactive ]; do sleep 0.2; done
"""
_BY_TIMER = f"""
ran() {{ [ "$(systemctl show -P ExecMainStartTimestampMonotonic {_SETTLE})" != 0 ]; }}
until ran && [ "$(systemctl show -P ActiveState {_SETTLE})" != activating ]; do sleep 0.5; done
"""
_BY_HAND_WITH_GRUB = f"""
grub-editenv list
systemctl start {_SETTLE}
echo settled
grub-editenv list
"""
_BY_HAND = f"""
systemctl start {_SETTLE}
initadvisor settle
"""


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
        """The digest of the image that is to be installed."""
        (digest,) = (
            file["after"]["sha256"] for file in self.transaction["files"] if file["role"] == "image"
        )
        return str(digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The boot in which it was applied, and the two after it."""

    applied: Told
    rehearsal: Told
    proof: Told


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Apply a setting once for all tests, and reboot twice."""
    directory = tmp_path_factory.mktemp("proving")
    copy = small_guest(Loader.SYSTEMD_BOOT).copied_to(directory / "guest")
    install(copy)
    return Outcome(
        applied=_told(copy, _ARM, directory / "applied.log"),
        rehearsal=_told(copy, _BY_TIMER, directory / "rehearsal.log"),
        proof=_told(copy, _BY_HAND, directory / "proof.log"),
    )


def _told(copy: Guest, script: str, log: Path) -> Told:
    entry = _TRIAL_ENTRY[copy.recipe.loader]
    look = f"{script}\npython3 - {entry} <<'END'\n{_LOOK}\nEND\n"
    done = boot(copy, script=look, then=Then.REBOOT, log=log)
    return Told(boot=done, look=json.loads(done.output[-1]))


def test_today_s_image_is_armed_first_and_taken_back_around_sleep(outcome: Outcome) -> None:
    _assert_armed_around_sleep(outcome.applied)


def test_the_timer_judges_the_rehearsal_and_arms_the_new_image(outcome: Outcome) -> None:
    _assert_rehearsed(outcome.applied, outcome.rehearsal)


def test_the_new_image_is_installed_after_its_boot(outcome: Outcome) -> None:
    look, before = outcome.proof.look, outcome.rehearsal
    assert f"initadvisor.trial={before.transaction['proof']['trial']}" in look["command_line"]
    *_, said = look["settled"]  # after what it may warn of: the guest has no logind
    assert said.endswith("is done; the proving boot: it booted and is complete")
    assert (outcome.proof.transaction["state"], look["failed"]) == ("committed", [])
    assert look["image"] == outcome.applied.new_image
    assert "COMPRESS=gzip\n" in look["configuration"]


def test_nothing_of_the_trial_is_left(outcome: Outcome) -> None:
    assert not outcome.proof.look["noted"]
    assert not outcome.proof.look["entry"]


@pytest.mark.xdist_group("grub")  # beside the others: it shares nothing with them
def test_the_sandbox_lets_grub_be_told_as_well(tmp_path: Path) -> None:
    """Whose programs look for the disk, and write to ext4. What it takes to install an image is the
    same as with any loader, and left out.
    """
    copy = small_guest(Loader.GRUB).copied_to(tmp_path / "guest")
    install(copy)
    put_quick_generator(copy)
    applied = _told(copy, f"{_ARM}\ngrub-editenv list", tmp_path / "applied.log")
    rehearsal = _told(copy, _BY_HAND_WITH_GRUB, tmp_path / "rehearsal.log")

    _assert_armed_around_sleep(applied)
    assert _SELECTED in applied.boot.output
    _assert_rehearsed(applied, rehearsal)
    settled = rehearsal.boot.output.index("settled")
    assert _SELECTED not in rehearsal.boot.output[:settled]
    assert _SELECTED in rehearsal.boot.output[settled:]


def _assert_armed_around_sleep(applied: Told) -> None:
    look = applied.look
    assert (applied.transaction["state"], look["failed"]) == ("proving", [])
    taken, armed = look["slept"]
    assert taken.endswith("is not armed while the machine sleeps")
    assert armed.endswith("was taken back before the machine went to sleep")
    assert applied.transaction["proof"]["stage"] == "rehearsal"
    assert look["image"] == applied.transaction["proof"]["sha256"]
    assert look["entry"]
    assert look["noted"]


def _assert_rehearsed(applied: Told, rehearsal: Told) -> None:
    look = rehearsal.look
    assert f"initadvisor.trial={applied.transaction['proof']['trial']}" in look["command_line"]
    (said,) = look["settled"]
    assert said.endswith("has the new image armed for the next boot; it booted and is complete")
    assert (rehearsal.transaction["state"], look["failed"]) == ("proving", [])
    assert rehearsal.transaction["proof"]["stage"] == "proof"
    assert (look["image"], look["configuration"]) == (
        applied.look["image"],
        applied.look["configuration"],
    )
