"""Campaigns with every boot loader's own code: one boot each, and not a byte left or changed."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from initadvisor.bootloaders.entry import OneShotState
from initadvisor.bootloaders.systemd_boot import systemd_boot
from initadvisor.boots.loaded_files import loaded_part
from initadvisor.campaign.campaign import (
    Campaign,
    CampaignEvent,
    CampaignEventKind,
    CampaignState,
    TrialCandidate,
)
from initadvisor.campaign.record import read_campaign
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import UnfitImageError, UnsafeError
from initadvisor.generators import InstalledImage
from initadvisor.host import Host
from initadvisor.lab.observing import Unseen
from initadvisor.records.boot_start import TRIAL_TAG
from initadvisor.trial import beside as trial_beside
from initadvisor.trial import (
    campaign_actions,
    campaigns,
    candidates,
    default_boot,
    recovery,
    run,
)
from initadvisor.trial.campaigns import CampaignOptions, advance, pause, resume, start, stop
from initadvisor.trial.candidates import NextTrial
from initadvisor.trial.markers import forget_rehearsed, note_rehearsed
from initadvisor.trial.reboot import reboot
from tests.fakes.boot_programs import block
from tests.fixtures.images import pe
from tests.fixtures.loader_machines import LOADERS, Machine
from tests.fixtures.logind import with_nobody
from tests.fixtures.owners import OWNER
from tests.fixtures.small_images import guarded_image, signed
from tests.fixtures.trees import GLOBAL, write, write_texts, write_variable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from initadvisor.bootloaders import BootLoader

IMAGE = guarded_image(8, codec=Codec.LZ4)
RELEASE = "6.1.0-50-amd64"
BOOT = "11111111-1111-4111-8111-111111111111"
Case = tuple["BootLoader", Machine]


@pytest.fixture(params=LOADERS)
def case(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    """Return a loader that was rehearsed, with a machine that it boots and one candidate."""
    loader, make = LOADERS[request.param]
    return rehearsed(loader, make(tmp_path / "machine"), monkeypatch)


def rehearsed(loader: BootLoader, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Case:
    """Have the machine know its image, one candidate, and that its loader boots an entry once."""
    tmp_path = machine.root.parent
    for name in ("state", "cache"):
        monkeypatch.setenv(f"{name.upper()}_DIRECTORY", str(tmp_path / name))
    write(machine.root, "proc/sys/kernel/random/boot_id", f"{BOOT}\n")
    write(machine.root, "proc/sys/kernel/osrelease", f"{RELEASE}\n")
    (machine.root / "proc/1").mkdir(parents=True)
    (machine.root / "proc/1/root").symlink_to(machine.root, target_is_directory=True)
    is_uki = machine.installed.endswith(".efi")
    path = machine.host.path(machine.installed)
    installed = InstalledImage(path=path, kernel_release=RELEASE, uki=is_uki)
    generator = SimpleNamespace(NAME="initramfs-tools", images=lambda _host: (installed,))
    candidate = tmp_path / "candidate.img"
    candidate.write_bytes(IMAGE)
    for module in (campaign_actions, default_boot, recovery):
        monkeypatch.setattr(module, "detect_generator", lambda _host: generator)
    monkeypatch.setattr(Host, "is_root", property(lambda _self: True))
    monkeypatch.setattr(Host, "kernel_release", lambda _self: RELEASE)
    monkeypatch.setattr(campaigns, "require_boot_time_unit", lambda _host: None)
    monkeypatch.setattr(run, "busy_package_managers", lambda _host: ())
    monkeypatch.setattr(candidates, "prepared", partial_of(machine, candidate))
    monkeypatch.setattr(candidates, "next_trial", chosen)
    note_rehearsed(machine.host, loader.NAME)
    return loader, machine


def partial_of(machine: Machine, path: Path) -> object:
    """Return what has one candidate prepared."""

    def prepared(_host: Host, _campaign: Campaign, *, observer: object) -> Iterator[CampaignEvent]:
        del observer
        ready = (
            todays(machine),
            TrialCandidate(
                setting="lz4",
                path=str(path),
                sha256=hashlib.sha256(IMAGE).hexdigest(),
                size_bytes=len(IMAGE),
            ),
        )
        yield CampaignEvent(kind=CampaignEventKind.PREPARED, ready=ready)

    return prepared


def todays(machine: Machine) -> TrialCandidate:
    """Return today's image."""
    today = initramfs_of(machine.host.path(machine.installed))
    return TrialCandidate(
        setting="zstd",
        path=machine.installed,
        sha256=hashlib.sha256(today).hexdigest(),
        size_bytes=len(today),
        today=True,
    )


