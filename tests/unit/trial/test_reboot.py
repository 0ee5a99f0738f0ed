"""A campaign's reboots cut off nobody's work: what is against one counts when it happens."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from initadvisor.bootloaders.entry import OneShot, OneShotState
from initadvisor.campaign.campaign import CampaignState
from initadvisor.core.errors import InitadvisorError, ProgramError, UnsafeError
from initadvisor.lab.observing import Unseen
from initadvisor.transaction.transactions import transactions
from initadvisor.trial import campaigns
from initadvisor.trial.campaigns import CampaignOptions, pause, stop, take_back
from initadvisor.trial.markers import note_rehearsed
from initadvisor.trial.reboot import UNIT, reboot, reboot_unattended
from tests.fixtures.campaign_machine import KERNEL, SLOT, Campaigning, make_campaigning
from tests.fixtures.encrypted_disks import DEVICE, with_open_disk
from tests.fixtures.logind import with_inhibitors, with_sessions
from tests.fixtures.provable_machine import IMAGE
from tests.fixtures.trees import GLOBAL, write_texts, write_variable

if TYPE_CHECKING:
    from collections.abc import Callable

    from initadvisor.host import Host
    from tests.fakes.scripts import ShellRunner
    from tests.fixtures.booted import Booted

LOCK = "/var/lib/pacman/db.lck"
MINE = 1000


@pytest.fixture
def ready(machine: Booted, monkeypatch: pytest.MonkeyPatch) -> Campaigning:
    """A machine that was rebooted for a campaign which is to do so again, with a boot armed."""
    made = make_campaigning(machine, monkeypatch)
    machine.write("/var/lib/pacman/local/ALPM_DB_VERSION", "9\n")
    machine.write("/proc/self/loginuid", f"{MINE}\n")
    machine.runner.answer("wall", "")
    machine.runner.answer("systemctl reboot", "")
    note_rehearsed(made.host, made.provable.loader.NAME)
    made.start(reboots=True)
    machine.runner.calls.clear()
    return made


def programs(ready: Campaigning) -> ShellRunner:
    return ready.provable.machine.runner


def write(path: str, content: str) -> Callable[[Campaigning], object]:
    return lambda ready: ready.provable.machine.write(path, content)


def inhibited(what: str, mode: str) -> Callable[[Campaigning], object]:
    return lambda ready: with_inhibitors(programs(ready), (what, mode))


def logged_in(user: int, name: str, kind: str = "user") -> Callable[[Campaigning], object]:
    return lambda ready: with_sessions(programs(ready), (user, name, kind))


def selected(state: OneShotState) -> Callable[[Campaigning], object]:
    def select(ready: Campaigning) -> None:
        ready.provable.loader.selected = OneShot(state=state, identifier="fwupd", reason="no bytes")

    return select


def indicated(bits: int) -> Callable[[Campaigning], object]:
    value = bits.to_bytes(8, "little")
    return lambda ready: write_variable(ready.host.root, "OsIndications", value, GLOBAL)


def menu(ready: Campaigning) -> None:
    write_texts(ready.host.root, {"LoaderConfigTimeoutOneShot": "menu-force"})


def encrypted(ready: Campaigning) -> None:
    with_open_disk(ready.host.root, programs(ready))


def key_file(ready: Campaigning) -> None:
    encrypted(ready)
    write("/crypto_keyfile.bin", "key")(ready)


def silent(ready: Campaigning) -> None:
    programs(ready).answer("busctl", error=ProgramError("cannot run busctl: not installed"))


def other_options(ready: Campaigning) -> None:
    ready.provable.loader.options = "root=/dev/sdb2"


def uncertain(ready: Campaigning) -> None:
    ready.provable.loader.unclear = "nothing says what boots"


AGAINST: dict[str, Callable[[Campaigning], object]] = {
    "pacman is at work": write(LOCK, ""),
    "holder 1 keeps": inhibited("shutdown:sleep", "block"),
    "root is logged in": logged_in(0, "root"),
    "alice is logged in": logged_in(1001, "alice"),
    "bob is logged in": logged_in(1002, "bob", "user-light"),
    "not installed": silent,
    "fwupd, which somebody else has selected": selected(OneShotState.OTHERS),
    "not selected for the next boot any more": selected(OneShotState.NONE),
    "no bytes": selected(OneShotState.UNREADABLE),
    f"{KERNEL} was changed": write(KERNEL, "the next kernel"),
    f"{IMAGE} was changed": write(IMAGE, "the next image"),
    f"{SLOT} was changed": write(SLOT, "not what was verified"),
    "command line was changed": other_options,
    "nothing says what boots": uncertain,
    "setup is to be shown": indicated(0x01),
    "update is to be installed": indicated(0x8000_0000_0000_0004),
    "the system is to be recovered": indicated(0x20),
    "the platform is to be recovered": indicated(0x40),
    "show its menu": menu,
    "update the system (/system-update)": write("/system-update", ""),
    "scheduled": write("/run/systemd/shutdown/scheduled", "MODE=poweroff\n"),
    f"the passphrase of {DEVICE}": encrypted,
}
"""What is against a reboot, by some of the words in which that is told."""

HARMLESS: dict[str, Callable[[Campaigning], object]] = {
    "an inhibitor that delays": inhibited("shutdown", "delay"),
    "an inhibitor of sleep": inhibited("sleep", "block"),
    "a greeter": logged_in(110, "gdm", "greeter"),
    "a job of cron's": logged_in(0, "root", "background"),
    "other bits": indicated(0x02 | 0x08 | 0x10),
    "a key file": key_file,
}


def rebooted(ready: Campaigning) -> bool:
    return any(argv[:2] == ("systemctl", "reboot") for argv in programs(ready).argvs)


def told(ready: Campaigning) -> bool:
    return any(argv[0] == "wall" for argv in programs(ready).argvs)


def slept(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> list[float]:
    """Have time pass at once, and this happen meanwhile; return the list of how long it was."""
    seconds: list[float] = []

    def sleep(some: float) -> None:
        seconds.append(some)
        meanwhile()

    monkeypatch.setattr(time, "sleep", sleep)
    return seconds


@pytest.mark.parametrize("attended", [True, False], ids=["attended", "unattended"])
@pytest.mark.parametrize("words", AGAINST)
def test_the_machine_is_not_rebooted_while_something_is_against_it(
    ready: Campaigning, words: str, attended: bool
) -> None:
    AGAINST[words](ready)
    with pytest.raises(UnsafeError) as caught:
        reboot(ready.host, attended=attended)
    assert words in caught.value.message
    assert not rebooted(ready)


@pytest.mark.parametrize("words", AGAINST)
def test_what_begins_after_the_announcement_counts(
    ready: Campaigning, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    slept(monkeypatch, lambda: AGAINST[words](ready))
    with pytest.raises(UnsafeError) as caught:
        reboot_unattended(ready.host)
    assert words in caught.value.message
    assert told(ready)
    assert not rebooted(ready)


@pytest.mark.parametrize("words", AGAINST)
def test_nobody_is_told_of_a_reboot_that_does_not_come(
    ready: Campaigning, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    seconds = slept(monkeypatch, lambda: None)
    AGAINST[words](ready)
    with pytest.raises(UnsafeError) as caught:
        reboot_unattended(ready.host)
    assert words in caught.value.message
    assert "\n" not in caught.value.with_hint
    assert (told(ready), seconds, rebooted(ready)) == (False, [], False)


@pytest.mark.parametrize("name", HARMLESS)
def test_what_stands_in_nobody_s_way_is_passed_over(
    ready: Campaigning, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    seconds = slept(monkeypatch, lambda: None)
    HARMLESS[name](ready)
    assert reboot_unattended(ready.host) == ("the machine reboots for a trial",)
    assert (told(ready), seconds, rebooted(ready)) == (True, [60], True)


def test_all_that_is_against_it_is_told_in_one_line(ready: Campaigning) -> None:
    for words in ("holder 1 keeps", "alice is logged in", "show its menu"):
        AGAINST[words](ready)
    with pytest.raises(UnsafeError) as caught:
        reboot(ready.host, attended=False)
    assert caught.value.with_hint == (
        "the machine is not rebooted for a trial: the boot loader was asked to show its menu at "
        "the next boot; alice is logged in; holder 1 keeps the machine from shutting down: work "
        "(the boot stays armed, for whenever it is rebooted)"
    )


@pytest.mark.parametrize(
    ("login", "sudo"), [(str(MINE), None), (str(0xFFFFFFFF), str(MINE)), ("", str(MINE))]
)
def test_whoever_looks_on_is_in_nobody_s_way_but_everybody_else_is(
    ready: Campaigning, monkeypatch: pytest.MonkeyPatch, login: str, sudo: str | None
) -> None:
    ready.provable.machine.write("/proc/self/loginuid", login)
    monkeypatch.delenv("SUDO_UID", raising=False)
    if sudo:
        monkeypatch.setenv("SUDO_UID", sudo)
    logged_in(MINE, "me")(ready)
    with pytest.raises(UnsafeError, match="me is logged in"):
        reboot(ready.host, attended=False)
    assert reboot(ready.host, attended=True)
    assert rebooted(ready)


def test_who_has_come_without_a_login_is_the_process_s_user(
    ready: Campaigning, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready.provable.machine.write("/proc/self/loginuid", str(0xFFFFFFFF))
    monkeypatch.delenv("SUDO_UID", raising=False)
    logged_in(os.getuid(), "me")(ready)
    assert reboot(ready.host, attended=True)


def test_nobody_begins_between_the_last_look_and_the_reboot(ready: Campaigning) -> None:
    """Package managers and other runs of ours are kept out until systemctl has returned."""
    seen: list[bool] = []

    def calling(stdin: bytes) -> bytes:
        seen.append(ready.host.path(LOCK).exists())
        with (
            pytest.raises(InitadvisorError, match="is already running"),
            transactions(ready.host, wait_s=0),
        ):
            pass
        return stdin

    programs(ready).answer("systemctl reboot", filter=calling)
    assert reboot(ready.host, attended=False)
    assert seen == [True]
    assert not ready.host.path(LOCK).exists()
    *_, users, inhibitors, last = programs(ready).argvs
    assert (users[-1], inhibitors[-1]) == ("ListSessions", "ListInhibitors")
    assert last == ("systemctl", "reboot", "--check-inhibitors=yes")


@pytest.mark.parametrize("attended", [True, False])
def test_a_reboot_goes_through_firmware_and_boot_loader(ready: Campaigning, attended: bool) -> None:
    assert reboot(ready.host, attended=attended)
    assert programs(ready).calls[-1].env == {
        "SYSTEMCTL_SKIP_AUTO_KEXEC": "1",
        "SYSTEMCTL_SKIP_AUTO_SOFT_REBOOT": "1",
    }


@pytest.mark.parametrize("ending", [pause, stop])
def test_a_campaign_that_is_not_on_any_more_reboots_nothing(
    ready: Campaigning, monkeypatch: pytest.MonkeyPatch, ending: Callable[[Host], object]
) -> None:
    slept(monkeypatch, lambda: ending(ready.host))
    assert reboot_unattended(ready.host) == ()
    assert ("systemctl", "stop", UNIT) in programs(ready).argvs
    assert not rebooted(ready)
    programs(ready).calls.clear()
    assert reboot_unattended(ready.host) == ()
    assert not told(ready)


def test_a_boot_that_was_taken_back_is_not_rebooted_for(ready: Campaigning) -> None:
    take_back(ready.host)
    with pytest.raises(UnsafeError, match="no boot is armed for the time being"):
        reboot(ready.host, attended=False)


def test_a_boot_that_was_armed_in_an_earlier_one_is_not_rebooted_for(ready: Campaigning) -> None:
    ready.reboot()
    with pytest.raises(UnsafeError, match="no boot is armed for the time being"):
        reboot(ready.host, attended=False)


def test_that_nobody_can_be_told_is_no_reason_not_to(
    ready: Campaigning, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept(monkeypatch, lambda: None)
    programs(ready).answer("wall", error=ProgramError("cannot run wall: not installed"))
    assert reboot_unattended(ready.host)
    assert rebooted(ready)


@pytest.mark.parametrize("reboots", [True, False])
def test_the_unit_is_started_only_where_it_was_asked_for(ready: Campaigning, reboots: bool) -> None:
    started = ("systemctl", "restart", "--no-block", UNIT)
    pause(ready.host)
    ready.candidates.pop("gzip")
    campaigns.resume(ready.host, observer=Unseen(), reboots=reboots)
    assert started not in programs(ready).argvs  # whoever looks on reboots
    ready.boot()
    assert ready.record.state is CampaignState.ARMED
    assert (started in programs(ready).argvs) is reboots


def test_a_unit_that_cannot_be_started_leaves_the_boot_armed(ready: Campaigning) -> None:
    error = ProgramError("Unit not found")
    programs(ready).answer("systemctl restart", error=error)
    ready.reboot()
    assert "the machine does not reboot by itself: Unit not found" in ready.settle()
    assert ready.provable.loader.is_armed


def test_a_campaign_ends_where_nothing_can_be_called_off(ready: Campaigning) -> None:
    """What waits finds no boot that it may reboot for."""
    programs(ready).answer("systemctl stop", error=ProgramError("systemd does not answer"))
    stop(ready.host)
    assert ready.record.state is CampaignState.STOPPED


def test_a_machine_that_asks_for_a_passphrase_is_not_rebooted_by_itself(
    ready: Campaigning,
) -> None:
    stop(ready.host)
    encrypted(ready)
    words = f"it asks for the passphrase of {DEVICE}"
    for ignore in (False, True):
        options = CampaignOptions(reboots=True, ignore_unlocking=ignore)
        with pytest.raises(UnsafeError, match=words) as caught:
            campaigns.start(ready.host, options, observer=Unseen())
        assert "leave --reboot out" in caught.value.with_hint
    ready.start(reboots=False)
    assert ready.provable.loader.is_armed
    pause(ready.host)
    with pytest.raises(UnsafeError, match=words):
        campaigns.resume(ready.host, observer=Unseen(), reboots=True)
    assert ready.record.state is CampaignState.PAUSED
    assert not ready.record.reboots


def test_overriding_what_a_key_is_bound_to_takes_a_person(ready: Campaigning) -> None:
    stop(ready.host)
    with_open_disk(ready.host.root, programs(ready), {"type": "systemd-tpm2", "tpm2-pcrs": [9]})
    options = CampaignOptions(reboots=True, ignore_unlocking=True)
    with pytest.raises(UnsafeError, match="PCR 9"):
        campaigns.start(ready.host, options, observer=Unseen())
