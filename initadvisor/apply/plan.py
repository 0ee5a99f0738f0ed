"""What ``apply`` would change, need and gain; nothing is changed.

``planned_edits``: what it changes in configuration files, for one image or for all of them.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.advise.loading import loading_time
from initadvisor.advise.recommend import Request, recommend
from initadvisor.apply.commit import require_previous_entry
from initadvisor.apply.loaded import require_loaded, same_copies
from initadvisor.apply.plan_values import (
    ApplyPlan,
    ApplyStep,
    Blocker,
    PlannedImage,
    PlannedVariant,
)
from initadvisor.apply.room import lacking, room_needed
from initadvisor.apply.variants import edit_of, known_variant
from initadvisor.bootloaders.detect import default_entry, detect_boot_loader
from initadvisor.bootloaders.entry import EntryKind
from initadvisor.bootloaders.safety import require_no_binding
from initadvisor.campaign.record import require_no_campaign
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.core.refusals import RefusedError
from initadvisor.decide.cost import Outcome
from initadvisor.firmware.efi_variables import enforces_signatures
from initadvisor.firmware.signers import signers
from initadvisor.generators.rewriting import texts_of
from initadvisor.generators.running import require_installed_system
from initadvisor.generators.ukify import require_made_of
from initadvisor.host.owner import owner_of_host
from initadvisor.host.replace import require_changeable, require_plain
from initadvisor.lab.verify import require_engine
from initadvisor.rewrite.files import FileEdit
from initadvisor.target.target import default_image
from initadvisor.transaction.transactions import pending
from initadvisor.trial.beside import require_can_sign
from initadvisor.trial.evidence import require_boot_time_unit
from initadvisor.trial.ownership import require_no_orphan
from initadvisor.trial.risks import unguarded_default

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from initadvisor.advise.recommend import RecommendObserver
    from initadvisor.advise.recommendation import Recommendation, Row
    from initadvisor.core.refusals import Refusal
    from initadvisor.core.settings import Setting
    from initadvisor.generators import (
        ConfiguredSetting,
        Generator,
        InstalledImage,
        VariantName,
    )
    from initadvisor.host import Host


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyRequest:
    """What the user asks for.

    ``setting`` None: the recommended one. ``variant``: less content, and today's setting.
    ``everything``: all images. ``keep``: what is replaced is to be kept for going back.
    ``read_speed_mb_s``, ``overlap_ms``: of the machine, as the user knows them.
    """

    setting: Setting | None = None
    variant: VariantName | None = None
    everything: bool = False
    keep: bool = True
    read_speed_mb_s: float | None = None
    overlap_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What is known of the setting: its row and today's in a recommendation, the content's size."""

    setting: Row | None = None
    today: Row | None = None
    image: Path | None = None
    unpacked_bytes: int | None = None
    doubt: str = ""


def plan_apply(host: Host, request: ApplyRequest, *, observer: RecommendObserver) -> ApplyPlan:
    """Return the plan for the setting or variant that is asked for, else for the advised setting.

    Raises ``InitadvisorError`` where this machine has no generator or no image, ``UnsafeError``
    (``RefusedRewriteError``) where the configuration cannot be rewritten safely,
    ``NeedsRootError`` where only root may look.
    """
    generator, default = default_image(host, "apply a setting")
    today = generator.configured(host, default.kernel_release)
    if request.variant:
        return _variant_plan(host, generator, default, today, request.variant, keep=request.keep)
    question = Request(
        read_speed_mb_s=request.read_speed_mb_s,
        overlap_ms=request.overlap_ms,
    )
    if request.setting:
        setting, why = request.setting, "as asked"
        known = _look_up(host, question, setting, observer)
    else:
        advice = recommend(host, question, observer=observer)
        known, setting = _known(advice, advice.decision.setting), advice.decision.setting
        why = f"recommended now {_basis(advice)}"
        if advice.decision.outcome is not Outcome.SWITCH:
            why = f"recommended now is to keep it: {advice.decision.outcome}, {_basis(advice)}"
            return ApplyPlan(generator=generator.NAME, setting=setting, today=today, why=why)
    edits, unchanged = planned_edits(
        host, generator, default, setting, everything=request.everything
    )
    texts = texts_of(edits)
    images = tuple(
        _planned(host, generator, image, texts, known, rebuilt=request.everything)
        for image in generator.affected(host, edits)
    )
    wanted = generator.compressor(host, setting)
    images = tuple(
        replace(one, rebuilt=True)
        if _is_alike(one.image, default)
        or (
            one.image.kernel_release == default.kernel_release
            and generator.compressor(host, one.after.setting) == wanted
        )
        else one
        for one in images
    )
    room_of = partial(room_needed, unpacked_bytes=known.unpacked_bytes, keep=request.keep)
    room, tight = room_of(host, images), []
    if not request.everything and any(lacking(host, room)):
        tight = [str(one.image.path) for one in images if one.rebuilt and one.image.fallback]
        images = tuple(replace(one, rebuilt=_is_alike(one.image, default)) for one in images)
        room = room_of(host, images)
    if not request.everything:
        images = tuple(replace(one, may_stay=_may_stay(one, default)) for one in images)
    return ApplyPlan(
        generator=generator.NAME,
        setting=setting,
        today=today,
        why=why,
        edits=edits,
        images=images,
        space=room,
        saving_ms=known.setting.saving_ms if known.setting else None,
        blockers=(
            *_obstacles(host, generator, setting, images, default),
            *_irreplaceable(edits, images),
            *lacking(host, room),
        )
        if edits
        else (),
        warnings=(
            *unchanged,
            *(f"{path} stays as it is: there is no room to rebuild it, too" for path in tight),
            *(
                f"{one.image.path} stays as it is where a rebuild has other files than it: then "
                f"whoever rebuilds it next gives it {setting}"
                for one in images
                if one.may_stay
            ),
            *(
                f"{path} stays as it is: it is not what {one.image.path} is"
                for one in images
                for path in one.unlike
            ),
            *_warnings(host, known, images),
        ),
    )