def initramfs_of(path: Path) -> bytes:
    """Return what is loaded of an image."""
    with path.open("rb") as file:
        part = loaded_part(file, is_uki=path.suffix == ".efi")
        file.seek(part.offset)
        return file.read(part.size_bytes)


def chosen(_host: Host, found: Campaign, *, observer: object) -> NextTrial:
    """Choose the candidate, unless it is out."""
    del observer
    if found.quarantined:
        return NextTrial(candidate=None, reason="nothing is left")
    return NextTrial(candidate=found.ready[1], reason="it is the only one")


def begin(machine: Machine) -> None:
    """Begin a campaign."""
    start(machine.host, CampaignOptions(), observer=Unseen())


def slot(machine: Machine) -> Path:
    return machine.host.path(machine.installed).with_name(f".initadvisor-{OWNER}-trial")


def test_the_candidate_is_selected_for_one_boot(case: Case) -> None:
    loader, machine = case
    default = loader.default_entry(machine.host)
    begin(machine)
    found = read_campaign(machine.host)
    assert (found.state, found.reason) == (CampaignState.ARMED, "the next boot is of lz4")
    assert slot(machine).read_bytes() == IMAGE
    assert loader.armed(machine.host).state is OneShotState.OURS
    assert loader.default_entry(machine.host) == default
    assert found.current is not None
    assert any(
        word.startswith(f"{TRIAL_TAG}=trial-1-") for word in found.current.armed_boot.extra_cmdline
    )
    assert "panic=30" in found.current.armed_boot.extra_cmdline
    selected = loader.armed(machine.host).identifier or ""
    assert selected != default.identifier
    assert selected.startswith(machine.reboots() or "nothing")
    assert machine.reboots() is None


@pytest.mark.parametrize("rebooted", [False, True])
def test_stopping_leaves_not_a_byte_changed(case: Case, rebooted: bool) -> None:
    loader, machine = case
    before = machine.tree()
    begin(machine)
    assert machine.tree() != before
    if rebooted:
        machine.reboots()
    stop(machine.host)
    after = machine.tree()
    if rebooted:  # GRUB has emptied its variable itself, which is as good as unset
        after = {name: text for name, text in after.items() if not name.endswith("grubenv")}
        before = {name: text for name, text in before.items() if not name.endswith("grubenv")}
    assert after == before
    assert loader.armed(machine.host).state is OneShotState.NONE
    assert read_campaign(machine.host).state is CampaignState.STOPPED


@pytest.mark.parametrize("what", ["the record emptied", "the record gone", "all gone"])
def test_stopping_without_a_record_leaves_not_a_byte_changed(case: Case, what: str) -> None:
    loader, machine = case
    before = machine.tree()
    begin(machine)
    record = machine.host.state_dir() / "campaigns/000001.json"
    match what:
        case "the record emptied":
            record.write_bytes(b"")
        case "the record gone":
            record.unlink()
        case _:
            shutil.rmtree(machine.host.state_dir())
    stop(machine.host)
    assert machine.tree() == before
    assert loader.armed(machine.host).state is OneShotState.NONE
    stop(machine.host)
    assert machine.tree() == before


def test_pausing_and_resuming(case: Case) -> None:
    loader, machine = case
    before = machine.tree()
    begin(machine)
    pause(machine.host)
    assert machine.tree() == before
    resume(machine.host, observer=Unseen())
    assert loader.armed(machine.host).state is OneShotState.OURS
    stop(machine.host)
    assert machine.tree() == before


