"""What is built is looked at before anybody may install it; what is wrong with it is refused."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
import zstandard

from initadvisor.apply import build, plan
from initadvisor.apply.build import rebuilt_images, staged_images
from initadvisor.apply.plan_values import ApplyPlan, ApplyStep, Blocker, RebuiltImage, StagedImage
from initadvisor.candidates.run_times import run_s_of
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError, ProgramError, UnsafeError
from initadvisor.core.settings import Setting
from initadvisor.generators import dracut
from initadvisor.host.lock import lock_file, locked
from initadvisor.image.contents import Verdict
from initadvisor.lab.observing import Unseen
from tests.fixtures.dracut_machine import (
    CONFIG,
    advice,
    built,
    generator,
    image,
    make_machine,
    ordered_codec,
    planned,
    snapshot,
    unlike,
)
from tests.fixtures.full_disks import files_no_longer_than
from tests.fixtures.hosts import RELEASE
from tests.fixtures.signing import Signer, make_signer
from tests.fixtures.small_images import signed, uki

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.fakes.generators import Ordered
    from tests.fixtures.hosts import Machine

_ZSTD = Setting(Codec.ZSTD)
_fast = zstandard.ZstdCompressor(level=-100).compress


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine whose dracut works."""
    found = make_machine(tmp_path, monkeypatch)
    known = advice(found, _ZSTD, "switch")
    monkeypatch.setattr(plan, "recommend", lambda *_args, **_named: known)
    monkeypatch.setattr(plan, "_of_the_boot_loader", lambda _host, _images: ())
    return found


def staged(machine: Machine, chosen: ApplyPlan | None = None) -> tuple[StagedImage, ...]:
    """Build; whatever comes of it, nothing installed has changed and nothing is left."""
    before = snapshot(machine)
    chosen = chosen or planned(machine)
    try:
        with staged_images(machine, dracut, chosen, observer=Unseen()) as found:
            assert all(one.staged.stat().st_size == one.size_bytes for one in found)
            assert all(one.staged.parent.stat().st_mode & 0o077 == 0 for one in found)
            return found
    finally:
        assert snapshot(machine) == before
        assert not (machine.cache_dir() / "apply").exists()


def rebuilt(machine: Machine) -> tuple[RebuiltImage, ...]:
    """Build what is configured, as rollback does where the former image is gone."""
    images = [one.image for one in planned(machine).rebuilt]
    with rebuilt_images(machine, dracut, images, {}, unverified=True, observer=Unseen()) as found:
        return found[0]


def unlink(path: Path) -> None:
    """Remove a file."""
    path.unlink()


def test_an_image_is_built_twice_and_compared(machine: Machine) -> None:
    (one,) = staged(machine)
    assert (one.codec, one.lint.verdict) == (Codec.ZSTD, Verdict.OK)
    assert one.updates is not None
    assert one.updates.count == 0
    control, new = generator(machine).orders
    assert control.argv == new.argv
    assert [ordered_codec(order) for order in (control, new)] == [Codec.GZIP, Codec.ZSTD]
    assert run_s_of(machine, one.image.path, Setting(Codec.ZSTD)) is not None
    assert run_s_of(machine, one.image.path, Setting(Codec.GZIP)) is None


def test_all_kernels_images_are_built_if_planned(machine: Machine) -> None:
    found = staged(machine, planned(machine, everything=True))
    assert len({one.image.path for one in found}) == 3
    assert len(generator(machine).orders) == 6


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda _order: image(Codec.CAT), "with cat, not with zstd"),
        (lambda _order: image(Codec.GZIP), "with gzip, not with zstd"),
        (lambda _order: image(Codec.ZSTD)[:-40], "no whole image"),
        (lambda _order: image(Codec.CAT)[:-600], "no whole image"),
        (lambda _order: b"no image at all", "no whole image"),
        (lambda _order: image(Codec.ZSTD, extra="etc"), "another content than with today's: etc"),
        (lambda _order: image(Codec.ZSTD, compress=_fast), "did not compress .* as zstd: it has"),
    ],
    ids=["fall-back", "other codec", "cut", "cut and plain", "garbage", "content", "level"],
)
def test_what_exits_0_and_is_wrong_is_refused(
    machine: Machine, change: Callable[[Ordered], bytes], words: str
) -> None:
    generator(machine).make = unlike(change)
    with pytest.raises(UnsafeError, match=words):
        staged(machine)


