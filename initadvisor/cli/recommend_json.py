"""The JSON of ``recommend``; its fields are part of the interface (schema 1)."""

from __future__ import annotations

from dataclasses import asdict
from math import exp
from typing import TYPE_CHECKING, Any

from initadvisor.cli.rendering.output import SCHEMA, rounded

if TYPE_CHECKING:
    from initadvisor.advise.recommendation import Plan, Recommendation, Rival, Row
    from initadvisor.core.estimates import Estimate
    from initadvisor.decide.contrast import Contrast
    from initadvisor.decide.cost import BestRange, DecidingFact
    from initadvisor.decide.explanation import Explanation


_Z95 = 1.96


def as_document(answer: Recommendation) -> dict[str, Any]:
    """Return the answer as plain values for ``json.dumps``."""
    decision = answer.decision
    return {
        "schema": SCHEMA,
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
            "settled": decision.settled,
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
            "deciding": _deciding(answer.deciding),
            "rival": _rival(answer.rival),
        },
        "plan": _plan(answer.plan),
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
        "explain": _explanation(answer.explanation),
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


def _deciding(fact: DecidingFact | None) -> dict[str, Any] | None:
    if fact is None:
        return None
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


def _rival(rival: Rival | None) -> dict[str, Any] | None:
    if rival is None:
        return None
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


def _plan(plan: Plan | None) -> dict[str, Any] | None:
    if plan is None:
        return None
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


def _explanation(why: Explanation | None) -> dict[str, Any] | None:
    if why is None:
        return None
    return {
        "contrast": None if why.contrast is None else _contrast(why.contrast),
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
