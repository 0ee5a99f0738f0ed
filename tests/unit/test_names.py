"""Names are the field's, and each has one meaning."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import initadvisor

ROOT = Path(initadvisor.__file__).parent

GONE = {
    "Scales": "CandidateEvaluation",
    "weigh": "rank",
    "Contender": "Candidate",
    "Field": "CandidateSet",
    "Ground": "DefaultBoot, SearchSpace",
    "surveyed": "open_search_space",
    "gathered": "build_candidate_set",
    "Recipe": "BuildCommand",
    "Floor": "BuildPool",
    "Workshop": "Builder",
    "Ledger": "BuildResults",
    "Gap": "SkippedSetting",
    "Tee": "ContentSpool",
    "Case": "DecisionInput",
    "Judged": "DecisionResult",
    "Given": "PosteriorCosts, GivenValue",
    "draw_costs_given": "sample_posterior_costs",
    "tempered": "smc_sample",
    "along": "crossover",
    "Stretch": "BestRange, ByteRange, SampleBlock",
    "Lessons": "PosteriorSummary",
    "Learnt": "ParameterUpdate",
    "Shared": "Parameter",
    "Parts": "ParameterDraws",
    "Standing": "CandidateComparison, SettingRank",
    "worsening": "regression",
    "Strain": "ModelViolation",
    "BootWay": "BootMethod",
    "BootMarks": "KernelTimestamps",
    "FirstWaiter": "InitramfsWait",
    "first_waiter": "initramfs_wait",
    "ImageTraces": "ImageEvidence",
    "Witness": "AttributionSource, ImageListing",
    "Fate": "TrialOutcome",
    "Left": "JournalEvidence",
    "Proof": "ArmedBoot",
    "Arming": "TrialBoot",
    "Hands": "ActionExecutor",
    "Step": "Transition, ApplyStep, ExplanationStep",
    "campaign_salvage": "recovery",
    "own_words": "extra_cmdline",
    "words_of_trial": "extra_cmdline",
    "trial_notes": "markers",
    "Obstacle": "Blocker, UncertainCommand",
    "Room": "SpaceRequirement, PartitionSpace",
    "clear_twins": "remove_duplicate_names",
    "Attendant": "WatchdogThread",
    "Seen": "SystemSnapshot",
    "Told": "StatusReporter",
    "Disturbed": "JobPreempted",
    "move_aside": "quarantine",
    "ours": "managed_files",
    "drain": "bounded_decompress",
    "Judgement": "LintReport, BootEvaluation",
    "judgement": "lint_report",
    "Wish": "DesiredAssignment",
    "wishes": "desired_assignments",
}
"""Names that said what only their author knew, and what stands for them now."""


def defined() -> list[tuple[str, str]]:
    """Return the modules, classes, functions and fields of the package, each with its file."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        name = str(path.relative_to(ROOT))
        found += [(part, name) for part in path.relative_to(ROOT).with_suffix("").parts]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                found.append((node.name, name))
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found.append((node.target.id, name))
    return found


def test_no_name_comes_back() -> None:
    assert [f"{file}: {name}, now {GONE[name]}" for name, file in defined() if name in GONE] == []


def test_a_public_class_has_a_name_of_its_own() -> None:
    classes = Counter(
        node.name
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in classes.items() if count > 1] == []


def test_a_folder_is_taken_in_at_a_glance() -> None:
    files = Counter(path.parent.name for path in ROOT.rglob("*.py") if path.stem != "__init__")
    assert [folder for folder, count in files.items() if count > 25] == []