def _variant_plan(
    host: Host,
    generator: Generator,
    default: InstalledImage,
    today: ConfiguredSetting,
    name: VariantName,
    *,
    keep: bool,
) -> ApplyPlan:
    """Return the plan to take content out of the default image; all others stay as they are."""
    variant, built = known_variant(host, generator, default, name)
    edit = edit_of(variant)
    known = _Known()
    images = tuple(
        _planned(host, generator, image, texts_of([edit]), known, rebuilt=image == default)
        for image in generator.affected(host, [edit])
    )
    images = tuple(
        replace(one, expected_bytes=built.size_bytes) if one.rebuilt else one for one in images
    )
    room = room_needed(host, images, unpacked_bytes=None, keep=keep)
    return ApplyPlan(
        generator=generator.NAME,
        setting=today.setting,
        today=today,
        why=name.description,
        variant=PlannedVariant(
            name=name, line=variant.line, loses=variant.loses, expected=built.differs
        ),
        edits=(edit,),
        images=images,
        space=room,
        saving_ms=built.saving_ms,
        blockers=(
            *(
                # No option goes without the image that has all content.
                replace(one, step=ApplyStep.BUILD) if one.step is ApplyStep.PREVIOUS_ENTRY else one
                for one in _obstacles(host, generator, today.setting, images, default)
            ),
            *_irreplaceable([edit], images),
            *lacking(host, room),
        ),
        warnings=(
            f"{variant.loses}: for that the previous image has an entry in the boot menu, until "
            "this one is built anew",
            *(
                f"{one.image.path} stays as it is until it is built anew: then {variant.line} is "
                "for it, too"
                for one in images
                if not one.rebuilt and not (one.image.fallback and variant.in_fallback)
            ),
            *_not_measured(host, name),
            *_warnings(host, known, images),
        ),
    )


def _not_measured(host: Host, name: VariantName) -> Iterator[str]:
    """Say where what is expected to be saved is without what loading modules takes then."""
    loading = loading_time(host, name)
    if loading and not loading.saved_ms:
        yield loading.words


def _basis(advice: Recommendation) -> str:
    """Say which answer it is."""
    words = [f"for the objective {advice.objective}", f"evidence: {advice.evidence}"]
    return ", ".join([*words, *(f"given: {one}" for one in advice.given)])


def _is_alike(image: InstalledImage, default: InstalledImage) -> bool:
    return not image.fallback and image.kernel_release == default.kernel_release


def _may_stay(planned: PlannedImage, default: InstalledImage) -> bool:
    return planned.rebuilt and planned.image.fallback and planned.image.path != default.path


def _look_up(
    host: Host, question: Request, setting: Setting, observer: RecommendObserver
) -> _Known:
    """Weigh the setting, alone where no others are weighed with it.

    That it cannot be weighed hinders nothing.
    """
    try:
        known = _known(recommend(host, question, observer=observer), setting)
        if known.setting is None:
            question = replace(question, only=(setting,))
            known = _known(recommend(host, question, observer=observer), setting)
        return known
    except InitadvisorError as err:
        return _Known(doubt=f"what {setting} would gain is not known: {err.message}")


