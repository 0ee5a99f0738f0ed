"""``initadvisor recommend``: which compression suits this machine, and how sure that is."""

from __future__ import annotations

from dataclasses import asdict, replace
from math import exp
from typing import TYPE_CHECKING, Any

import click

from initadvisor.cli.options import FileName, machine_options, refuse_if, settings_beginning_with
from initadvisor.cli.rendering.output import kernel_room_document, print_json, rounded
from initadvisor.core.config import Objective

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.advise.recommendation import Plan, Recommendation, Rival, Row
    from initadvisor.core.estimates import Estimate
    from initadvisor.decide.cost import BestRange, DecidingFact
    from initadvisor.decide.decision import Contrast
    from initadvisor.decide.explanation import Explanation


@click.command()
@click.option(
    "--image",
    type=FileName(),
    help="Weigh this image, of any machine, instead of this machine's own.",
)
@click.option(
    "--sample",
    is_flag=True,
    help="Make an image of this machine's modules and programs, where it has no initramfs.",
)
@click.option(
    "--kernel-config",
    type=FileName(),
    help="The configuration of the kernel that is to unpack the image (plain or .gz).",
)
@machine_options
@click.option(
    "--objective",
    type=click.Choice([str(objective) for objective in Objective]),
    help="What is to be small: the time of a boot, the image, or boot and build together.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="SETTING",
    shell_complete=settings_beginning_with,
    help="Weigh only this; may be repeated.",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Show every setting with all figures; weigh slow codecs, too, such as bzip2.",
)
@click.option(
    "--build", is_flag=True, help="Build the candidates that may be the best, and weigh them again."
)
@click.option(
    "--lab",
    is_flag=True,
    help="Build them, and let kernels unpack them in virtual machines before they are weighed.",
)
@click.option("--explain", is_flag=True, help="Say why: what decides, and what was assumed.")
@click.option("--quiet", is_flag=True, help="Print the setting to have, and nothing else.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def recommend(
    *,
    image: Path | None,
    sample: bool,
    kernel_config: Path | None,
    read_speed: float | None,
    overlap: float | None,
    objective: str | None,
    only: tuple[str, ...],
    everything: bool,
    build: bool,
    lab: bool,
    explain: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Say which initramfs compression suits this machine, and how sure that is.

    What a candidate would be is estimated from a sample of the image's content, in seconds, until
    it is built (--build), which is done beside the image in use and at idle priority; nothing of
    the machine is changed. Without a reboot it stays open how fast the boot loader reads, so "keep
    what you have" is a frequent answer.
    """
    from initadvisor.advise.recommend import Request
    from initadvisor.advise.recommend import recommend as ask
    from initadvisor.cli.recommend_text import print_recommendation
    from initadvisor.cli.rendering.progress import LAB_TAKES, Progress
    from initadvisor.core.settings import Setting
    from initadvisor.host import Host
    from initadvisor.measure.catch_up import catch_up

    refuse_if(quiet and as_json, "--quiet and --json exclude each other")
    refuse_if(image is not None and sample, "--image and --sample exclude each other")
    request = Request(
        image=image,
        sample=sample,
        kernel_config=kernel_config,
        read_speed_mb_s=read_speed,
        overlap_ms=overlap,
        objective=Objective(objective) if objective else None,
        only=tuple(Setting.parse(text) for text in only),
        everything=everything,
        build=build or lab,
        lab=lab,
        explain=explain,
    )
    with Progress(elsewhere=LAB_TAKES if lab else "") as progress:
        host = Host()
        told = catch_up(host, observer=progress) if image is None and not sample else None
        answer = ask(host, request, observer=progress)
    if told:
        answer = replace(answer, warnings=(told, *answer.warnings))
    if as_json:
        print_json(as_document(answer))
    elif quiet:
        click.echo(str(answer.decision.setting))
    else:
        print_recommendation(answer, evidence=explain or everything)


_Z95 = 1.96


def as_document(answer: Recommendation) -> dict[str, Any]:
    """Return the answer as plain values for ``json.dumps``."""
    decision = answer.decision
    return {
        "baseline": str(answer.baseline),
        "baseline_source": answer.baseline_source,
        "sample": answer.sample,
        "image": str(answer.image),
        "generator": answer.generator,
        "kernel": answer.kernel_release,
        "objective": answer.objective,
        "recommendation": {
            "action": decision.action,
            "outcome": decision.outcome,
            "setting": str(decision.setting),
            "probability": round(decision.probability, 4),
            "best_probability": round(decision.best_probability, 4),
            "best": decision.best,
            "settled": decision.settled,
            "loss_ms": rounded(decision.loss_ms),
            "guess": {
                "setting": str(decision.guess),
                "probability": round(decision.guess_probability, 4),
            },
            "hinges_on_build": answer.hinges_on_build,
            "certainty_needed": answer.certainty,
            "saving_ms": _estimate(decision.saving_ms),
            "evidence": answer.evidence,
            "whole_boot_ms": answer.whole_boot_ms,
            "leader": {
                "setting": str(decision.leader),
                "probability": round(decision.leader_probability, 4),
                "saving_ms": _estimate(decision.leader_saving_ms),
            },
            "deciding": answer.deciding and _deciding(answer.deciding),
            "rival": answer.rival and _rival(answer.rival),
        },
        "plan": answer.plan and _plan(answer.plan),
        "boots_per_upgrade": {
            "boots": round(answer.pace.boots, 3),
            "source": answer.pace.source,
            "recorded_boots": answer.pace.recorded_boots,
            "upgrades": answer.pace.upgrades,
        },
        "storage": {
            "device": answer.storage.device,
            "kind": answer.storage.kind,
            "read_mb_s": _estimate(answer.storage.read_mb_s),
            "loader_mb_s": _estimate(answer.storage.loader_mb_s),
            "free_bytes": answer.storage.free_bytes,
            "room_on": answer.storage.room_on,
        },
        "kernel_room": answer.room and kernel_room_document(answer.room),
        "unpacked_bytes": answer.unpacked_bytes,
        "candidates": [_row(row) for row in answer.rows],
        "unbuilt": [str(setting) for setting in answer.unbuilt],
        "skipped": [
            {"setting": str(skipped.setting), "reason": skipped.reason}
            for skipped in answer.skipped
        ],
        "assumptions": [assumption.text for assumption in answer.assumptions],
        "warnings": list(answer.warnings),
        "context": list(answer.context),
        "explain": answer.explanation and _explanation(answer.explanation),
    }


def _row(row: Row) -> dict[str, Any]:
    return {
        "setting": str(row.setting),
        "codec": row.setting.codec,
        "size_bytes": row.size_bytes,
        "size_interval_bytes": _size_interval(row),
        "size_source": row.size_source,
        "read_ms": _estimate(row.read_ms),
        "unpack_ms": _estimate(row.unpack_ms),
        "total_ms": _estimate(row.total_ms),
        "saving_ms": _estimate(row.saving_ms),
        "build_s": row.build_s,
        "build_cpu_s": row.build_cpu_s,
        "build_peak_bytes": row.build_peak_bytes,
        "fits": row.fits,
        "more_kernels": row.more_kernels,
        "lint": "ok" if row.lint.verdict == "ok" else "; ".join(row.lint.reasons),
        "notes": list(row.notes),
    }


def _size_interval(row: Row) -> list[int]:
    """Return the 95 % interval; both ends are the size itself where there is a file."""
    factor = exp(_Z95 * row.size_log_sd)
    return [round(row.size_bytes / factor), round(row.size_bytes * factor)]


def _estimate(estimate: Estimate) -> dict[str, Any]:
    """Return a figure; what is rounded to -0.0 is 0."""
    return {
        name: rounded(value) if isinstance(value, float) else value
        for name, value in asdict(estimate).items()
    }


def _deciding(fact: DecidingFact) -> dict[str, Any]:
    return {
        "factor": fact.factor,
        "settled": round(fact.settled, 3),
        "ranges": _ranges(fact.ranges),
    }


def _ranges(stretches: tuple[BestRange, ...]) -> list[dict[str, Any]]:
    return [
        {"low": rounded(s.low), "high": rounded(s.high), "setting": str(s.setting)}
        for s in stretches
    ]


def _rival(rival: Rival) -> dict[str, Any]:
    return {
        "setting": str(rival.setting),
        "probability": round(rival.probability, 4),
        "contrast": _contrast(rival.contrast),
    }


def _contrast(contrast: Contrast) -> dict[str, Any]:
    return {
        "one": str(contrast.one),
        "other": str(contrast.other),
        "read_ms": _estimate(contrast.read_ms),
        "waited_ms": _estimate(contrast.waited_ms),
        "build_ms": rounded(contrast.build_ms),
        "all_ms": _estimate(contrast.all_ms),
    }


def _plan(plan: Plan) -> dict[str, Any]:
    return {
        "purpose": plan.purpose,
        "next": str(plan.following),
        "boots": [
            {"setting": str(planned.setting), "boots": planned.boots} for planned in plan.boots
        ],
        "chance": round(plan.chance, 4),
        "enough": plan.enough,
        "contrast": _contrast(plan.contrast),
        "loader_seen": plan.loader_seen,
        "unbuilt": [str(setting) for setting in plan.unbuilt],
    }


def _explanation(why: Explanation) -> dict[str, Any]:
    return {
        "contrast": why.contrast and _contrast(why.contrast),
        "facts": [
            {
                "what": weight.what,
                "now": _estimate(weight.now),
                "share": round(weight.share, 4),
                "turns": round(weight.turns, 4),
                "ranges": _ranges(weight.ranges),
            }
            for weight in why.weights
        ],
        "images_share": round(why.images_share, 4),
        "steps": [
            {
                "evidence": step.evidence,
                "used": step.used,
                "outcome": step.outcome,
                "leader": str(step.leader),
                "saving_ms": _estimate(step.saving_ms),
                "probability": round(step.probability, 4),
            }
            for step in why.steps
        ],
        "updates": [
            {
                "what": update.what,
                "boots": update.boots,
                "before": _estimate(update.prior),
                "now": _estimate(update.posterior),
            }
            for update in why.updates
        ],
    }
