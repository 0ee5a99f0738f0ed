"""What ``measure`` made of boots, for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from initadvisor.cli.boots_text import milliseconds, print_boots, setting_words
from initadvisor.cli.paragraphs import moment, print_item
from initadvisor.cli.wording import boots
from initadvisor.model.boot_marks import Waiting
from initadvisor.model.read_interval import ReadInterval
from initadvisor.model.text import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.model.boot_record import BootRecord
    from initadvisor.workflow.measure import Measured


def print_measured(measured: Measured, *, dry_run: bool) -> None:
    """Print what was measured to stdout: one boot in words, several as a table."""
    if len(measured.records) == 1:
        [record] = measured.records
        click.echo(f"Boot of {moment(record.started_at)}:")
        for line in _described(record):
            print_item(line)
    elif measured.records:
        print_boots(measured.records)
    for warning in measured.warnings:
        print_item(warning)
    there = len(measured.records) - len(measured.new) + measured.known
    verb = "would be recorded" if dry_run else "recorded"
    click.echo(
        f"{boots(len(measured.new))} {verb}, {boots(there)} had been before, "
        f"in {shown(str(measured.path))}"
    )


def _described(record: BootRecord) -> Iterator[str]:
    """Yield what is known of a boot, a line for each."""
    yield f"started by {record.start.way.description} ({record.start.certainty})"
    if record.phases:
        phases = (f"{p.phase} {milliseconds(p.duration_us)} ms" for p in record.phases)
        yield ", ".join(phases)
    if isinstance(record.read, ReadInterval):
        beside = "; ".join(record.read.beside)
        took = milliseconds(record.read.duration_us)
        yield f"the image was read within {took} ms ({record.read.source}), beside: {beside}"
    else:
        yield f"the time to read the image is not known: {record.read.reason}"
    if record.reboot_gap.duration_us is not None:
        gap = record.reboot_gap.duration_us / 1e6
        yield f"{gap:.1f} s from the last sign of the boot before to this kernel's start"
    if record.unpack_us is not None:
        yield f"the kernel unpacked the image in {milliseconds(record.unpack_us)} ms"
    if record.begin_to_init_us is not None:
        yield f"/init ran {milliseconds(record.begin_to_init_us)} ms after that began"
    if words := _waited(record):
        yield words
    image = record.attribution.image
    setting = setting_words(image.setting if image else None, record.attribution.certainty)
    certainty = record.attribution.certainty
    yield f"image: {record.attribution.words} ({certainty}); setting: {setting}"
    for reason in record.rejections:
        part = "its loader's times are no sample" if reason.only_loader else "no sample"
        yield f"{part}: {reason.explanation}"
    yield from record.notes


def _waited(record: BootRecord) -> str:
    shadow = record.shadow
    match shadow.waiting:
        case Waiting.WAITED:
            first = milliseconds(shadow.shadow_us)
            return f"the kernel waited for it, after {first} ms of other work ({shadow.waiter})"
        case Waiting.HIDDEN:
            return "the kernel had other work all the while: unpacking cost this boot nothing"
        case Waiting.SYNCHRONOUS:
            return "the kernel did nothing beside it"
        case Waiting.UNKNOWN:
            return ""
