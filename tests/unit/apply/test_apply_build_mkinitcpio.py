"""mkinitcpio's own ways while a setting is applied: a layout for cat, and cat without a word."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from initadvisor.apply import plan
from initadvisor.apply.apply import apply
from initadvisor.apply.build import staged_images
from initadvisor.apply.rollback import plan_rollback, rollback
from initadvisor.cli.apply import print_applied
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.core.settings import Setting
from initadvisor.generators import mkinitcpio
from initadvisor.image.difference import ImageDifference
from initadvisor.lab.observing import Unseen
from initadvisor.target import target as target_module
from tests.fakes.boot_loader import FakeLoader
from tests.fakes.compressors import COMPRESSORS
from tests.fakes.observers import Watching
from tests.fixtures.dracut_machine import (
    IMMEDIATE,
    ZSTD,
    generator,
    make_appliable,
    planned,
    snapshot,
)
from tests.fixtures.hosts import RELEASE
from tests.fixtures.images import archive, padded
from tests.fixtures.small_images import uki

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.apply.plan_values import ApplyPlan
    from tests.fakes.generators import Ordered
    from tests.fixtures.hosts import Machine


def laid_out(codec: Codec) -> bytes:
    """Return an image as mkinitcpio lays it out: what is compressed already goes in front."""
    module, rest = {"lib/x.ko.zst": b"\x28\xb5\x2f\xfdmodule"}, {"init": b"the same line\n" * 900}
    if codec is Codec.CAT:
        return archive({**module, **rest})
    return padded(archive(module)) + COMPRESSORS[codec](archive(rest))


def mkinitcpio_codec(order: Ordered) -> Codec:
    """Return what the configuration asks for: the last assignment counts."""
    (text,) = order.config.values()
    return Codec(re.findall(r"^COMPRESSION=\"?(\w+)", text, re.MULTILINE)[-1])


def as_mkinitcpio(order: Ordered) -> None:
    """Build what was ordered."""
    write_laid_out(order, mkinitcpio_codec(order))


def write_laid_out(order: Ordered, codec: Codec) -> None:
    """Write an image, as a unified kernel image where that was ordered."""
    image = laid_out(codec)
    order.image.write_bytes(uki(image) if "-U" in order.argv else image)


def _nothing_weighed(*_args: object, **_named: object) -> None:
    msg = "nothing is weighed"
    raise InitadvisorError(msg)


@pytest.fixture
def arch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine whose mkinitcpio has one preset, with an image and a unified kernel image."""
    found, loader = make_appliable(tmp_path, monkeypatch)
    loader.image = "/boot/linux.img"
    monkeypatch.setattr(target_module, "detect_generator", lambda _host: mkinitcpio)
    monkeypatch.setattr(plan, "recommend", _nothing_weighed)
    monkeypatch.setattr(plan, "_against_a_proving_boot", lambda _host: ())
    texts = {
        "/usr/bin/mkinitcpio": "declare -r version='41'\n",
        "/etc/mkinitcpio.conf": "HOOKS=(base)\nCOMPRESSION=gzip\n",
        "/etc/mkinitcpio.d/linux.preset": (
            f"PRESETS=(default)\nALL_kver={RELEASE}\n"
            "default_image=/boot/linux.img\ndefault_uki=/efi/linux.efi\n"
        ),
    }
    for name, text in texts.items():
        found.path(name).parent.mkdir(parents=True, exist_ok=True)
        found.path(name).write_text(text)
    found.path("/boot/linux.img").write_bytes(laid_out(Codec.GZIP))
    found.path("/efi").mkdir()
    found.path("/efi/linux.efi").write_bytes(uki(laid_out(Codec.GZIP)))
    return found


@pytest.mark.parametrize("text", ["zstd", "cat"])
def test_image_and_uki_are_built_whatever_the_layout(arch: Machine, text: str) -> None:
    setting = Setting.parse(text)
    generator(arch).make = as_mkinitcpio
    with staged_images(arch, mkinitcpio, planned(arch, setting), observer=Unseen()) as found:
        assert [(one.image.uki, one.codec) for one in found] == [
            (False, setting.codec),
            (True, setting.codec),
        ]
        assert [one.updates for one in found] == [ImageDifference()] * 2


