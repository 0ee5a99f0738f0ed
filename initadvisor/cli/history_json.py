"""The JSON of ``history``; its fields are part of the interface (schema 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from initadvisor.workflow.history import results

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from initadvisor.model.lab import LabKernel, RecordedRun, Verification
    from initadvisor.stats.repeats import Middle
    from initadvisor.workflow.history import SubjectResult


def as_document(
    path: Path, runs: Sequence[RecordedRun], verifications: Sequence[Verification]
) -> dict[str, Any]:
    """Return what was measured as plain values for ``json.dumps``."""
    return {
        "schema": 1,
        "store": str(path),
        "lab_runs": [run_document(recorded) for recorded in runs],
        "verifications": [verification_document(verification) for verification in verifications],
    }


def run_document(recorded: RecordedRun) -> dict[str, Any]:
    """Return one lab run as plain values."""
    run = recorded.run
    return {
        "number": recorded.number,
        "started_at": run.started_at.isoformat(timespec="seconds"),
        "end": recorded.end,
        "engine": run.engine,
        "engine_version": run.engine_version,
        "kernel": _kernel(run.kernel),
        "cpu_model": run.cpu_model,
        "settings": [_subject(result) for result in results(recorded)],
        "warnings": list(recorded.warnings),
    }


def _subject(result: SubjectResult) -> dict[str, Any]:
    subject = result.subject
    return {
        "setting": str(subject.setting),
        "today": subject.today,
        "path": subject.path,
        "sha256": subject.sha256,
        "size_bytes": subject.size_bytes,
        "unpack_ms": _figure(result.unpack_ms),
        "init_ms": None if result.init_ms is None else round(result.init_ms, 3),
        "samples": [
            {
                "round": sample.round,
                "kind": sample.kind,
                "unpack_us": sample.unpack_us,
                "init_us": sample.init_us,
                "waiter": sample.waiter,
            }
            for sample in result.samples
        ],
        "lost": [{"round": boot.round, "reason": boot.reason} for boot in result.lost],
    }


def verification_document(verification: Verification) -> dict[str, Any]:
    """Return one verification as plain values."""
    return {
        "at": verification.at.isoformat(timespec="seconds"),
        "engine": verification.engine,
        "kernel": _kernel(verification.kernel),
        "image_sha256": verification.image_sha256,
        "content_sha256": verification.content_sha256,
        "unpacked": verification.unpacked,
        "words": verification.words,
    }


def _kernel(kernel: LabKernel) -> dict[str, Any]:
    return {"path": kernel.path, "sha256": kernel.sha256, "release": kernel.release}


def _figure(middle: Middle | None) -> dict[str, Any] | None:
    if middle is None:
        return None
    return {
        "median": round(middle.median, 3),
        "low": None if middle.assumed else round(middle.low, 3),
        "high": None if middle.assumed else round(middle.high, 3),
        "count": middle.count,
        "outliers": [round(value, 3) for value in middle.outliers],
    }
