"""Power cuts while a guest applies a setting and goes back: killed, then booted from what is left.

QEMU that is killed loses the guest's memory, but nothing that it has written: that is in the host's
page cache. A disk with a write cache loses more, so what is left is made from the recording: all
that was flushed, and a random part of what was written since.
"""

from __future__ import annotations

import hashlib
import random
import re
import tempfile
import time
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from tests.vm.applied import booted_entry, contents, images_of, watched
from tests.vm.applying import Word
from tests.vm.boot import LostGuestError, running
from tests.vm.recording import kept

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.vm.applied import Recorded
    from tests.vm.applying import Saved
    from tests.vm.boot import Running
    from tests.vm.guest import Guest
    from tests.vm.recording import Recording, Write

_POLL_S = 0.01
_WITHIN_S = 1800.0
_LOOK = """
look() {{
    for path in {paths}; do
        if [ -e "$path" ]; then echo "$1 $(sha256sum "$path")"; else echo "$1 - $path"; fi
    done
}}
look found
initadvisor settle
find /boot /etc -xdev -name '.initadvisor-*' -printf 'beside %p\\n'
grep -h '"state"' /var/lib/initadvisor/transactions/*.json || true
sync
"""
_TWIN = re.compile(r"\.twin\d+$")
_OVER = re.compile('"(committed|undone)"')


class Side(StrEnum):
    """What the files that matter hold, all together."""

    OLD = "old"
    NEW = "new"
    MIXED = "mixed"
    """Each is old or new, not all the same: what the next run has to finish or undo."""
    BAD = "bad"
    """Some are neither."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A power cut and what came of it.

    ``writes``: how many the disk had been given, ``lost`` how many of them it forgot. ``said``: the
    guest's last word. ``found`` is what the next boot found, ``left`` what it was when interrupted
    work had been finished or undone, both None where the guest did not boot by itself; ``trouble``
    is what was not as it has to be, in words.
    """

    writes: int
    lost: int
    said: Word
    found: Side | None
    left: Side | None
    trouble: tuple[str, ...]


def cuts(saved: Saved, reference: Recorded, count: int, seed: int, scratch: Path) -> Iterator[Cut]:
    """Cut the power so often, at moments spread over the work and chosen at random within that.

    A moment is a number of writes: those of the ``reference`` from beginning to end, and some more
    for what comes after. So it is the same stage of the work however busy the host is.
    """
    rng = random.Random(seed)
    whole = reference.moments[Word.BACK] * 1.05
    for number in range(count):
        at = int(whole * (number + rng.random()) / count)
        with tempfile.TemporaryDirectory(dir=scratch) as directory:
            made = cut(saved, reference, at, rng, Path(directory) / "guest")
        yield made


def cut_at(saved: Saved, reference: Recorded, moment: int, directory: Path) -> Cut:
    """Boot what a power cut at a moment of the reference leaves, nothing lost; ``directory`` does
    not exist yet.
    """
    said = max(
        (word for word in reference.moments if reference.moments[word] <= moment),
        key=lambda word: reference.moments[word],
        default=Word.BUILT,
    )
    if said is Word.APPLIED:
        # A word is heard some writes after it was said, so that going back may have begun.
        said = Word.GOING_BACK
    guest = saved.guest.copied_to(directory)
    writes = tuple(islice(reference.recording.writes(), moment))
    return _judged(reference, reference.recording, guest, writes, writes, said)


def cut(saved: Saved, reference: Recorded, at: int, rng: random.Random, directory: Path) -> Cut:
    """Kill the guest when it has written so often, and boot it again."""
    with saved.resumed(directory) as (started, recording):
        _wait_for_writes(started, recording, at)
        started.kill()
        started.wait_for_end()
        said = _last_word(started.output)
    writes = tuple(recording.writes())
    remembered = tuple(kept(writes, rng))
    guest = replace(saved.guest, directory=directory)
    return _judged(reference, recording, guest, writes, remembered, said)


def _judged(
    reference: Recorded,
    recording: Recording,
    guest: Guest,
    writes: Sequence[Write],
    remembered: Sequence[Write],
    said: Word,
) -> Cut:
    """Boot the guest from a disk with what was remembered, and say what came of it."""
    guest.disk.path.unlink()
    recording.disk(remembered, guest.disk.path)
    output, trouble = _booted(guest)
    found, left = _side(reference, _said(output)), _side(reference, _on_disk(guest))
    return Cut(
        writes=len(writes),
        lost=len(writes) - len(remembered),
        said=said,
        found=found if output else None,
        left=left if output else None,
        trouble=(*trouble, *(_trouble(guest, said, found, left, output) if output else ())),
    )


