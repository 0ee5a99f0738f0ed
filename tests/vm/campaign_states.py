"""Every state in which a power cut during a campaign could leave the boot partition."""

from __future__ import annotations

import itertools
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tests.vm.campaign_standing import ENTRY, SLOT, selected, standing
from tests.vm.crash import Demand, Sampling, replay
from tests.vm.medium import Area

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.vm.campaign_standing import Standing
    from tests.vm.campaigning import Campaign, Leg
    from tests.vm.crash import Outcome
    from tests.vm.timeline import Moment

_SAMPLING = Sampling(exhaustive_writes=4, systematic=8, samples=4)
_DEFAULT = ("/initrd.img-", "/loader/")
"""What decides what boots by default, beside a kernel that nobody writes."""


def replayed(campaign: Campaign, leg: Leg) -> Outcome:
    """Look at them: what boots by default is as it was, what is armed is whole, and no name has
    clusters that are free.

    Nothing is asked of an entry and an image while nothing selects them.
    """
    partition = leg.guest.disk.partition("/boot")
    area = Area(
        file_system=partition.file_system,
        offset_bytes=partition.offset_bytes,
        size_bytes=partition.size_bytes,
    )
    before = campaign.before.files.items()
    demands = [_is(path, digest) for path, digest in before if path.startswith(_DEFAULT)]
    for first, last in _armed(leg):
        then = _stood(leg, first)
        paths = [path for path in (ENTRY, SLOT) if path in then.files]
        since, until = first.writes, last.writes + 1
        demands += [_is(path, then.files[path], since=since, until=until) for path in paths]
    return replay(leg.timeline.recording, area, demands, _SAMPLING, names_have_clusters=True)


def _armed(leg: Leg) -> Iterator[tuple[Moment, Moment]]:
    """Yield the first and the last moment of each time at which a trial was selected."""
    moments = leg.timeline.moments
    for entry, grouped in itertools.groupby(moments, lambda moment: selected(moment.variables)):
        if entry:
            seen = list(grouped)
            yield seen[0], seen[-1]


def _stood(leg: Leg, moment: Moment) -> Standing:
    """Return what there was at a moment, with nothing lost."""
    with tempfile.TemporaryDirectory(prefix="stood-") as directory:
        guest = replace(leg.guest, directory=Path(directory))
        leg.timeline.recording.disk(leg.writes[: moment.writes], guest.disk.path)
        guest.variables.write_bytes(moment.variables)
        return standing(guest)


def _is(path: str, sha256: str, *, since: int = 0, until: int | None = None) -> Demand:
    return Demand(path=path, sha256s=frozenset({sha256}), since=since, until=until)
