"""Has the daemon do its work from now on: units, policy, consent; and undoes all of that.

What would be in the way is looked for before anything is changed. Then, in this order: what the
configuration was is recorded, the configuration is written, units are turned on, and a boot is
armed. Whoever comes after an interruption at any point does the rest, or undoes it, by the record.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from initadvisor.apply import proving
from initadvisor.campaign.record import read_campaign
from initadvisor.core.config import Policy, Restart
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.core.plain_values import from_toml
from initadvisor.core.serialisation import from_document, to_document
from initadvisor.core.text import shown
from initadvisor.daemon.login import show_at_login
from initadvisor.doctor.doctor import diagnose
from initadvisor.doctor.findings import Grade, Topic
from initadvisor.doctor.software import ENABLED_BY_USER, INSTALL, UNITS, runs_systemd, unit_states
from initadvisor.generators.running import Elsewhere, elsewhere
from initadvisor.host.configuration import (
    CONFIG_PATH,
    config_text,
    edited_text,
    load_config,
    write_config,
)
from initadvisor.host.files import failing_as, remove_durably, write_file
from initadvisor.host.lock import lock_file, locked
from initadvisor.transaction.log import own_transactions
from initadvisor.transaction.transaction import Duty, TransactionState
from initadvisor.trial import campaigns
from initadvisor.trial.campaign_actions import needs_rehearsal
from initadvisor.trial.policy_limits import TURNED_OFF
from initadvisor.trial.reboot import UNIT as REBOOT_UNIT
from initadvisor.trial.risks import missing, risks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from initadvisor.doctor.findings import Finding
    from initadvisor.host import Host


_NAME = "enabled.json"
_SCHEMA = 1
_MOST_BYTES = 1 << 24
_WAIT_S = 10.0
_UNITS_S = 300.0
"""The daemon takes two minutes at most to end (initadvisord.service)."""

_POLICY, _CONSENT = "daemon.policy", "daemon.person_resets"
_STARTED_BY_OTHERS: Final = ("initadvisord-retry.timer", "initadvisord.service", REBOOT_UNIT)
"""The units that may run without being enabled; those of an armed boot have their own end."""

_FOR_TRIALS = frozenset({Topic.ENGINES, Topic.LOADER, Topic.UNLOCKING, Topic.ROOM, Topic.CHANGES})
"""What is in nobody's way where nothing is booted on trial, and nothing applied."""
_MENDED = frozenset({Topic.UNITS, Topic.BOOTS})
"""What lacks there, enabling itself mends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnablePlan:
    """What enabling would do; nothing is changed yet.

    ``runs``: systemd runs; else an image is being built, whose first boot has units started.
    ``notes``: what ``doctor`` finds worth knowing. ``risks``: what a person has to agree to first,
    in sentences, none where nobody may be needed or the configuration has that consent; ``lacking``
    is what that consent is about.
    ``rehearses``: the next boot is to show that the loader boots an entry once.
    """

    policy: Policy
    most_boots: int
    runs: bool
    notes: tuple[tuple[Topic, Finding], ...] = ()
    risks: tuple[str, ...] = ()
    lacking: frozenset[Restart] = frozenset()
    rehearses: bool = False


def plan_enable(host: Host, policy: Policy | None) -> EnablePlan:
    """Return what enabling would do, with ``policy`` or, for None, the configured one.

    Raises ``NeedsRootError``, and ``UnsafeError`` where it is of no use or something is in the way:
    in a container, on a live system, without systemd or the units, and for what ``doctor`` calls an
    obstacle to the policy.
    """
    host.require_root("enable initadvisor")
    config = load_config(host)
    chosen = policy or config.policy
    runs = _runs(host)
    if runs:
        _require_units(host)
    notes = _examined(host, chosen) if runs else ()
    most_boots = config.trial_boots_per_kernel
    tries = runs and (chosen is Policy.APPLY or (chosen is Policy.TRY and most_boots > 0))
    # Of an image that is being built nobody knows the machine.
    may_ask = tries and config.person_resets != frozenset(Restart)
    lacking = frozenset(missing(host) if may_ask else ())
    asks = not lacking <= config.person_resets
    plan = EnablePlan(
        policy=chosen,
        most_boots=most_boots,
        runs=runs,
        notes=notes,
        risks=risks(host) if asks else (),
        lacking=lacking if asks else frozenset(),
        rehearses=tries and most_boots > 0 and needs_rehearsal(host),
    )
    _wanted_text(host, plan)  # what cannot be written is said before anything is done
    return plan


def enable(host: Host, plan: EnablePlan) -> Iterator[str]:
    """Do it, and yield what was done, a line each; what is done already is not done again.

    Whoever calls this has the consent to ``plan.risks``. Raises ``InitadvisorError`` where
    something fails: the same again then does what is left, and ``disable`` undoes the rest.
    """
    with _alone(host):
        yield from _enabled(host, plan)


def _alone(host: Host) -> contextlib.AbstractContextManager[None]:
    """Be the only run that turns anything on or off."""
    lock = lock_file(host.state_dir(), "enable")
    return locked(lock, what="initadvisor enable or disable", wait_s=_WAIT_S)


def _wanted_text(host: Host, plan: EnablePlan) -> str | None:
    """Return what the configuration is to be; raises ``UsageError`` where it cannot be edited."""
    before, config = config_text(host), load_config(host)
    values: dict[str, object] = {}
    if config.policy is not plan.policy:
        values[_POLICY] = str(plan.policy)
    if plan.risks:
        agreed = replace(config, person_resets=config.person_resets | plan.lacking)
        values[_CONSENT] = agreed.tables["daemon"]["person_resets"]
    return edited_text(host, before or "", values) if values else before


def _enabled(host: Host, plan: EnablePlan) -> Iterator[str]:
    before, recorded = config_text(host), _recorded(host)
    after = _wanted_text(host, plan)
    if recorded is None:
        record = _Record(before=before, after=(after,))
    elif before in {recorded.before, *recorded.after}:
        written = dict.fromkeys((*recorded.after, after))
        record = _Record(before=recorded.before, after=tuple(written))
    else:
        record = _Record(before=_restored(host, before, recorded), after=(after,))
    if record != recorded:
        _write(host, record)
    if after != before:
        write_config(host, after)
        yield f"policy {plan.policy} is written to {CONFIG_PATH}"
    place = ("--now",) if plan.runs else (f"--root={host.root}",)
    _systemctl(host, "enable", *place, *ENABLED_BY_USER)
    when = "are on" if plan.runs else "are enabled, and start with the first boot of this image"
    yield f"the units {when}: {', '.join(ENABLED_BY_USER)}"
    if plan.runs and plan.policy is not Policy.APPLY:
        yield from _not_applied(host)
    if plan.runs and plan.policy is Policy.ADVISE:
        yield from _untried(host)
    elif plan.runs and plan.most_boots:
        yield from _rehearsed(host)


def _not_applied(host: Host) -> Iterator[str]:
    """Have nothing wait for its boot that the policy before has begun."""
    if any(t.by_policy and t.state.duty is Duty.WAIT for t in own_transactions(host)):
        yield from proving.settle(host)


def _untried(host: Host) -> Iterator[str]:
    """Have no boot armed that another policy wanted."""
    campaign = read_campaign(host)
    if not campaign.state.is_over and (campaign.by_policy or campaign.only_rehearsal):
        yield from campaigns.stop(host, reason=TURNED_OFF).told


def _rehearsed(host: Host) -> Iterator[str]:
    """Have the loader tried at the next boot, or say what is against it, which is no error."""
    try:
        yield from campaigns.rehearse(host)
    except InitadvisorError as err:
        yield f"the first trial will try the boot loader, the next boot does not: {err.with_hint}"


def disable(host: Host) -> Iterator[str]:
    """Undo all that ``enable`` did, and what came of it but for measurements and what was applied.

    The configuration is what it was, campaigns are stopped, what waits for a boot is withdrawn, and
    then units are off. Yields what was done, a line each. Raises ``NeedsRootError``,
    ``UnsafeError`` in a container and on a live system, and ``InitadvisorError`` where something
    fails: the same again then does what is left.
    """
    host.require_root("disable initadvisor")
    runs = _runs(host)
    with _alone(host):
        yield from _disabled(host, runs=runs)


def _disabled(host: Host, *, runs: bool) -> Iterator[str]:
    if not runs:
        yield from proving.in_turn(
            partial(_configured_back, host), partial(_units_off, host, f"--root={host.root}")
        )
        return
    # A boot that stays armed, after an interruption, meets the units that are enabled still.
    yield from proving.in_turn(
        partial(_configured_back, host),
        partial(_units_stopped, host),
        partial(_nothing_at_login, host),
        partial(_withdrawn, host),
        partial(_units_off, host),
        partial(_kept, host),
    )


def _runs(host: Host) -> bool:
    """Tell whether units can be started; False where an image is being built."""
    place = elsewhere(host)
    if place is Elsewhere.CHROOT:
        return False
    if place is not None:
        msg = f"not turning anything on or off: this is {place}, not an installed system"
        raise UnsafeError(msg)
    if not runs_systemd(host):
        msg = "nothing would be done by itself: this system does not run systemd"
        raise UnsafeError(msg, hint="after each boot: sudo initadvisor measure")
    return True


def _require_units(host: Host) -> None:
    """Raise ``UnsafeError`` where a unit lacks that would be started, or that those start."""
    states = unit_states(host)
    for unit in UNITS:
        state = states[unit]["LoadState"]
        if state == "not-found":
            msg = f"not turning anything on: {unit} is not installed"
            raise UnsafeError(msg, hint=INSTALL)
        if state == "masked" and unit != REBOOT_UNIT:  # no policy reboots
            msg = f"not turning anything on: {unit} is masked"
            raise UnsafeError(msg, hint=f"sudo systemctl unmask {unit}")


def _examined(host: Host, policy: Policy) -> tuple[tuple[Topic, Finding], ...]:
    """Return what ``doctor`` finds worth knowing; raises ``UnsafeError`` for what is in the way."""
    notes = []
    for topic, findings in diagnose(host).items():
        for finding in findings:
            if finding.grade is Grade.OBSTACLE and _is_in_the_way(topic, policy):
                without = "--policy advise goes without" if topic in _FOR_TRIALS else None
                hint = "; ".join(words for words in (finding.advice, without) if words)
                msg = f"not enabling policy {policy}: {finding.text}"
                raise UnsafeError(msg, hint=hint or None)
            if finding.grade is not Grade.OK and topic not in _MENDED:
                notes.append((topic, finding))
    return tuple(notes)


def _is_in_the_way(topic: Topic, policy: Policy) -> bool:
    """Tell whether an obstacle is one: a unit that has failed is started anew."""
    return topic is not Topic.UNITS and not (policy is Policy.ADVISE and topic in _FOR_TRIALS)


def _systemctl(host: Host, *words: str) -> None:
    host.runner.run(["systemctl", *words], timeout_s=_UNITS_S)


def _configured_back(host: Host) -> Iterator[str]:
    recorded, before = _recorded(host), load_config(host).policy
    if recorded is not None:
        now = config_text(host)
        after = _restored(host, now, recorded)
        if after != now:
            write_config(host, after)
    policy = load_config(host).policy
    if policy is not before:
        yield f"the policy is {policy}, as it was before"
    elif policy is not Policy.ADVISE:
        yield f"policy {policy} stays in {CONFIG_PATH}: enable has not written it"
    if recorded is not None:
        with failing_as(f"cannot forget what {CONFIG_PATH} was"):
            remove_durably(host.state_dir() / _NAME)


def _units_stopped(host: Host) -> Iterator[str]:
    """Have nothing armed from now on by what runs."""
    if loaded := _loaded(host, (*ENABLED_BY_USER, *_STARTED_BY_OTHERS)):
        _systemctl(host, "stop", *loaded)
    yield from ()


def _units_off(host: Host, *place: str) -> Iterator[str]:
    if units := ENABLED_BY_USER if place else _loaded(host, ENABLED_BY_USER):
        _systemctl(host, "disable", *place, *units)
    yield "the units are off: nothing is measured, built or tried by itself"


def _loaded(host: Host, units: Iterable[str]) -> tuple[str, ...]:
    """Return those that systemd knows."""
    states = unit_states(host)
    return tuple(unit for unit in units if states[unit]["LoadState"] == "loaded")


def _withdrawn(host: Host) -> Iterator[str]:
    """Have nothing armed or interrupted any more; each is tried, whatever becomes of the others."""
    reason = TURNED_OFF
    yield from proving.in_turn(
        partial(proving.withdraw_all, host, reason=reason),
        partial(_campaign_over, host, reason),
        partial(proving.settle, host),
    )


def _campaign_over(host: Host, reason: str) -> tuple[str, ...]:
    """End a campaign that is on; of one that is over, keep how it ended."""
    is_over = False
    with contextlib.suppress(InitadvisorError):  # a record that cannot be read is for ``stop``
        is_over = read_campaign(host).state.is_over
    if is_over:
        return campaigns.withdraw(host, reason=reason)
    return campaigns.stop(host, reason=reason).told


def _kept(host: Host) -> Iterator[str]:
    """Say what ``disable`` leaves."""
    applied = [t for t in own_transactions(host) if t.state is TransactionState.COMMITTED]
    if applied:
        last = applied[-1]
        yield (
            f"transaction {last.number} ({last.purpose}) stays applied: initadvisor rollback "
            "undoes it"
        )
    yield "measured boots stay: initadvisor history shows them"


def _nothing_at_login(host: Host) -> Iterator[str]:
    show_at_login(host, None)
    yield from ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """The configuration file's text before ``enable`` was called first, and those it wrote since.

    None: there was no file.
    """

    before: str | None
    after: tuple[str | None, ...]


def _restored(host: Host, now: str | None, record: _Record) -> str | None:
    """Return the text as it was; where others have changed it since, only what ``enable`` set."""
    if now in record.after:
        return record.before
    values: dict[str, object | None] = {}
    for name in (_POLICY, _CONSENT):
        old, *ours = (_value(text, name) for text in (record.before, *record.after))
        if _value(now, name) in ours and _value(now, name) != old:
            values[name] = old
    return edited_text(host, now or "", values) if values else now


def _value(text: str | None, name: str) -> object | None:
    table, _, key = name.partition(".")
    keys = from_toml(text or "").get(table)
    return keys.get(key) if isinstance(keys, dict) else None


def _recorded(host: Host) -> _Record | None:
    """Return what was recorded, None where ``enable`` was not called."""
    path = host.state_dir() / _NAME
    try:
        with path.open("rb") as file:
            return from_document(_Record, file.read(_MOST_BYTES), schema=_SCHEMA)
    except FileNotFoundError:
        return None
    except OSError as err:
        msg = f"cannot read {path}: {err.strerror}"
        raise InitadvisorError(msg) from err
    except ValueError as err:
        msg = f"cannot read {path}: it is damaged or a newer version's ({shown(str(err))})"
        raise InitadvisorError(msg, hint="remove it, and the configuration stays as it is") from err


def _write(host: Host, record: _Record) -> None:
    write_file(host.state_dir() / _NAME, to_document(record, schema=_SCHEMA, indent=1))