def _wait_for_writes(started: Running, recording: Recording, count: int) -> None:
    """Wait until so much is recorded, or until there is no more to come."""
    deadline = time.monotonic() + _WITHIN_S
    while recording.moment() < count and Word.BACK not in started.output:
        assert time.monotonic() < deadline, (recording.moment(), count, started.output)
        time.sleep(_POLL_S)


def _last_word(output: tuple[str, ...]) -> Word:
    """Return what the guest said last; it was saved when it had said the first word."""
    return [Word.BUILT, *(word for word in Word if word in output)][-1]


def _booted(guest: Guest) -> tuple[tuple[str, ...], list[str]]:
    """Boot from firmware on, and return what the guest said and what was wrong with the boot."""
    script = _LOOK.format(paths=" ".join(f"'{path}'" for path in watched(guest)))
    try:
        with running(guest, script=script) as started:
            ready = started.wait_for(r"guest: ready boot=\w+ entry=(\S+) state=(\S+)")
            status = started.wait_for(r"guest: done status=(\d+)")
            output = started.output
    except LostGuestError as err:
        return (), [str(err)]
    trouble = [] if status[1] == "0" else [f"what was to be done ended with status {status[1]}"]
    expected = "-" if guest.recipe.loader.is_grub else booted_entry(guest)
    if ready[1] != expected:  # GRUB tells nobody, but what it goes by is among what is watched
        trouble.append(f"{ready[1]} was booted")
    if ready[2] != "running":
        trouble.append(f"the system is {ready[2]}")
    return output, trouble


def _said(output: Sequence[str]) -> dict[str, str]:
    """Return the digests of what the boot found."""
    lines = (line.split(maxsplit=2) for line in output if line.startswith("found "))
    return {path: digest for _, digest, path in lines}


def _on_disk(guest: Guest) -> dict[str, str]:
    """Return the digests of what is on the disk, which need not be what the guest remembers."""
    with tempfile.TemporaryDirectory(dir=guest.directory) as scratch:
        found = contents(guest, guest.disk.path, Path(scratch))
    return {path: _digest(content) for path, content in found.items()}


def _side(reference: Recorded, digests: Mapping[str, str]) -> Side:
    """Judge all files that matter by their digests."""
    if digests.keys() != reference.files.keys():
        return Side.BAD
    old = [_digest(file.before) == digests[path] for path, file in reference.files.items()]
    new = [_digest(file.after) == digests[path] for path, file in reference.files.items()]
    if all(old):
        return Side.OLD
    if all(new):
        return Side.NEW
    return Side.MIXED if all(map(any, zip(old, new, strict=True))) else Side.BAD


def _digest(content: bytes | None) -> str:
    return "-" if content is None else hashlib.sha256(content).hexdigest()


def _trouble(
    guest: Guest, said: Word, found: Side, left: Side, output: Sequence[str]
) -> Iterator[str]:
    """Say what is not as it has to be.

    Of each image and of the configuration, what it held is kept while the setting is applied.
    """
    if found is Side.BAD:
        yield "the boot found files that are neither old nor new"
    if left not in {Side.OLD, Side.NEW}:
        yield f"what was left by the next run is {left}"
    promised = {Word.APPLIED: Side.NEW, Word.BACK: Side.OLD}.get(said)
    if promised and {found, left} != {promised}:
        yield f"it had said {said}, and then there was {found}, in the end {left}"
    for state in (line for line in output if '"state"' in line):
        if not _OVER.search(state):
            yield f"a transaction is not over: {state.strip()}"
    beside = [line for line in output if line.startswith("beside ")]
    kept = [line for line in beside if line.endswith(".old")]
    twins = [line for line in beside if _TWIN.search(line)]
    # What shares its clusters with a twin has to stay as long as that does.
    joined = [f"{_TWIN.sub('', twin)}.{'new' if left is Side.NEW else 'old'}" for twin in twins]
    expected = len(images_of(guest)) + 1 if left is Side.NEW else 0
    if len([line for line in kept if line not in joined]) != expected or set(beside) != {
        *kept,
        *twins,
        *joined,
    }:
        yield f"left lying about: {beside}"
