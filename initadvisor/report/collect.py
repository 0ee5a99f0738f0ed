"""From an answer and what is recorded to a report."""

from __future__ import annotations

import contextlib
import re
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor import __version__
from initadvisor.advise.recommendation import build_cpu_s
from initadvisor.advise.sweep import kept_sweeps
from initadvisor.advise.whatif import of_machine
from initadvisor.candidates.plan import program_version
from initadvisor.core.codecs import Codec
from initadvisor.core.config import Objective
from initadvisor.core.errors import InitadvisorError, UsageError
from initadvisor.core.settings import Setting
from initadvisor.decide.upgrades import upgrade_pace
from initadvisor.decide.whatif_values import Rule
from initadvisor.generators import unknown
from initadvisor.generators.detect import GENERATORS
from initadvisor.host.configuration import load_config
from initadvisor.host.hardware import cpu_model, memory
from initadvisor.records.boot import RecordSource
from initadvisor.report.privacy import Privacy
from initadvisor.report.report import Line, Model, OneBoot, Report, ReportedBoot, ReportedSetting
from initadvisor.report.time_line import stages
from initadvisor.store.store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from initadvisor.advise.recommendation import Recommendation, Row
    from initadvisor.host import Host
    from initadvisor.records.boot import BootRecord
    from initadvisor.report.published import PublishedTable

_VERSION = re.compile(r"\d+(\.\d+)+")

MOST_BOOTS = 300
"""So many boots are shown; a picture of more shows no single one."""


def collect(
    host: Host,
    answer: Recommendation,
    *,
    verdict: Callable[[Recommendation], Iterable[str]],
    advice: Callable[[Recommendation], Iterable[str]],
    published: Sequence[PublishedTable],
) -> Report:
    """Return the report of an answer; ``verdict`` and ``advice`` put it in words.

    They are given the answer without what is private. ``published``: what others measured. Raises
    ``InitadvisorError`` where what is recorded cannot be read.
    """
    privacy = Privacy(host)
    answer = privacy.masked(answer)
    records, recorded = _own_boots(host)
    contents = answer.contents
    return Report(
        version=__version__,
        verdict=tuple(verdict(answer)),
        advice=tuple(advice(answer)),
        outcome=answer.decision.outcome,
        objective=answer.objective,
        today=answer.baseline,
        advised=answer.decision.setting,
        machine=privacy.masked(_machine(host, answer, records, recorded)),
        settings=tuple(_setting(row) for row in answer.rows),
        model=_model(host, answer),
        swept=kept_sweeps(host, answer.image_sha256),
        boots=tuple(privacy.masked(_boot(record)) for record in records),
        recorded_boots=recorded,
        one_boot=privacy.masked(_one_boot(records)),
        unpacked_bytes=answer.unpacked_bytes,
        kinds=contents.kinds if contents else (),
        largest=contents.ten_largest if contents else (),
        assumptions=tuple(one.text for one in answer.assumptions),
        warnings=answer.warnings,
        context=answer.context,
        skipped=tuple(
            Line(title=str(skipped.setting), text=skipped.reason) for skipped in answer.skipped
        ),
        versions=privacy.masked(tuple(_versions(host, answer))),
        published=privacy.masked(tuple(published)),
    )


def _versions(host: Host, answer: Recommendation) -> Iterator[str]:
    """Yield this program, the generator and the compressors, each with its version."""
    yield f"initadvisor {__version__}"
    generator = next((one for one in GENERATORS if answer.generator == one.NAME), unknown)
    if told := generator.version(host):
        yield f"{generator.NAME} {told}"
    for codec in dict.fromkeys(row.setting.codec for row in answer.rows):
        with contextlib.suppress(InitadvisorError):  # then its settings were not compared
            program, *_ = generator.compressor(host, Setting(codec))
            if codec is not Codec.CAT and host.runner.which(program):
                found = _VERSION.search(program_version(host, program))
                yield f"{Path(program).name} {found[0] if found else 'of unknown version'}"


def _setting(row: Row) -> ReportedSetting:
    return ReportedSetting(
        setting=row.setting,
        size_bytes=row.size_bytes,
        size_source=row.size_source,
        read_ms=row.read_ms,
        unpack_ms=row.unpack_ms,
        saving_ms=row.saving_ms,
        build_s=row.build_s,
        build_cpu_s=row.build_cpu_s,
        unfit=row.unfit,
        notes=row.notes,
    )