def test_what_others_have_selected_stays_theirs(case: Case) -> None:
    """Nothing is armed, and nothing of theirs taken back."""
    loader, machine = case
    begin(machine)
    pause(machine.host)
    default = loader.default_entry(machine.host).identifier
    if loader.NAME == "grub":
        machine.host.runner.run(
            [program(machine), f"--boot-directory={machine.root}/boot", "0"], timeout_s=9
        )
    elif loader.NAME == "systemd-boot":
        machine.host.runner.run(["bootctl", "set-oneshot", default], timeout_s=9)
    else:
        machine.host.runner.run(
            ["efibootmgr", "--bootnext", default.removeprefix("Boot")], timeout_s=9
        )
    theirs = machine.tree()
    resume(machine.host, observer=Unseen())
    assert read_campaign(machine.host).state is CampaignState.CHOOSING
    assert machine.tree() == theirs
    with pytest.raises(UnsafeError):
        campaigns.require_startable(machine.host, CampaignOptions())
    machine.reboots()
    advance(machine.host)
    assert read_campaign(machine.host).state is CampaignState.ARMED


def begin_to_reboot(machine: Machine) -> None:
    """Begin a campaign that reboots by itself, on a machine that nobody works at."""
    with_nobody(machine.programs)
    machine.programs.answer("systemctl reboot", "")
    write(machine.root, machine.installed, IMAGE + bytes(512))
    start(machine.host, CampaignOptions(reboots=True), observer=Unseen())


def one_shot(machine: Machine) -> str:
    """Have somebody select an entry of systemd-boot's for the next boot."""
    write_texts(machine.root, {"LoaderEntryOneShot": "windows.conf"})
    return "windows.conf"


def boot_next(machine: Machine) -> str:
    """Have somebody, fwupd say, select an option of the firmware's."""
    write_variable(machine.root, "BootNext", b"\x0d\0", GLOBAL)
    return "Boot000D"


def next_entry(machine: Machine) -> str:
    """Have somebody select an entry of GRUB's."""
    [*environments] = machine.root.glob("boot/grub*/grubenv")
    if not environments:
        write(machine.root, "/boot/grub/grub.cfg", "")
    path = environments[0] if environments else machine.root / "boot/grub/grubenv"
    path.write_text(block("next_entry=memtest"))
    return "memtest"


@pytest.mark.parametrize("select", [one_shot, boot_next, next_entry])
def test_no_loader_s_selection_by_others_is_rebooted_into(
    case: Case, select: Callable[[Machine], str]
) -> None:
    """Whichever loader the trial is armed in: another one may have its say, too."""
    _, machine = case
    begin_to_reboot(machine)
    named = select(machine)
    before = machine.tree()
    for attended in (True, False):
        with pytest.raises(UnsafeError, match="somebody else has selected") as caught:
            reboot(machine.host, attended=attended)
        assert named in caught.value.message
    assert machine.tree() == before
    assert ("systemctl", "reboot") not in {argv[:2] for argv in machine.programs.argvs}


def test_what_is_armed_is_rebooted_into(case: Case) -> None:
    loader, machine = case
    begin_to_reboot(machine)
    assert reboot(machine.host, attended=False)
    assert machine.programs.argvs[-1][:2] == ("systemctl", "reboot")
    loader.disarm(machine.host)
    with pytest.raises(UnsafeError, match="not selected for the next boot any more"):
        reboot(machine.host, attended=False)


def program(machine: Machine) -> str:
    return next(name for name in machine.programs.programs if name.endswith("-reboot"))


UKI = f"/efi/EFI/Linux/debian-{RELEASE}.efi"


def unified(initramfs: bytes) -> bytes:
    """Return a unified kernel image."""
    magic = (".sdmagic", b"#### LoaderInfo: systemd-stub 257.13 ####\0")
    kernel = (".linux", b"MZ kernel")
    return pe([magic, kernel, (".cmdline", b"root=UUID=7"), (".initrd", initramfs)])