def _known(advice: Recommendation, setting: Setting) -> _Known:
    rows = {row.setting: row for row in advice.rows}
    return _Known(
        setting=rows.get(setting),
        today=rows.get(advice.baseline),
        image=advice.image,
        unpacked_bytes=advice.unpacked_bytes,
    )


def _planned(
    host: Host,
    generator: Generator,
    image: InstalledImage,
    texts: Mapping[Path, str],
    known: _Known,
    *,
    rebuilt: bool,
) -> PlannedImage:
    try:
        size_bytes = image.path.stat().st_size
        copies = same_copies(image)
    except OSError as err:
        msg = f"cannot look at {err.filename}: {err.strerror}"
        raise InitadvisorError(msg) from err
    return PlannedImage(
        image=replace(image, copies=copies),
        unlike=tuple(path for path in image.copies if path not in copies),
        rebuilt=rebuilt,
        after=generator.configured(host, image.kernel_release, texts=texts, image=image),
        size_bytes=size_bytes,
        expected_bytes=_expected_bytes(image, size_bytes, known),
    )


def _expected_bytes(image: InstalledImage, size_bytes: int, known: _Known) -> int | None:
    """Return the size of what was weighed; of another image, what shrinks or grows as that does."""
    if known.setting is None or known.today is None:
        return None
    if image.path == known.image and not image.uki:
        return known.setting.size_bytes
    if image.uki:
        return size_bytes + known.setting.size_bytes - known.today.size_bytes
    return round(size_bytes * known.setting.size_bytes / known.today.size_bytes)


def _irreplaceable(edits: Sequence[FileEdit], images: Sequence[PlannedImage]) -> Iterator[Blocker]:
    """Yield what would be refused in the end: links, and what cannot be written, not by root."""
    paths = [Path(edit.path) for edit in edits]
    paths += [path for planned in images if planned.rebuilt for path in planned.image.paths]
    for path in paths:
        try:
            if os.path.lexists(path):
                require_plain(path, path.lstat())
            require_changeable(path)
            if os.statvfs(path.parent).f_flag & os.ST_RDONLY:
                reason = f"{path} is on a file system that is mounted read-only"
                yield Blocker(step=ApplyStep.BUILD, reason=reason, remedy="mount it for writing")
        except UnsafeError as err:
            yield Blocker(step=ApplyStep.BUILD, reason=err.message, remedy=err.hint or "")
        except OSError as err:
            reason = f"cannot look at {path}: {err.strerror}"
            yield Blocker(step=ApplyStep.BUILD, reason=reason)


def _obstacles(
    host: Host,
    generator: Generator,
    setting: Setting,
    images: Sequence[PlannedImage],
    default: InstalledImage,
) -> Iterator[Blocker]:
    yield from _refused(ApplyStep.BUILD, lambda: require_installed_system(host, generator.NAME))
    yield from _refused(ApplyStep.BUILD, lambda: owner_of_host(host))
    wanted = generator.compressor(host, setting)
    for planned in images:
        if planned.rebuilt and generator.compressor(host, planned.after.setting) != wanted:
            yield Blocker(
                step=ApplyStep.BUILD,
                reason=f"{planned.image.path} would be made with {planned.after.setting}, not with "
                f"{setting} ({planned.after.source})",
                remedy="; ".join(planned.after.warnings),
            )
    if not any(planned.rebuilt for planned in images):
        reason = "the image that boots by default is not made by the configuration that changes"
        yield Blocker(step=ApplyStep.BUILD, reason=reason)
    elif not any(planned.rebuilt and _is_alike(planned.image, default) for planned in images):
        reason = "the image that boots by default stays as it is: there is nothing new to boot"
        yield Blocker(step=ApplyStep.PROVING_BOOT, reason=reason)
    for waiting in pending(host):
        reason = f"transaction {waiting.number} ({waiting.purpose}) is {waiting.state}"
        yield Blocker(step=ApplyStep.BUILD, reason=reason, remedy="initadvisor status shows it")
    rebuilt = [planned.image for planned in images if planned.rebuilt]
    for image in rebuilt:
        if image.uki:  # what cannot be verified is not replaced: found out before building
            yield from _refused(ApplyStep.BUILD, partial(signers, host, image.path))
            yield from _refused(ApplyStep.BUILD, partial(require_made_of, host, image))
    yield from _refused(ApplyStep.VERIFYING, lambda: require_engine(host, rebuilt))
    yield from _of_the_boot_loader(host, images)