def test_where_there_is_no_room_to_compare_that_is_said(machine: Machine) -> None:
    with (
        files_no_longer_than(20_000),
        pytest.raises(InitadvisorError, match=r"cannot compare .* gives: File too large"),
    ):
        staged(machine)


@pytest.mark.parametrize(
    "error",
    [
        ProgramError("dracut exited with status 1: no space left on device"),
        ProgramError("dracut did not end within 3600 s and was killed"),
        KeyboardInterrupt(),
    ],
    ids=["fails", "hangs", "interrupted"],
)
def test_a_generator_that_does_not_end_well_leaves_nothing(
    machine: Machine, error: BaseException
) -> None:
    def half(order: Ordered) -> bytes:
        order.image.write_bytes(b"half")
        raise error

    generator(machine).make = unlike(half)
    with pytest.raises(type(error)):
        staged(machine)


def test_a_control_build_that_is_broken_is_refused_too(machine: Machine) -> None:
    def broken(order: Ordered) -> None:
        order.image.write_bytes(image(Codec.GZIP)[:-30])

    generator(machine).make = broken
    with pytest.raises(UnsafeError, match="no whole image"):
        staged(machine)
    assert len(generator(machine).orders) == 1


def test_updates_since_are_told_and_no_refusal(machine: Machine) -> None:
    def updated(order: Ordered) -> None:
        order.image.write_bytes(image(ordered_codec(order), extra="new-firmware"))

    generator(machine).make = updated
    (one,) = staged(machine)
    assert one.updates is not None
    assert one.updates.added == ("new-firmware",)


def test_an_installed_image_that_cannot_be_read_is_told(machine: Machine) -> None:
    chosen = planned(machine)
    machine.path(f"/boot/initramfs-{RELEASE}.img").write_bytes(b"damaged")
    (one,) = staged(machine, chosen)
    assert one.updates is None
    assert "neither a cpio archive" in one.unreadable


def test_an_image_that_its_kernel_would_refuse_is_refused(machine: Machine) -> None:
    machine.path(f"/boot/config-{RELEASE}").write_text("CONFIG_RD_ZSTD=y\n")
    with pytest.raises(UnsafeError, match=f"Linux {RELEASE} would not unpack"):
        staged(machine)


def test_an_obstacle_is_named_before_anything_is_built(machine: Machine) -> None:
    obstacle = Blocker(step=ApplyStep.BUILD, reason="/boot is full", remedy="make room")
    chosen = dataclasses.replace(planned(machine), blockers=(obstacle,))
    with pytest.raises(UnsafeError, match="/boot is full"):
        staged(machine, chosen)
    assert generator(machine).orders == []


@pytest.mark.parametrize("change", [lambda path: path.write_text("compress=xz\n"), unlink])
def test_a_configuration_that_changes_meanwhile_ends_it(
    machine: Machine, change: Callable[[Path], object]
) -> None:
    def edited(order: Ordered) -> None:
        built(order)
        if ordered_codec(order) is Codec.ZSTD:
            change(machine.path(CONFIG))

    generator(machine).make = edited
    chosen = planned(machine)
    with (
        pytest.raises(InitadvisorError, match="was changed while images were built"),
        staged_images(machine, dracut, chosen, observer=Unseen()),
    ):
        pytest.fail("nothing may be handed out")


def test_two_runs_do_not_interleave(machine: Machine) -> None:
    lock = lock_file(machine.cache_dir(), "apply")
    with (
        locked(lock, what="applying a setting"),
        pytest.raises(InitadvisorError, match="already running"),
    ):
        staged(machine)
    assert generator(machine).orders == []


def test_what_a_killed_run_left_is_removed_first(machine: Machine) -> None:
    litter = machine.cache_dir() / "apply/0/.partial-build"
    litter.mkdir(parents=True)
    (litter / "image").write_bytes(b"half")
    assert len(staged(machine)) == 1


def unified(order: Ordered) -> None:
    """Build a unified kernel image."""
    order.image.write_bytes(uki(image(ordered_codec(order))))


def unified_and_signed(order: Ordered) -> None:
    """Build one with a signature."""
    order.image.write_bytes(signed(uki(image(ordered_codec(order)))))


def make_unified(machine: Machine) -> Path:
    """Have dracut make unified kernel images, one of which is installed."""
    machine.path(CONFIG).write_text("compress=gzip\nuefi=yes\n")
    machine.path("/etc/machine-id").write_text("1" * 32)
    path = machine.path(f"/efi/EFI/Linux/linux-{RELEASE}-{'1' * 32}.efi")
    path.parent.mkdir(parents=True)
    path.write_bytes(uki(image(Codec.GZIP)))
    machine.path(f"/boot/initramfs-{RELEASE}.img").unlink()
    generator(machine).make = unified
    return path