def test_its_silent_fall_back_to_cat_is_found_out(arch: Machine) -> None:
    def without_xz(order: Ordered) -> None:
        found = mkinitcpio_codec(order)
        write_laid_out(order, Codec.CAT if found is Codec.XZ else found)

    generator(arch).make = without_xz
    with (
        pytest.raises(UnsafeError, match=r"mkinitcpio made .*linux\.img with cat, not with xz"),
        staged_images(arch, mkinitcpio, planned(arch, Setting(Codec.XZ)), observer=Unseen()),
    ):
        pytest.fail("nothing may be handed out")


def test_a_preset_that_chooses_for_itself_is_in_the_way(arch: Machine) -> None:
    preset = arch.path("/etc/mkinitcpio.d/linux.preset")
    preset.write_text(preset.read_text() + "default_options='-z lz4'\n")
    with pytest.raises(UnsafeError, match="it would use lz4 all the same"):
        planned(arch, Setting(Codec.XZ))


RESCUE = "/boot/rescue.img"


@pytest.fixture
def drifted(arch: Machine) -> Machine:
    """The same machine with a fallback image, which was built before something was updated."""
    preset = arch.path("/etc/mkinitcpio.d/linux.preset")
    text = preset.read_text().replace("(default)", "(default fallback)")
    preset.write_text(f"{text}fallback_image={RESCUE}\n")
    arch.path(RESCUE).write_bytes(COMPRESSORS[Codec.GZIP](archive({"init": b"older\n"})))
    generator(arch).make = as_mkinitcpio
    return arch


def test_a_fallback_image_that_a_rebuild_changes_stays_and_the_others_are_replaced(
    drifted: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    before = snapshot(drifted)
    plan_now = planned(drifted, ZSTD)
    assert [one.may_stay for one in plan_now.images] == [False, False, True]
    (warning,) = [text for text in plan_now.warnings if "rescue.img" in text]
    assert "stays as it is where a rebuild has other files than it" in warning
    done = apply(drifted, plan_now, IMMEDIATE, observer=Watching())
    print_applied(done)
    path = drifted.path(RESCUE)
    assert f"{path} stays as it is: a rebuild has 3 other files\n" in capsys.readouterr().out
    assert {change.path for change in done.transaction.files} == {
        "/boot/linux.img",
        "/efi/linux.efi",
        "/etc/mkinitcpio.conf",
    }
    assert mkinitcpio.configured(drifted, RELEASE).setting == ZSTD
    after = snapshot(drifted)
    changed = {name for name, content in before.items() if after[name] != content}
    assert changed == {str(drifted.path(p)) for p in ("/boot/linux.img", "/etc/mkinitcpio.conf")}
    way_back = plan_rollback(drifted)
    assert way_back is not None
    rollback(drifted, way_back, observer=Unseen())
    assert {name: snapshot(drifted)[name] for name in before} == before


def test_only_a_fallback_image_stays_and_only_where_others_boot(
    drifted: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = snapshot(drifted)

    def refused(wanted: ApplyPlan, words: str) -> None:
        now = snapshot(drifted)
        with pytest.raises(UnsafeError, match=words):
            apply(drifted, wanted, IMMEDIATE, observer=Watching())
        assert snapshot(drifted) == now

    differs = r"rescue\.img: a rebuild has 3 other files"
    refused(planned(drifted, ZSTD, everything=True), differs)
    earlier = planned(drifted, ZSTD)
    with monkeypatch.context() as patched:
        FakeLoader(image=RESCUE).use(patched)
        refused(planned(drifted, ZSTD), differs)
        refused(earlier, r"would not use .*linux\.img: the default entry loads /boot/rescue\.img")
    drifted.path("/boot/linux.img").write_bytes(drifted.path(RESCUE).read_bytes())
    refused(planned(drifted, ZSTD), r"linux\.img: a rebuild has 3 other files")
    accepted = replace(IMMEDIATE, accept_content_changes=True)
    done = apply(drifted, planned(drifted, ZSTD), accepted, observer=Watching())
    assert done.left == ()
    assert snapshot(drifted)[str(drifted.path(RESCUE))] != before[str(drifted.path(RESCUE))]