@pytest.fixture
def of_uki(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    """Return a machine of systemd-boot's that boots a unified kernel image of ukify's."""
    loader, make = LOADERS["systemd-boot"]
    machine = make(tmp_path / "machine")
    write(machine.root, UKI, unified(b"today's"))
    write(machine.root, "/efi/loader/loader.conf", f"default debian-{RELEASE}.efi\n")
    machine.programs.listed = f'[{{"id": "debian-{RELEASE}.efi"}}]'
    machine.installed = UKI
    monkeypatch.setattr(trial_beside, "can_unify", lambda _host: True)
    return rehearsed(loader, machine, monkeypatch)


def ukify(image: Callable[[bytes], bytes]) -> Callable[..., None]:
    """Return what makes a unified kernel image of an initramfs, instead of ``unify``."""

    def make(_host: Host, installed: InstalledImage, initramfs: Path, target: Path) -> None:
        assert installed.uki
        target.write_bytes(image(initramfs.read_bytes()))

    return make


def test_a_candidate_is_made_unified_as_today_s_image_is(
    of_uki: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader, machine = of_uki
    before = machine.tree()
    monkeypatch.setattr(campaign_actions, "unify", ukify(unified))
    begin(machine)
    found = read_campaign(machine.host)
    assert (found.state, found.reason) == (CampaignState.ARMED, "the next boot is of lz4")
    assert slot(machine).read_bytes() == unified(IMAGE)
    assert loader.armed(machine.host).state is OneShotState.OURS
    assert found.current is not None
    armed = found.current.armed_boot
    digest = hashlib.sha256(IMAGE).hexdigest()
    assert (armed.is_uki, armed.sha256, armed.size_bytes) == (True, digest, len(IMAGE))
    assert f"root=UUID=7 {TRIAL_TAG}=trial-1-" in (
        armed.bound_to.armed_entry if armed.bound_to else ""
    )
    stop(machine.host)
    assert machine.tree() == before


def test_what_does_not_hold_the_candidate_is_not_booted(
    of_uki: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader, machine = of_uki
    monkeypatch.setattr(campaign_actions, "unify", ukify(lambda data: unified(data + bytes(512))))
    begin(machine)
    assert loader.armed(machine.host).state is OneShotState.NONE
    assert not slot(machine).exists()
    (refused,) = read_campaign(machine.host).quarantined
    assert refused.reason == "what ukify made of lz4 does not hold it"


def test_without_ukify_no_uki_is_tried(of_uki: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    _, machine = of_uki
    monkeypatch.setattr(trial_beside, "can_unify", lambda _host: False)
    with pytest.raises(UnsafeError, match="ukify is not installed"):
        begin(machine)
    # Today's image, to try the loader, is there already.
    forget_rehearsed(machine.host)
    monkeypatch.setattr(candidates, "todays_image", lambda _host: todays(machine))
    start(machine.host, CampaignOptions(only_rehearsal=True), observer=Unseen())
    assert read_campaign(machine.host).state is CampaignState.ARMED


_SIGNATURE = b"signed"


@pytest.fixture
def enforcing(of_uki: Case, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return it with Secure Boot on, and what can sign."""
    _, machine = of_uki
    write_variable(machine.root, "SecureBoot", b"\1", GLOBAL)
    write_variable(machine.root, "SetupMode", b"\0", GLOBAL)
    write(machine.root, "/etc/kernel/uki.conf", "[UKI]\nSecureBootPrivateKey=key\n")
    path = machine.host.path(machine.installed)
    path.write_bytes(signed(path.read_bytes()) + _SIGNATURE)
    monkeypatch.setattr(type(machine.programs), "which", with_ukify(type(machine.programs).which))
    monkeypatch.setattr(campaign_actions, "unify", ukify(lambda data: unified(data) + _SIGNATURE))
    monkeypatch.setattr(trial_beside, "make_addon", signed_addon)
    monkeypatch.setattr(trial_beside, "signers", lambda _host, _image: {"key"})
    for module in (trial_beside, campaign_actions):
        monkeypatch.setattr(module, "require_same_signers", require_signed)
    return machine


def with_ukify(
    which: Callable[..., Path | None], place: Path | None = Path("/usr/bin/ukify")
) -> Callable[[object, str], Path | None]:
    """Return what finds ukify there, None: nowhere, and everything else as before."""
    return lambda runner, name: place if name == "ukify" else which(runner, name)


def signed_addon(_host: Host, words: Sequence[str], target: Path) -> None:
    target.write_bytes(pe([(".cmdline", " ".join(words).encode())]) + _SIGNATURE)


def require_signed(_host: Host, _installed: Path, new: Path) -> None:
    if not new.read_bytes().endswith(_SIGNATURE):
        msg = f"{new} is not signed"
        raise UnfitImageError(msg)


def beside(machine: Machine) -> Path:
    return slot(machine).with_name(f"{slot(machine).name}.extra.d")


def test_with_secure_boot_on_a_trial_s_words_lie_beside_its_image(enforcing: Machine) -> None:
    before = enforcing.tree()
    begin(enforcing)
    found = read_campaign(enforcing.host)
    assert (found.state, found.reason) == (CampaignState.ARMED, "the next boot is of lz4")
    assert slot(enforcing).read_bytes() == unified(IMAGE) + _SIGNATURE
    (written,) = beside(enforcing).iterdir()
    assert found.current is not None
    words = " ".join(found.current.armed_boot.extra_cmdline)
    assert words.startswith(f"{TRIAL_TAG}=trial-1-")
    assert words.encode() in written.read_bytes()
    stop(enforcing.host)
    assert enforcing.tree() == before


def test_with_secure_boot_on_a_copy_of_today_s_image_is_rehearsed(
    enforcing: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = enforcing.tree()
    forget_rehearsed(enforcing.host)
    monkeypatch.setattr(candidates, "todays_image", lambda _host: todays(enforcing))
    start(enforcing.host, CampaignOptions(only_rehearsal=True), observer=Unseen())
    found = read_campaign(enforcing.host)
    assert (found.state, found.reason) == (
        CampaignState.ARMED,
        "the next boot is of today's image, a rehearsal",
    )
    assert slot(enforcing).read_bytes() == enforcing.host.path(enforcing.installed).read_bytes()
    assert len(list(beside(enforcing).iterdir())) == 1
    stop(enforcing.host)
    assert enforcing.tree() == before


def unsigned_image(monkeypatch: pytest.MonkeyPatch, _machine: Machine) -> None:
    monkeypatch.setattr(campaign_actions, "unify", ukify(unified))


def unsigned_words(monkeypatch: pytest.MonkeyPatch, _machine: Machine) -> None:
    def make(_host: Host, words: Sequence[str], target: Path) -> None:
        target.write_bytes(pe([(".cmdline", " ".join(words).encode())]))

    monkeypatch.setattr(trial_beside, "make_addon", make)


def other_words(monkeypatch: pytest.MonkeyPatch, _machine: Machine) -> None:
    def make(host: Host, _words: Sequence[str], target: Path) -> None:
        signed_addon(host, ("single",), target)

    monkeypatch.setattr(trial_beside, "make_addon", make)


def later_words(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> None:
    del monkeypatch
    write(machine.root, f"{UKI}.extra.d/\u00e4.addon.efi", pe([(".cmdline", b"quiet")]))


def words_for_init(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> None:
    del monkeypatch
    write(machine.root, f"{UKI}.extra.d/init.addon.efi", pe([(".cmdline", b"quiet -- single")]))


def words_for_init_of_all(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> None:
    del monkeypatch
    write(machine.root, "/efi/loader/addons/a.addon.efi", pe([(".cmdline", b"quiet -- single")]))


def no_room(monkeypatch: pytest.MonkeyPatch, _machine: Machine) -> None:
    monkeypatch.setattr(trial_beside, "free_bytes", lambda _path: (2 << 20) - 1)


def no_key(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> None:
    monkeypatch.setattr(candidates, "prepared", None)  # nothing is built before
    write(machine.root, "/etc/kernel/uki.conf", "[UKI]\nCmdline=quiet\n")


def unsigned_default(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> None:
    monkeypatch.setattr(candidates, "prepared", None)
    write(machine.root, UKI, unified(b"today's"))


def unsigned_meanwhile(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> None:
    def make(host: Host, words: Sequence[str], target: Path) -> None:
        signed_addon(host, words, target)
        write(machine.root, UKI, unified(b"today's"))

    monkeypatch.setattr(trial_beside, "make_addon", make)


def no_ukify(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> None:
    monkeypatch.setattr(candidates, "prepared", None)
    which = with_ukify(type(machine.programs).which, place=None)
    monkeypatch.setattr(type(machine.programs), "which", which)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (unsigned_image, "is not signed"),
        (unsigned_words, "is not signed"),
        (other_words, "does not say its words"),
        (no_room, "no room for"),
        (later_words, "would come behind"),
        (words_for_init, "be for init"),
        (words_for_init_of_all, "be for init"),
        (no_key, "uki.conf names no key"),
        (no_ukify, "ukify is not installed"),
        (unsigned_default, "has no signature"),
        (unsigned_meanwhile, "has no signature"),
    ],
)
def test_with_secure_boot_on_nothing_is_armed_that_would_not_start(
    enforcing: Machine,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[pytest.MonkeyPatch, Machine], None],
    reason: str,
) -> None:
    spoil(monkeypatch, enforcing)
    with pytest.raises(UnsafeError, match=reason):
        begin(enforcing)
    assert systemd_boot.armed(enforcing.host).state is OneShotState.NONE
    assert not slot(enforcing).exists()


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (unsigned_image, "is not signed"),
        (no_key, "efi is signed, and /etc/kernel/uki.conf names no key to sign a trial's image"),
    ],
)
def test_also_with_secure_boot_off_nothing_is_armed_that_lacks_the_default_s_signature(
    enforcing: Machine,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[pytest.MonkeyPatch, Machine], None],
    reason: str,
) -> None:
    """It may be on at the next boot; what nothing can sign is not built."""
    write_variable(enforcing.root, "SecureBoot", b"\0", GLOBAL)
    spoil(monkeypatch, enforcing)
    with pytest.raises(UnsafeError, match=reason):
        begin(enforcing)
    assert systemd_boot.armed(enforcing.host).state is OneShotState.NONE
    assert not slot(enforcing).exists()


def test_what_is_beside_the_default_image_is_beside_the_trial_s(
    of_uki: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, machine = of_uki
    monkeypatch.setattr(campaign_actions, "unify", ukify(unified))
    own = f"{UKI}.extra.d"
    for name in ("machine.addon.efi", "disk.cred"):
        write(machine.root, f"{own}/{name}", name)
    beside(machine).mkdir()
    (beside(machine) / "older.cred").touch()
    begin(machine)
    found = {path.name: path.read_text() for path in beside(machine).iterdir()}
    assert found == {"machine.addon.efi": "machine.addon.efi", "disk.cred": "disk.cred"}
    write(machine.root, f"{own}/disk.cred", "another")
    advance(machine.host)
    first, again = read_campaign(machine.host).trial_boots
    assert "disk.cred is not as beside" in first.reason
    assert read_campaign(machine.host).current == again
    assert (beside(machine) / "disk.cred").read_text() == "another"
    stop(machine.host)
    assert not beside(machine).exists()


def test_an_addon_that_was_changed_is_not_armed_again(enforcing: Machine) -> None:
    begin(enforcing)
    (written,) = beside(enforcing).iterdir()
    signed_addon(enforcing.host, ("single",), written)
    advance(enforcing.host)
    first, again = read_campaign(enforcing.host).trial_boots
    assert "does not say its words since it was armed" in first.reason
    assert " ".join(again.armed_boot.extra_cmdline).encode() in written.read_bytes()


def test_an_addon_goes_with_the_image_where_somebody_has_removed_the_entry(
    enforcing: Machine,
) -> None:
    before = enforcing.tree()
    beside(enforcing).write_bytes(b"what fsck.fat has made of it")
    begin(enforcing)
    (entry,) = enforcing.root.glob("efi/loader/entries/*-trial.conf")
    entry.unlink()
    stop(enforcing.host)
    assert enforcing.tree() == before
    assert not beside(enforcing).exists()