def _of_the_boot_loader(host: Host, images: Sequence[PlannedImage]) -> Iterator[Blocker]:
    yield from _against_a_proving_boot(host)
    rebuilt = [planned for planned in images if planned.rebuilt]
    in_vain = tuple(_refused(ApplyStep.BUILD, lambda: require_loaded(host, images)))
    yield from in_vain
    if rebuilt and not in_vain:  # or the one reason would be told twice
        yield from _refused(ApplyStep.PREVIOUS_ENTRY, lambda: require_previous_entry(host, rebuilt))
    yield from _refused(ApplyStep.UNLOCKING, lambda: require_no_binding(host, default_entry))


def _against_a_proving_boot(host: Host) -> Iterator[Blocker]:
    found: list[Refusal] = []

    def ask() -> None:
        loader = detect_boot_loader(host)
        found.extend(loader.refusals(host))
        require_no_orphan(host, loader, EntryKind.TRIAL)
        require_boot_time_unit(host)
        require_no_campaign(host)
        with contextlib.suppress(RefusedError):  # of what boots by default, told already
            require_can_sign(host, loader.default_entry(host))

    yield from _refused(ApplyStep.PROVING_BOOT, ask)
    for refusal in found:
        if not refusal.kind.may_be_overridden:  # a matter of unlocking, which has its own step
            yield Blocker(step=ApplyStep.PROVING_BOOT, reason=refusal.reason, remedy=refusal.remedy)


def _refused(step: ApplyStep, check: Callable[[], object]) -> Iterator[Blocker]:
    """Yield why a check fails, nothing where it does not."""
    try:
        check()
    except InitadvisorError as err:
        yield Blocker(step=step, reason=err.message, remedy=err.hint or "")


def _warnings(host: Host, known: _Known, images: Sequence[PlannedImage]) -> Iterator[str]:
    yield from _risk(host)
    if known.doubt:
        yield known.doubt
    for planned in images:
        yield from (f"{planned.image.path}: {warning}" for warning in planned.after.warnings)
    if any(planned.rebuilt and planned.image.uki for planned in images):
        try:
            enforced = enforces_signatures(host)
        except InitadvisorError as err:
            yield f"it is not known whether Secure Boot is on: {err.message}"
            return
        if enforced:
            yield "Secure Boot is on: a unified kernel image that comes out unsigned is refused"


def _risk(host: Host) -> Iterator[str]:
    """Say where the proving boot, if it fails, may need a person."""
    with contextlib.suppress(InitadvisorError):  # no loader that is known: that is in the way
        if reason := unguarded_default(host):
            yield f"a proving boot that fails may wait for a person at the machine: {reason}"


def planned_edits(
    host: Host,
    generator: Generator,
    default: InstalledImage,
    setting: Setting,
    *,
    everything: bool,
) -> tuple[tuple[FileEdit, ...], tuple[str, ...]]:
    """Return what to change so that the default image gets the setting.

    With ``everything`` all the others, too: a preset of mkinitcpio may have a configuration of its
    own, or read none of the drop-ins. Where that cannot be had, the second part says of which image
    and why; it is then left as it is, or an obstacle where a changed file is read for it, too.

    Raises ``RefusedRewriteError``, ``UnsafeError`` and what else ``rewritten`` does for the default
    image.
    """
    edits = generator.rewritten(host, default.kernel_release, setting)
    unchanged: list[str] = []
    for image in generator.images(host) if everything else ():
        try:
            more = _more(host, generator, image, setting, edits)
        except InitadvisorError as err:
            unchanged.append(f"{image.path} cannot be given the setting: {err.message}")
        else:
            edits = _merged(edits, more)
    return edits, tuple(unchanged)


def _more(
    host: Host,
    generator: Generator,
    image: InstalledImage,
    setting: Setting,
    edits: Sequence[FileEdit],
) -> tuple[FileEdit, ...]:
    """Return what to change beside ``edits``; nothing where those give the setting already."""
    release, texts = image.kernel_release, texts_of(edits)
    found = generator.configured(host, release, texts=texts, image=image).setting
    if generator.compressor(host, found) == generator.compressor(host, setting):
        return ()
    return generator.rewritten(host, release, setting, texts=texts, image=image)


def _merged(first: Sequence[FileEdit], second: Sequence[FileEdit]) -> tuple[FileEdit, ...]:
    """Return both as one; a file that is in both is now what the first found."""
    before = {edit.path: edit.before for edit in (*second, *first)}
    after = {edit.path: edit.after for edit in (*first, *second)}
    return tuple(
        FileEdit(path=path, before=before[path], after=text) for path, text in after.items()
    )
