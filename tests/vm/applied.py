"""What has to hold of a disk whose guest applies a setting and goes back, whenever it stops."""

from __future__ import annotations

import hashlib
import io
import re
import tempfile
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.bootloaders.systemd_boot.menu import key_values
from initadvisor.core.codecs import Codec
from initadvisor.image.contents import Verdict
from initadvisor.image.kernel import KernelConfig
from initadvisor.image.lint import lint
from initadvisor.image.scan import scan
from tests.fixtures.owners import OWNER
from tests.vm import tools
from tests.vm.applying import CONFIGURATION, UKIFY, Word, wait_for
from tests.vm.crash import Demand, Outcome, Sampling, replay
from tests.vm.disk import FileSystem, cut_out
from tests.vm.filesystems import Ext4, Vfat, read
from tests.vm.guest import Loader
from tests.vm.medium import Area, Medium

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.vm.applying import Saved
    from tests.vm.disk import Partition
    from tests.vm.filesystems import Files
    from tests.vm.guest import Guest
    from tests.vm.recording import Recording

_SAMPLING = Sampling(systematic=32, samples=16)
_ADDED = {
    Loader.SYSTEMD_BOOT: f"/boot/loader/entries/a-initadvisor-{OWNER}-previous.conf",
    Loader.GRUB: "/boot/grub/custom.cfg",
}
"""What applying adds for the image that was replaced."""
_UNTOUCHED = {
    Loader.SYSTEMD_BOOT: ("/boot/loader/loader.conf",),
    Loader.GRUB: ("/boot/grub/grub.cfg", "/boot/grub/grubenv"),
}
_ENTRY = "/boot/loader/entries/debian-{}.conf"
"""Not there where all of GRUB's entries are in its configuration, or a UKI is an entry itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A file before and after: its content, None where it is not there."""

    before: bytes | None
    after: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A setting applied and taken back, from beginning to end.

    ``moments``: how much had been written, in entries of the recording, when a word was said.
    ``files``: what matters when the guest boots, by path in the guest, before and after applying.
    """

    guest: Guest
    recording: Recording
    moments: Mapping[Word, int]
    files: Mapping[str, Changed]

    def replayed(self, mount_point: str) -> Outcome:
        """Look at every state of one file system up to the end of going back."""
        demands = [d for path, c in self._of(mount_point) for d in self._demands(path, c)]
        return self._replay(mount_point, demands, range(self.moments[Word.BACK] + 1))

    def replayed_overwriting(self, mount_point: str) -> Outcome:
        """Look at the states after that, while files are overwritten in place."""
        demands = [_either(path, changed) for path, changed in self._of(mount_point)]
        moments = range(self.moments[Word.BACK] + 1, self.moments[Word.OVERWRITTEN] + 1)
        return self._replay(mount_point, demands, moments)

    def cross_linked(self, mount_point: str) -> list[int]:
        """Return the moments at which two names of a vfat file system have the same clusters.

        A file that is renamed has both names for a moment, and who removes one of them then frees
        what the other has (observed with Linux 6.12).
        """
        found = []
        with tempfile.TemporaryDirectory(prefix="cross-linked-") as scratch:
            medium = Medium.of(self.recording, self._area(mount_point), Path(scratch))
            writes = islice(self.recording.writes(), self.moments[Word.BACK])
            for moment, write in enumerate(writes, 1):
                if pieces := medium.pieces(write):
                    medium.apply(pieces)
                    if b"share clusters" in tools.run("fsck.fat", "-n", medium.path, good=(0, 1)):
                        found.append(moment)
        return found

    def _replay(self, mount_point: str, demands: list[Demand], moments: range) -> Outcome:
        area = self._area(mount_point)
        return replay(
            self.recording, area, demands, _SAMPLING, moments=moments, names_have_clusters=True
        )

    def _area(self, mount_point: str) -> Area:
        partition = self.guest.disk.partition(mount_point)
        return Area(
            file_system=partition.file_system,
            offset_bytes=partition.offset_bytes,
            size_bytes=partition.size_bytes,
        )

    def _of(self, mount_point: str) -> Iterator[tuple[str, Changed]]:
        """Yield the files of a file system, by their paths in it."""
        partition = self.guest.disk.partition(mount_point)
        for path, changed in self.files.items():
            if self.guest.disk.partition(path) == partition:
                yield _inside(partition, path), changed

    def _demands(self, path: str, changed: Changed) -> Iterator[Demand]:
        """Yield that the file is old or new at any moment, and at some moments which of them."""
        yield _either(path, changed)
        applied, going_back = self.moments[Word.APPLIED], self.moments[Word.GOING_BACK]
        yield _demand(path, changed.after, since=applied, until=going_back)
        yield _demand(path, changed.before, since=self.moments[Word.BACK])


def recorded(saved: Saved, directory: Path) -> Recorded:
    """Let the guest go through all of it once; ``directory`` does not exist yet."""
    moments = {}
    with saved.resumed(directory) as (started, recording):
        for word in Word.APPLIED, Word.GOING_BACK, Word.BACK, Word.OVERWRITTEN:
            wait_for(started, word)
            moments[word] = recording.moment()
    return Recorded(
        guest=saved.guest,
        recording=recording,
        moments=moments,
        files=changed_files(saved.guest, recording, moments[Word.APPLIED]),
    )


def changed_files(guest: Guest, recording: Recording, applied: int) -> dict[str, Changed]:
    """Read every file that matters, before and after; asserts that they are as they have to be."""
    with tempfile.TemporaryDirectory(prefix="applied-") as scratch:
        disk = recording.disk(islice(recording.writes(), applied), Path(scratch) / "disk")
        before = contents(guest, recording.base, Path(scratch))
        after = contents(guest, disk, Path(scratch))
    images, configuration = images_of(guest), CONFIGURATION
    kernel = before[f"/boot/config-{guest.release}"]
    for image in images:
        assert _good_codec(before[image], kernel, guest.release) is Codec.ZSTD
        assert _good_codec(after[image], kernel, guest.release) is Codec.GZIP
    assert len({_initramfs(after[image]) for image in images}) == 1
    assert _compression(before[configuration]) == ["COMPRESS=zstd", "COMPRESSLEVEL=1"]
    assert _compression(after[configuration]) == ["COMPRESS=gzip", "COMPRESSLEVEL=2"]
    assert before[added(guest)] is None
    assert after[added(guest)] is not None
    return {path: Changed(before=before[path], after=after[path]) for path in watched(guest)}


def images_of(guest: Guest) -> tuple[str, ...]:
    """Return the image that the generator makes, and what the default entry boots of it."""
    written = f"/boot/initrd.img-{guest.release}"
    if guest.recipe.loader.is_grub:
        return (written,)
    if is_unified(guest):
        return (written, f"/boot/EFI/Linux/{booted_entry(guest)}")
    path = f"/loader/entries/debian-{guest.release}.conf"
    (loaded,) = key_values(read(guest.disk.files("/boot"), path).decode()).all("initrd")
    return tuple(dict.fromkeys((written, f"/boot{loaded}")))


def is_unified(guest: Guest) -> bool:
    """Tell whether its default entry is a unified kernel image."""
    return {*UKIFY} <= {*guest.recipe.also}


def booted_entry(guest: Guest) -> str:
    """Return the identifier of systemd-boot's default entry."""
    return f"debian-{guest.release}.{'efi' if is_unified(guest) else 'conf'}"