def _model(host: Host, answer: Recommendation) -> Model | None:
    config = load_config(host)
    try:
        compared = of_machine(answer, config, Objective.BOOT)
    except UsageError:
        return None
    if compared.loader is None or answer.overlap_ms is None:
        return None
    rows = {row.setting: row for row in answer.rows}
    return Model(
        choices=compared.choices,
        build_cpu_s=tuple(
            build_cpu_s(rows[choice.setting], answer.rows) for choice in compared.choices
        ),
        rule=Rule(
            tolerance_ms=config.tolerance_ms,
            tolerance_fraction=config.tolerance_fraction,
            today=compared.today,
            by_size=answer.objective is Objective.SIZE,
        ),
        loader_mb_s=compared.loader.read_mb_s,
        overlap_ms=answer.overlap_ms,
        boots_per_upgrade=upgrade_pace(config.boots_per_upgrade, answer.pace).boots,
        count_builds=answer.objective is Objective.BALANCED,
    )


def _own_boots(host: Host) -> tuple[tuple[BootRecord, ...], int]:
    """Return the latest boots of this machine, and how many are recorded."""
    with open_store(host, readonly=True) as store:
        recorded = sum(source is not RecordSource.IMPORT for source in store.known_boots().values())
        with contextlib.closing(store.each_boot()) as boots:
            own = (record for record in boots if record.source is not RecordSource.IMPORT)
            return tuple(islice(own, min(MOST_BOOTS, recorded))), recorded


def _boot(record: BootRecord) -> ReportedBoot:
    image = record.attribution.image
    return ReportedBoot(
        day=record.started_at.date().isoformat(),
        kernel=record.timestamps.release,
        setting=image.setting if image else None,
        certainty=record.attribution.certainty,
        read_ms=_ms(record.read_us),
        unpack_ms=_ms(record.unpack_us),
        init_ms=_ms(record.begin_to_init_us),
        whole_ms=_ms(sum(one.duration_us for one in record.phases) or None),
        reasons=tuple(reason.explanation for reason in record.rejections),
    )


def _one_boot(records: Sequence[BootRecord]) -> OneBoot | None:
    found = next(
        (record for record in records if not record.rejections and record.unpack_us is not None),
        None,
    )
    if found is None:
        return None
    return OneBoot(
        day=found.started_at.date().isoformat(), setting=found.setting, stages=stages(found)
    )


def _ms(duration_us: int | None) -> float | None:
    return None if duration_us is None else duration_us / 1000


def _machine(
    host: Host, answer: Recommendation, records: Sequence[BootRecord], recorded: int
) -> tuple[Line, ...]:
    """Return the machine in four lines."""
    known = memory(host)
    room = f", {known.total_bytes / 1e9:.0f} GB of memory" if known else ""
    product = records[0].boot_class.hardware.product if records else None
    processor = f"{host.cores} x {cpu_model(host)}{room}"
    today = next((row for row in answer.rows if row.setting == answer.baseline), None)
    maker = "an unknown generator" if answer.generator == "none" else answer.generator
    kernel = f"Linux {answer.kernel_release}" if answer.kernel_release else "an unknown kernel"
    size = f", {today.size_bytes / 1e6:.1f} MB" if today else ""
    storage = answer.storage
    loader = storage.loader_mb_s
    counted = sum(not record.rejections for record in records)
    latest = "" if recorded <= len(records) else f" of the latest {len(records)}"
    return (
        Line(title="Machine", text=f"{product}: {processor}" if product else processor),
        Line(
            title="Image",
            text=f"{answer.image.name}{size}, {answer.baseline}, by {maker}, for {kernel}",
        ),
        Line(
            title="Disk",
            text=f"{storage.device}; Linux reads {storage.read_mb_s.middle:.0f} MB/s, the boot "
            f"loader {loader.middle:.0f} MB/s (95 %: {loader.low:.0f} to {loader.high:.0f})",
        ),
        Line(
            title="Evidence",
            text=f"{answer.evidence}; {recorded} boots recorded, {counted}{latest} count; "
            f"initadvisor {__version__}",
        ),
    )
