"""Names are the field's, and each has one meaning."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

import initadvisor
from initadvisor.cli import root
from tests.fixtures.golden_documents import GOLDEN

if TYPE_CHECKING:
    from collections.abc import Iterator

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


TEXTS_SAY = "overlap, predicted, slow codecs, what every image pays"
"""What texts for users have for the words that they do not have."""

FOR_USERS = re.compile(r"(?<![\w-])(?:(?i:shadow|bench|hopeless)|B1|L)(?!\w)")


def said_by(command: click.Command, path: str) -> Iterator[tuple[str, str]]:
    """Yield the help of a command and of those below it, each with the words that call it."""
    context = click.Context(command, info_name=path)
    yield path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from said_by(inner, f"{path} {name}")


def texts() -> Iterator[tuple[str, str]]:
    """Yield what users read or type: manual, help, documents, and the strings of the package."""
    top = ROOT.parent
    for path in (*(top / "man").iterdir(), *(top / "completions").iterdir()):
        yield path.name, re.sub(r"\\\\f.", "", path.read_text(encoding="utf-8"))
    for path in (GOLDEN / "json").iterdir():
        yield path.name, path.read_text(encoding="utf-8").replace("_", " ")
    yield from said_by(root, "initadvisor")
    for path in ROOT.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nodes = [node for node in ast.walk(tree) if not isinstance(node, ast.Expr)]
        for child in (child for node in nodes for child in ast.iter_child_nodes(node)):
            # One word alone may be a key or an option of a program; a sentence is for people.
            if isinstance(child, ast.Constant) and " " in str(child.value).strip():
                yield str(path.relative_to(ROOT)), str(child.value)


def test_texts_for_users_are_in_their_words() -> None:
    assert [
        f"{name}: {found[0]}, now one of {TEXTS_SAY}"
        for name, text in texts()
        for found in FOR_USERS.finditer(text)
    ] == []