def added(guest: Guest) -> str:
    """Return the file that applying makes, for an entry of the image that was replaced."""
    return _ADDED[guest.recipe.loader]


def watched(guest: Guest) -> tuple[str, ...]:
    """Return the files that decide what is booted, and how the next image is made."""
    names = ("/boot/config-{}", _ENTRY, *_UNTOUCHED[guest.recipe.loader])
    untouched = [name.format(guest.release) for name in names]
    return (*images_of(guest), CONFIGURATION, added(guest), *untouched)


def contents(guest: Guest, path: Path, scratch: Path) -> dict[str, bytes | None]:
    """Read the watched files of a disk that stays as it is: its journals are replayed elsewhere."""
    found: dict[str, bytes | None] = {}
    for partition in guest.disk.partitions:
        part = scratch / "part"
        cut_out(path, partition.offset_bytes, partition.size_bytes, part)
        files = Vfat(image=part) if partition.file_system is FileSystem.VFAT else Ext4(image=part)
        for name in watched(guest):
            if guest.disk.partition(name) == partition:
                found[name] = _content(files, _inside(partition, name))
        part.unlink()
    return found


def _content(files: Files, path: str) -> bytes | None:
    try:
        return read(files, path)
    except FileNotFoundError:
        return None


def _inside(partition: Partition, path: str) -> str:
    return path.removeprefix(partition.mount_point.rstrip("/"))


def _good_codec(image: bytes | None, config: bytes | None, release: str) -> Codec:
    """Return how an image is compressed; asserts that its kernel unpacks all of it."""
    assert image is not None
    assert config is not None
    contents = scan(io.BytesIO(image))
    judged = lint(contents, KernelConfig.parse(config.decode(), source="the guest's"), release)
    assert judged.verdict is Verdict.OK, judged
    return contents.main.codec


def _initramfs(image: bytes | None) -> bytes:
    """Return what is loaded of an image."""
    assert image is not None
    part = scan(io.BytesIO(image)).initrd
    return image[part.offset : part.offset + part.size_bytes]


def _compression(configuration: bytes | None) -> list[str]:
    assert configuration is not None
    return re.findall(r"^COMPRESS\w*=.+$", configuration.decode(), re.MULTILINE)


def _either(path: str, changed: Changed) -> Demand:
    return _demand(path, changed.before, changed.after)


def _demand(path: str, *contents: bytes | None, since: int = 0, until: int | None = None) -> Demand:
    there = [content for content in contents if content is not None]
    return Demand(
        path=path,
        sha256s=frozenset(hashlib.sha256(content).hexdigest() for content in there),
        since=since,
        until=until,
        may_be_missing=None in contents,
    )
