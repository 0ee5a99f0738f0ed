"""The boot after a power cut during a campaign: what it is, and what it makes of what was left."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.vm.boot import LostGuestError, running
from tests.vm.campaign_standing import ENTRY, TRIAL, nothing_is_left, standing
from tests.vm.campaigning import BY_HAND, JUDGE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.vm.boot import Boot
    from tests.vm.campaign_standing import Standing
    from tests.vm.campaigning import Campaign
    from tests.vm.guest import Guest

_UNITS = ("initadvisor-measure.service", "initadvisor-settle.service")
_SCRIPT = f"""
{BY_HAND}
echo "command line $(cat /proc/cmdline)"
{JUDGE} || {{ journalctl -b -q -o cat {" ".join(f"-u {unit}" for unit in _UNITS)}; exit 1; }}
echo "campaign $(initadvisor trial status --json | tr -d '\\n')"
echo "selected $(ls /sys/firmware/efi/efivars | grep -c ^LoaderEntryOneShot-)"
echo "loads $(sha256sum <"/boot$(sed -n 's/^initrd //p' /boot{ENTRY})" || echo nothing)"
initadvisor trial stop
initadvisor settle
cd /var/lib/initadvisor
find . -name trial-entry -o -name campaign-active -o -name '.partial-*' | sed 's/^/left /'
sync
"""
_TAG = "initadvisor.trial="
_FILE_SYSTEM_TROUBLE = re.compile(r"(FAT-fs|EXT4-fs) .*(error|read-only)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What the boot after a cut showed.

    ``entry``: what was booted, None where it did not get so far. ``state``: the campaign's when
    that boot was judged, ``reason`` why it was so. ``trouble`` in words.
    """

    entry: str | None
    state: str | None
    reason: str | None
    trouble: tuple[str, ...]


def recovered(guest: Guest, campaign: Campaign, found: Standing) -> Recovery:
    """Boot what a power cut left, from firmware on; ``found`` is what that was."""
    try:
        with running(guest, script=_SCRIPT) as started:
            ready = started.wait_for(r"guest: ready boot=\w+ entry=(\S+) state=(\S+)")
            done = started.wait_for(r"guest: done status=(\d+)")
            started.kill()
            booted = started.wait_for_end()
    except LostGuestError as err:
        return Recovery(entry=None, state=None, reason=None, trouble=(str(err),))
    if done[1] != "0":
        said = "\n".join(booted.output)
        return Recovery(entry=ready[1], state=None, reason=None, trouble=(said,))
    record = json.loads(_said(booted, "campaign"))
    trouble = (
        *_of_boot(ready[1], ready[2], booted, found, campaign),
        *_of_campaign(booted, record),
        *nothing_is_left(standing(guest), campaign.before),
        *(line for line in booted.output if line.startswith("left ")),
    )
    return Recovery(entry=ready[1], state=record["state"], reason=record["reason"], trouble=trouble)


def _of_boot(
    entry: str, state: str, booted: Boot, found: Standing, campaign: Campaign
) -> Iterator[str]:
    """Say what is wrong with the boot itself: it is the trial's where that was armed."""
    default = campaign.legs[0].entry
    expected = TRIAL if found.one_shot == TRIAL else default
    if entry != expected:
        yield f"{entry} was booted, not {expected}"
    if state != "running":
        yield f"the system is {state}"
    tags = [word for word in _said(booted, "command line").split() if word.startswith(_TAG)]
    if entry == default and tags:
        yield f"the default entry was booted with {tags}"
    if entry == TRIAL and not (tags and tags[-1] in found.entry.split()):
        yield f"{tags} is not what was armed: {found.entry!r}"
    yield from (line.text for line in booted.lines if _FILE_SYSTEM_TROUBLE.search(line.text))


def _of_campaign(booted: Boot, record: dict[str, Any]) -> Iterator[str]:
    """Say what is wrong with what was made of the campaign."""
    is_armed = record["state"] == "armed"
    if _said(booted, "selected") != str(int(is_armed)):
        yield f"it is {record['state']}, and selected is {_said(booted, 'selected')}"
    if is_armed:
        armed, loads = record["armed"][-1]["sha256"], _said(booted, "loads").split()[0]
        if loads != armed:
            yield f"what is armed has the digest {armed}, the entry loads {loads}"
    if record["state"] != "idle" and not record["reason"]:
        yield f"it is {record['state']}, and does not say why"


def _said(booted: Boot, what: str) -> str:
    """Return what the script said of something; it is the latest that counts."""
    return [line for line in booted.output if line.startswith(f"{what} ")][-1].removeprefix(
        f"{what} "
    )
