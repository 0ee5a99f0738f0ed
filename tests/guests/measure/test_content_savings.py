"""What less in an image is predicted to save, held against boots from a slow disk.

The machine is deterministic, and what it reads takes the same time within some percent. Images of
two generators, with all that they have and with less, are booted; a system behind their content
says how long that took. What is predicted rests on a boot of the image with everything, and on the
loader's speed, as somebody would write it into the configuration who knows it: here, by how much
longer the same image takes to be read uncompressed.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from initadvisor.advise.contents import ContentsPricing
from initadvisor.core.codecs import Codec
from initadvisor.core.estimates import Evidence
from initadvisor.measure import measure
from initadvisor.target.source import open_source
from tests.fixtures.debian import Kernel, Suite, debian
from tests.fixtures.generated import dracut_image, initramfs_tools_image
from tests.fixtures.laptop import dep_image
from tests.fixtures.payload import main_bytes, main_payload
from tests.vm.emulated import Disk, add_candidate, booted
from tests.vm.guest import Recipe, guest
from tests.vm.remembered import Memory
from tests.vm.reporter import reporter

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.advise.decision_input import DecisionResult
    from tests.vm.emulated import Candidate, Costs
    from tests.vm.guest import Guest

pytestmark = pytest.mark.vm
log = logging.getLogger(__name__)

_SETTING = "zstd -3"
_FILE_SYSTEMS = "bcachefs btrfs xfs cifs ocfs2 f2fs ceph gfs2 ubifs nfs nfsv4 jfs reiserfs ntfs3"
_DISKS = "lpfc qla2xxx qla4xxx bfa drbd mpt3sas mpt2sas megaraid_sas aacraid hpsa bcache be2iscsi"
"""Of a laptop with ext4 on NVMe no boot uses these."""
_MOST_READ_US = 60_000_000
"""The largest image takes a few seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sizes:
    """What an image is stored, unpacked, and of that out of compressed segments; in bytes."""

    stored: int
    unpacked: int
    decompressed: int


@pytest.fixture
def copy(tmp_path: Path) -> Guest:
    return guest(Recipe()).copied_to(tmp_path / "guest")


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copy: Guest) -> Memory:
    """A machine of which nothing is recorded; no other journal is told."""
    monkeypatch.setattr(measure, "announce", lambda _: None)
    for name in ("STATE", "CACHE"):
        monkeypatch.setenv(f"{name}_DIRECTORY", str(tmp_path / name))
    return Memory(root=tmp_path / "machine", guest=copy)


def images(generator: str) -> tuple[Path, dict[str, Path]]:
    """Return the image with everything, and those with less, by what that is."""
    tree = debian(Suite.TRIXIE, Kernel.FULL)
    if generator == "initramfs-tools":
        full = initramfs_tools_image(tree, Codec.ZSTD, small=False)
        return full, {"this-machine": dep_image(tree)}
    omitted = {"no-file-systems": _FILE_SYSTEMS, "no-unused": f"{_FILE_SYSTEMS} {_DISKS}"}
    return dracut_image(tree, "zstd", small=False), {
        name: dracut_image(tree, "zstd", small=False, options=("--omit-drivers", modules))
        for name, modules in omitted.items()
    }


@pytest.mark.parametrize("generator", ["initramfs-tools", "dracut"])
def test_what_is_predicted_to_be_saved_is_saved_within_15_percent(
    copy: Guest, memory: Memory, generator: str
) -> None:
    ending = reporter(copy)
    full, variants = images(generator)

    def put(name: str, image: Path, setting: str = _SETTING) -> Candidate:
        before = image.read_bytes()[: -len(main_bytes(image))]
        main = main_payload(image) + ending
        return add_candidate(copy, name, main, copy.directory, setting=setting, before=before)

    whole = put("whole", full)
    larger = put("uncompressed", full, "cat")
    boot, larger_boot = _booted(copy, whole), _booted(copy, larger)
    more_bytes = larger.size_bytes - whole.size_bytes
    loader_mb_s = more_bytes / (larger_boot.read_us - boot.read_us)
    memory.lab({whole: boot.kernel.unpack_us})
    memory.boot(boot.boot, boot.left)
    pricing = _pricing(memory, whole, loader_mb_s)
    before = _sizes(whole.image)
    for name, image in variants.items():
        less = put(name, image)
        after = _sizes(less.image)
        predicted = pricing.cost(
            before.stored - after.stored,
            before.unpacked - after.unpacked,
            before.decompressed - after.decompressed,
        )
        saved_ms = (boot.total_us - _booted(copy, less).total_us) / 1000
        log.info("%s %s: predicted %s, saved %.0f ms", generator, name, predicted, saved_ms)
        assert predicted.middle == pytest.approx(saved_ms, rel=0.15), name


def _booted(copy: Guest, image: Candidate) -> Costs:
    return booted(copy, image, Disk.SLOW, disturbed_us=_MOST_READ_US)


def _pricing(memory: Memory, image: Candidate, loader_mb_s: float) -> ContentsPricing:
    """Return what an image costs, as recorded, shared out among what is in it."""
    given = memory.given((image,), asynchronous=False, loader_mb_s=loader_mb_s)
    assert given.summary.boots_used == 1
    result = SimpleNamespace(
        posterior_costs=given, facts=memory.facts((image,)), evidence=(Evidence.BOOTS,)
    )
    with open_source(image.image) as source:
        return ContentsPricing(source.contents, cast("DecisionResult", result))


def _sizes(image: Path) -> _Sizes:
    with open_source(image) as source:
        kinds = source.contents.kinds
    return _Sizes(
        stored=sum(kind.stored_bytes for kind in kinds),
        unpacked=sum(kind.unpacked_bytes for kind in kinds),
        decompressed=sum(kind.decompressed_bytes for kind in kinds),
    )
