"""Power cuts while a Debian guest applies a setting with its own generator, and goes back."""

from __future__ import annotations

import logging
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.vm.applied import recorded
from tests.vm.applying import Word, applying_guest, copying_guest, saved, unified_guest
from tests.vm.blscfg import put_blscfg
from tests.vm.crash import Kind
from tests.vm.disk import FileSystem
from tests.vm.guest import Loader
from tests.vm.power_cut import Side, cut_at, cuts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.vm.applied import Recorded
    from tests.vm.applying import Saved
    from tests.vm.crash import Outcome
    from tests.vm.guest import Guest
    from tests.vm.power_cut import Cut

pytestmark = pytest.mark.vm
log = logging.getLogger(__name__)

_CUTS = 10
SEED = 1
_FEWEST_WRITES = {FileSystem.VFAT: 50, FileSystem.EXT4: 30}
"""To /boot, where all of the work was recorded. FAT writes each changed sector by itself. ext4
commits a step to its journal by two writes, and nothing else before the work is over but content:
that of an image is ten of them, and an image and an entry are put there, kept and taken back.
"""


@pytest.fixture
def scratch() -> Iterator[Path]:
    """Return a directory that pytest does not keep: saved machines are large."""
    with tempfile.TemporaryDirectory(prefix="applying-") as directory:
        yield Path(directory)


@pytest.mark.parametrize(
    ("make", "prepare"),
    [
        pytest.param(
            partial(applying_guest, Loader.SYSTEMD_BOOT),
            None,
            marks=pytest.mark.shows("power cuts", "systemd-boot"),
            id="in place",
        ),
        pytest.param(
            copying_guest,
            None,
            marks=pytest.mark.shows("power cuts", "systemd-boot with kernel-install"),
            id="copy",
        ),
        pytest.param(
            unified_guest,
            None,
            marks=pytest.mark.shows("power cuts", "systemd-boot, unified kernel image by ukify"),
            id="unified",
        ),
        pytest.param(
            partial(applying_guest, Loader.GRUB),
            put_blscfg,
            marks=pytest.mark.shows(
                "power cuts", "GRUB with blscfg", system="Debian 13, GRUB 2.14 of sid"
            ),
            id="blscfg",
        ),
    ],
)
def test_a_guest_boots_with_old_or_new_files_whenever_its_power_was_cut(
    make: Callable[[], Guest], prepare: Callable[[Guest], None] | None, scratch: Path
) -> None:
    """The guest builds its images once, and goes on from there for all that is looked at.

    It boots the image where its generator makes it, on vfat or ext4, or on the same vfat a copy of
    it, or a unified kernel image that is made of it.
    """
    guest = saved(make(), scratch / "saved", prepare=prepare)
    reference = recorded(guest, scratch / "reference")
    _assert_no_state_is_torn(reference)

    made = list(cuts(guest, reference, _CUTS, SEED, scratch))
    if guest.guest.disk.partition("/boot").file_system is FileSystem.VFAT:
        made += _cross_linked(guest, reference, scratch)

    for cut in made:
        log.info("%s", cut)
    trouble = [f"after {cut.writes} writes: {said}" for cut in made for said in cut.trouble]
    assert not trouble, "\n".join(trouble)
    assert {cut.left for cut in made} == {Side.OLD, Side.NEW}
    assert {Word.BUILT, Word.GOING_BACK} <= {cut.said for cut in made}, "not the whole work"
    assert any(cut.lost for cut in made)


def _assert_no_state_is_torn(reference: Recorded) -> None:
    boot, root, overwritten_boot, overwritten_root = _outcomes(reference)
    file_system = reference.guest.disk.partition("/boot").file_system
    assert boot.states[Kind.PREFIX] > _FEWEST_WRITES[file_system]
    assert root.states[Kind.PREFIX] > 50
    for outcome in (boot, root):
        # How many is a matter of timing: with ext4 a step of the work is one to three writes
        # between two flushes, and more only where the guest writes back what others have left.
        assert outcome.states[Kind.REORDERING] > 10
        assert not outcome.torn
    for outcome in (overwritten_boot, overwritten_root):
        assert outcome.torn_states(Kind.PREFIX) > 0, "a file that is half there was not noticed"


def _cross_linked(guest: Saved, reference: Recorded, scratch: Path) -> Iterator[Cut]:
    """Cut where random moments hardly ever fall: in the middle of a rename on vfat."""
    moments = reference.cross_linked("/boot")
    assert moments, "a rename seems to be one write here"
    for moment in moments:
        yield cut_at(guest, reference, moment, scratch / f"cross-linked-{moment}")


def _outcomes(reference: Recorded) -> list[Outcome]:
    with ProcessPoolExecutor(max_workers=2) as pool:
        jobs = [
            pool.submit(replayed, mount_point)
            for replayed in (reference.replayed, reference.replayed_overwriting)
            for mount_point in ("/boot", "/")
        ]
        outcomes = [job.result() for job in jobs]
    for outcome in outcomes:
        log.info("%s", outcome)
    return outcomes