def test_a_uki_without_a_signature_is_refused_where_one_is_needed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_unified(machine)
    assert [one.codec for one in staged(machine)] == [Codec.ZSTD]
    monkeypatch.setattr(build, "enforces_signatures", lambda _host: True)
    with pytest.raises(UnsafeError, match="without a signature"):
        staged(machine)
    generator(machine).make = unified_and_signed
    assert [one.image.path for one in staged(machine)] == [path]


@pytest.fixture(scope="module")
def owner(tmp_path_factory: pytest.TempPathFactory) -> Signer:
    """Whose keys this machine's firmware trusts."""
    return make_signer(tmp_path_factory.mktemp("owner"), "owner")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Signer:
    """Somebody else."""
    return make_signer(tmp_path_factory.mktemp("stranger"), "stranger")


def damaged(image: bytes) -> bytes:
    """Return a signed image that is not what was signed any more."""
    return image.replace(b"MZ kernel", b"MZ broken")


@pytest.mark.parametrize("building", [staged, rebuilt])
@pytest.mark.parametrize("secure_boot", [False, True])
@pytest.mark.parametrize(
    ("installed", "made", "why"),
    [
        ("owner", "owner", ""),
        ("owner", "owner+stranger", ""),
        ("owner", "none", "signature|not signed with the same key"),
        ("owner", "claimed", "cannot tell who signed"),
        ("owner", "stranger", "not signed with the same key"),
        ("owner", "damaged", "a signature that is of another file"),
        ("owner+stranger", "owner", "not signed with the same keys"),
        ("damaged", "owner", "a signature that is of another file"),
        ("claimed", "claimed", "cannot tell who signed"),
    ],
)
def test_a_signed_uki_is_replaced_only_by_one_that_the_same_keys_have_signed(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    owner: Signer,
    stranger: Signer,
    building: Callable[[Machine], Sequence[StagedImage | RebuiltImage]],
    secure_boot: bool,
    installed: str,
    made: str,
    why: str,
) -> None:
    monkeypatch.setattr(build, "enforces_signatures", lambda _host: secure_boot)
    ways: dict[str, Callable[[bytes], bytes]] = {
        "none": lambda plain: plain,
        "claimed": signed,
        "owner": lambda plain: owner.signed(signed(plain)),
        "stranger": lambda plain: stranger.signed(signed(plain)),
        "owner+stranger": lambda plain: stranger.signed(owner.signed(signed(plain))),
        "damaged": lambda plain: damaged(owner.signed(signed(plain))),
    }
    path = make_unified(machine)
    path.write_bytes(ways[installed](path.read_bytes()))

    def make(order: Ordered) -> None:
        order.image.write_bytes(ways[made](uki(image(ordered_codec(order)))))

    generator(machine).make = make
    if why:
        with pytest.raises(UnsafeError, match=why):
            building(machine)
    else:
        assert [one.image.path for one in building(machine)] == [path]


def test_without_openssl_no_signed_uki_is_replaced(machine: Machine, owner: Signer) -> None:
    path = make_unified(machine)
    path.write_bytes(owner.signed(signed(path.read_bytes())))
    chosen = planned(machine)
    assert chosen.blockers == ()
    generator(machine).refuses_openssl = True
    missing = planned(machine)
    assert [(blocker.step, "who signed" in blocker.reason) for blocker in missing.blockers] == [
        (ApplyStep.BUILD, True)
    ]
    with pytest.raises(UnsafeError, match="not installed"):
        staged(machine, chosen)
    assert generator(machine).orders  # found out at the end, too, if not before


def test_what_is_in_a_uki_beside_the_initramfs_is_compared_too(machine: Machine) -> None:
    path = make_unified(machine)
    path.write_bytes(path.read_bytes().replace(b"MZ kernel", b"MZ former"))
    (one,) = staged(machine)
    assert one.updates is not None
    assert [changed.path for changed in one.updates.changed] == ["section .linux"]

    def other_kernel(order: Ordered) -> bytes:
        return uki(image(ordered_codec(order))).replace(b"MZ kernel", b"MZ former")

    def make(order: Ordered) -> None:
        whole = uki(image(Codec.GZIP))
        order.image.write_bytes(
            whole if ordered_codec(order) is Codec.GZIP else other_kernel(order)
        )

    generator(machine).make = make
    with pytest.raises(UnsafeError, match=r"another content than with today's: section \.linux"):
        staged(machine)
