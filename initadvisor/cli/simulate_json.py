"""The JSON of ``simulate``; its fields are part of the interface (schema 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from initadvisor.model.whatif import Span

if TYPE_CHECKING:
    from initadvisor.model.simulation import (
        BootCount,
        Figures,
        MachineRun,
        Mean,
        SettingUse,
        Share,
        Simulation,
    )
    from initadvisor.model.whatif import Given


def as_document(answer: Simulation) -> dict[str, Any]:
    """Return the answer as plain values for ``json.dumps``."""
    scenario = answer.scenario
    return {
        "schema": 1,
        "seed": answer.seed,
        "tables": list(answer.tables),
        "read_mb_s": _given(scenario.read_mb_s),
        "shadow_ms": _given(scenario.shadow_ms),
        "noise": scenario.noise_log_sd,
        "outliers": scenario.outliers,
        "strains": list(dict.fromkeys(scenario.strains)),
        "evidence": {
            "kind": "lab" if scenario.lab else "bench",
            "unpack_log_sd": scenario.unpack_log_sd,
        },
        "certainty": answer.certainty,
        "tolerance": {"ms": answer.tolerance_ms, "fraction": answer.tolerance_fraction},
        "most_boots": answer.most_boots,
        "result": _figures(answer.figures),
        "by_strain": {strain: _figures(figures) for strain, figures in answer.by_strain},
        "settings": [_use(use) for use in answer.settings],
        "assumptions": list(answer.assumptions),
        "machines": [_run(run) for run in answer.runs],
    }


def _figures(figures: Figures) -> dict[str, Any]:
    fixed = figures.fixed
    return {
        "machines": figures.machines,
        "boots_median": _boots(figures.boots_median),
        "boots_90": _boots(figures.boots_90),
        "settled": _share(figures.settled),
        "right": _share(figures.right),
        "regret_ms": _mean(figures.regret_ms),
        "beyond_tolerance_ms": _mean(figures.beyond_ms),
        "calibration": [
            {"stated": round(one.stated, 4), "right": _share(one.right)}
            for one in figures.calibration
        ],
        "fixed": {
            "boots": fixed.boots,
            "right": _share(fixed.right),
            "regret_ms": _mean(fixed.regret_ms),
            "beyond_tolerance_ms": _mean(fixed.beyond_ms),
        },
    }


def _use(use: SettingUse) -> dict[str, Any]:
    return {
        "setting": str(use.setting),
        "best": _share(use.best),
        "chosen": _share(use.chosen),
        "booted": _share(use.booted),
        "boots": _mean(use.boots),
        "fixed_chosen": _share(use.fixed_chosen),
    }


def _run(run: MachineRun) -> dict[str, Any]:
    campaign, fixed, conditions = run.campaign, run.fixed, run.conditions
    return {
        "seed": list(run.seed),
        "table": run.table,
        "strain": conditions.strain,
        "read_mb_s": round(conditions.read_mb_s, 3),
        "shadow_ms": round(conditions.shadow_ms, 3),
        "today": str(run.today),
        "best": str(campaign.best),
        "outcome": campaign.outcome,
        "chosen": str(campaign.setting),
        "boots": [str(setting) for setting in campaign.booted],
        "stated": round(campaign.stated, 4),
        "right": campaign.right,
        "regret_ms": round(campaign.regret_ms, 3),
        "tolerance_ms": round(campaign.tolerance_ms, 3),
        "fixed": {
            "boots": fixed.boots,
            "chosen": str(fixed.setting),
            "right": fixed.right,
            "regret_ms": round(fixed.regret_ms, 3),
        },
    }


def _given(given: Given) -> float | dict[str, float]:
    return {"low": given.low, "high": given.high} if isinstance(given, Span) else given


def _share(share: Share) -> dict[str, Any]:
    return {
        "count": share.count,
        "of": share.of,
        "part": round(share.part, 4),
        "low": round(share.low, 4),
        "high": round(share.high, 4),
    }


def _boots(count: BootCount) -> dict[str, int | None]:
    return {"boots": count.boots, "low": count.low, "high": count.high}


def _mean(mean: Mean) -> dict[str, float | None]:
    return {"mean": round(mean.mean, 4), "low": _rounded(mean.low), "high": _rounded(mean.high)}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
