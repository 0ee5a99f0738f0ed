"""``initadvisor enable``: what will happen by itself from now on, asked for once, and turned on."""

from __future__ import annotations

import contextlib
import itertools
import signal
import sys
from typing import TYPE_CHECKING, Any

import click

from initadvisor.cli.rendering.output import print_json
from initadvisor.cli.rendering.text import print_paragraph
from initadvisor.core.config import Policy
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.core.text import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

    from initadvisor.daemon.enable import EnablePlan
    from initadvisor.host import Host


@click.command()
@click.option(
    "--policy",
    type=click.Choice([policy.value for policy in Policy]),
    help="What the daemon does with its answers; as configured if it is left out.",
)
@click.option("--yes", is_flag=True, help="Ask nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON; nobody is asked.")
def enable(*, policy: str | None, yes: bool, as_json: bool) -> None:
    """Measure each boot, find the best setting, and try and apply it by the policy.

    "advise" says what is best, "try" also has boots that happen anyway settle what is undecided,
    and "apply" also changes the setting. First it says what will happen, and asks for consent to
    what a person may be needed for.
    """
    from initadvisor.daemon.enable import enable as turn_on
    from initadvisor.daemon.enable import plan_enable
    from initadvisor.host import Host

    host = Host()
    plan = plan_enable(host, Policy(policy) if policy else None)
    if not as_json:
        _tell(plan)
    _require_consent(plan, yes=yes, may_ask=not as_json and sys.stdin.isatty())
    advice = _advise(Host()) if plan.runs else ()
    if as_json:
        print_json(_document(plan, advice, list(turn_on(host, plan))))
        return
    for line in itertools.chain(advice, turn_on(host, plan)):
        print_paragraph(shown(line))


def _document(plan: EnablePlan, advice: Sequence[str], done: Sequence[str]) -> dict[str, Any]:
    return {
        "policy": plan.policy.value,
        "most_boots": plan.most_boots,
        "started": plan.runs,
        "worth_knowing": [
            {"topic": topic.value, "text": note.text, "advice": note.advice}
            for topic, note in plan.notes
        ],
        "risks": list(plan.risks),
        "rehearses": plan.rehearses,
        "advice": list(advice),
        "done": list(done),
    }


_CATCH_UP_S = 20.0
"""Far more than the boots of a month take; what is left, later runs record."""
_ADVICE_S = 50.0
"""A few times what it takes on a machine that does nothing else."""


class _OutOfTimeError(BaseException):
    """Unwinds like an interruption."""


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise ``_OutOfTimeError`` in the block when it has taken so long."""
    from initadvisor.host.signals import is_put_off

    def end(signum: int, frame: FrameType | None) -> None:
        if not is_put_off(signum, frame):
            raise _OutOfTimeError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _advise(host: Host) -> tuple[str, ...]:
    """Return what is best by the boots of the journal, after what is wrong with those, in lines.

    ``host``: where it takes too long, no program is run for it any more.
    """
    from initadvisor.advise.recommend import Request, recommend
    from initadvisor.cli.recommend_text import verdict
    from initadvisor.cli.rendering.progress import Progress
    from initadvisor.measure.catch_up import catch_up

    told = None
    try:
        with _limited(_ADVICE_S), Progress() as progress:
            told = catch_up(host, observer=progress, budget_s=_CATCH_UP_S)
            first = next(verdict(recommend(host, Request(), observer=progress)))
    except InitadvisorError as err:
        told, first = None, f"none yet, since {err.message}"
    except _OutOfTimeError:
        first = "none yet, since this machine is busy: sudo initadvisor recommend"
    return (*((told,) if told else ()), f"Advice so far: {first}")


_TRIED = {
    Policy.ADVISE: "No reboot tries anything, and nothing that boots is changed.",
    Policy.TRY: "Up to {boots} of the reboots that happen anyway try a candidate, for each kernel.",
    Policy.APPLY: "Up to {boots} reboots for each kernel try candidates; the best is configured.",
}
_TRIED_WITHOUT_BOOTS = {
    Policy.TRY: "No reboot tries anything: trial_boots_per_kernel is 0.",
    Policy.APPLY: "No reboot tries any (trial_boots_per_kernel is 0); the best is applied.",
}
_FAILED = {
    Policy.ADVISE: "So no boot can fail for it; what is best says: initadvisor recommend",
    Policy.TRY: "If a trial fails, the next boot is today's; it is repeated once at most.",
    Policy.APPLY: "If one fails, the next boot is today's again; slower boots undo the change.",
}


def _tell(plan: EnablePlan) -> None:
    """Print what happens from now on, in five lines, and what is to be known before."""
    tried, failed = _TRIED, _FAILED
    if not plan.most_boots:
        tried = tried | _TRIED_WITHOUT_BOOTS
        failed = failed | {Policy.TRY: failed[Policy.ADVISE]}
    for number, line in enumerate(
        (
            "Each boot is measured, a minute after it is complete.",
            "After a kernel upgrade candidates are built, while the machine is idle.",
            tried[plan.policy].format(boots=plan.most_boots),
            failed[plan.policy],
            "initadvisor status shows how far it is; sudo initadvisor disable stops it.",
        ),
        1,
    ):
        click.echo(f"{number}. {line}")
    if plan.notes:
        topics = ", ".join(dict.fromkeys(str(topic) for topic, _ in plan.notes))
        print_paragraph(f"Worth knowing: {topics} (initadvisor doctor says what)")
    for sentence in plan.risks:
        print_paragraph(shown(sentence))
    if plan.rehearses:
        print_paragraph(
            "That this machine comes back by itself is not proven yet: the next boot, of today's "
            "image from a trial's entry, is the rehearsal."
        )


def _require_consent(plan: EnablePlan, *, yes: bool, may_ask: bool) -> None:
    """Go on only if what a person may be needed for is accepted."""
    if yes or not plan.risks:
        return
    if not may_ask:
        msg = "nothing was enabled: nobody could be asked whether that is accepted"
        raise UnsafeError(msg, hint="--yes accepts it; --policy advise boots nothing on trial")
    click.confirm("Enable it?", abort=True)
