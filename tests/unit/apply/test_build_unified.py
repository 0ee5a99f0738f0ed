"""Unified kernel images that kernel-install has ukify make are built of what was built for them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from initadvisor.apply import plan
from initadvisor.apply.build import rebuilt_images, staged_images
from initadvisor.apply.plan_values import ApplyStep
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import UnfitImageError
from initadvisor.core.settings import Setting
from initadvisor.generators import dracut
from initadvisor.lab.observing import Unseen
from tests.fixtures.dracut_machine import (
    CONFIG,
    advice,
    generator,
    image,
    make_machine,
    ordered_codec,
    planned,
)
from tests.fixtures.hosts import RELEASE
from tests.fixtures.small_images import early_archive, uki
from tests.fixtures.trees import write

if TYPE_CHECKING:
    from tests.fakes.generators import Ordered
    from tests.fixtures.hosts import Machine

_ZSTD = Setting(Codec.ZSTD)
WRITTEN, UNIFIED = f"/boot/initrd.img-{RELEASE}", f"/efi/EFI/Linux/debian-{RELEASE}.efi"
KERNEL = f"/boot/vmlinuz-{RELEASE}"
PLUGIN = "/usr/lib/kernel/install.d/60-ukify.install"


def made(order: Ordered) -> None:
    """Do what dracut does, or ukify with what it is given."""
    is_ukify = order.argv[0] == PLUGIN
    content = uki(Path(order.argv[-1]).read_bytes()) if is_ukify else image(ordered_codec(order))
    order.image.write_bytes(content)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine of Debian's kind, where ukify is wanted; what boots is no file of dracut's."""
    found = make_machine(tmp_path, monkeypatch)
    known = advice(found, _ZSTD, "switch")
    monkeypatch.setattr(plan, "recommend", lambda *_args, **_named: known)
    monkeypatch.setattr(plan, "_of_the_boot_loader", lambda _host, _images: ())
    found.path(CONFIG).write_text("compress=gzip\n")
    write(found.root, "/etc/machine-id", f"{'1' * 32}\n")
    write(found.root, "/etc/os-release", "ID=debian\n")
    write(found.root, "/etc/kernel/install.conf", "# a comment\nlayout=uki\n")
    write(found.root, PLUGIN, "#!/usr/bin/python3\n").chmod(0o755)
    write(found.root, KERNEL, "kernel")
    found.path(f"/boot/initramfs-{RELEASE}.img").unlink()
    found.path(WRITTEN).write_bytes(image(Codec.GZIP))
    write(found.root, UNIFIED, uki(image(Codec.GZIP)))
    generator(found).make = made
    return found


def test_the_image_and_the_uki_are_of_one_build(machine: Machine) -> None:
    with staged_images(machine, dracut, planned(machine), observer=Unseen()) as found:
        contents = {one.image.path: one.staged.read_bytes() for one in found}
        assert {one.codec for one in found} == {Codec.ZSTD}
        written, unified = (contents[machine.path(name)] for name in (WRITTEN, UNIFIED))
        assert unified == uki(written)
    assert [order.argv[0] for order in generator(machine).orders] == [
        *("dracut", "dracut"),
        *(PLUGIN, PLUGIN),
    ]


def test_ukify_is_run_as_kernel_install_runs_it(machine: Machine) -> None:
    with staged_images(machine, dracut, planned(machine), observer=Unseen()):
        pass
    order = generator(machine).orders[-1]
    assert order.argv[1:-1] == ("add", RELEASE, f"/efi/debian/{RELEASE}", KERNEL)
    told = {name: value for name, value in order.env.items() if name.startswith("KERNEL_INSTALL")}
    assert told == {
        "KERNEL_INSTALL_LAYOUT": "uki",
        "KERNEL_INSTALL_UKI_GENERATOR": "ukify",
        "KERNEL_INSTALL_STAGING_AREA": str(order.image.parent),
        "KERNEL_INSTALL_ENTRY_TOKEN": "debian",
        "KERNEL_INSTALL_MACHINE_ID": "1" * 32,
    }


def test_what_goes_back_is_of_one_build_too(machine: Machine) -> None:
    images = [one.image for one in planned(machine).rebuilt]
    with rebuilt_images(machine, dracut, images, {}, unverified=True, observer=Unseen()) as found:
        written, unified = found[0]
        assert unified.staged.read_bytes() == uki(written.staged.read_bytes())


def test_a_uki_whose_initramfs_is_nowhere_else_is_built_whole(machine: Machine) -> None:
    machine.path(WRITTEN).unlink()
    with staged_images(machine, dracut, planned(machine), observer=Unseen()) as (one,):
        assert one.staged.read_bytes() == uki(image(Codec.ZSTD))
        assert {path.name for path in one.staged.parent.iterdir()} == {"control", "new"}


def test_a_uki_that_becomes_another_beside_its_initramfs_is_refused(machine: Machine) -> None:
    path = machine.path(UNIFIED)
    path.write_bytes(path.read_bytes().replace(b"MZ kernel", b"MZ former"))
    with (
        pytest.raises(UnfitImageError, match=r"with another \.linux than it has") as caught,
        staged_images(machine, dracut, planned(machine), observer=Unseen()),
    ):
        pass
    assert caught.value.hint == f"kernel-install add {RELEASE} {KERNEL} makes it anew"


def test_an_image_that_something_else_has_put_into_a_uki_is_not_lost(machine: Machine) -> None:
    machine.path(WRITTEN).unlink()
    machine.path(UNIFIED).write_bytes(uki(early_archive() + image(Codec.GZIP)))
    with (
        pytest.raises(UnfitImageError, match="2 parts of an initramfs, and a rebuild 1"),
        staged_images(machine, dracut, planned(machine), observer=Unseen()),
    ):
        pass


def test_a_uki_of_another_image_is_in_the_way(machine: Machine) -> None:
    assert planned(machine).blockers == ()
    machine.path(UNIFIED).write_bytes(uki(image(Codec.CAT)))
    (blocker,) = planned(machine).blockers
    assert blocker.step is ApplyStep.BUILD
    assert "holds another initramfs than" in blocker.reason
    assert blocker.remedy.startswith(f"kernel-install add {RELEASE} ")


@pytest.mark.parametrize(
    "text", ["layout=bls\n", "layout=uki\nuki_generator=mkinitcpio\n", "layout=uki\nlayout=other\n"]
)
def test_what_ukify_does_not_make_is_none_of_its(machine: Machine, text: str) -> None:
    machine.path("/etc/kernel/install.conf").write_text(text)
    assert {one.made_of for one in dracut.images(machine)} == {None}


def test_a_plugin_that_is_masked_makes_nothing(machine: Machine) -> None:
    assert machine.path(WRITTEN) in {one.made_of for one in dracut.images(machine)}
    machine.path("/etc/kernel/install.d").mkdir()
    machine.path("/etc/kernel/install.d/60-ukify.install").symlink_to("/dev/null")
    assert {one.made_of for one in dracut.images(machine)} == {None}
