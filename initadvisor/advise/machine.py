"""What is known of this machine before its boots are measured: figures and priors, stated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, hypot, log
from typing import TYPE_CHECKING

from initadvisor.advise.recommendation import Assumption
from initadvisor.core.codecs import Codec
from initadvisor.data.tables import observed_boots
from initadvisor.decide.boot_evidence import Parameter
from initadvisor.decide.cost import Machine, Quantity, Shadow

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from initadvisor.advise.boots import BootContext
    from initadvisor.candidates.search_space import Candidate
    from initadvisor.core.estimates import Estimate
    from initadvisor.data.tables import CalibrationTable
    from initadvisor.lab.evidence import LabEvidence


_Z95 = 1.96
LOADER_PART = 0.5
LOADER_DOWN, LOADER_UP = 15.0, 4.0
"""The loader is expected to read at such a part of Linux's speed. With 95 % probability it is at
most so many times slower or faster than that, and it is never faster than the link to the disk.

It reads through the firmware's drivers, with other request sizes and queue depths. Published: on
one machine 136 MB more of a unified kernel image took 11.6 s more, 12 MB/s
(travier/fedora-atomic-desktops-sealed, issue 23). GRUB on a BIOS read 106 MB from a USB stick in
15 s, 7 MB/s, and in 11 s with a buffer (grub-devel, August 2012). An IBM server's firmware read
0.75 MB/s where its system read 20 (serverfault.com, question 303918). Another loader's drivers read
7 MB/s on one system and 54 to 177 MB/s on another (IO-ZetZor/Visor-BootManager, issue 22). Faster
than Linux it may be where encryption or a busy disk holds Linux up; no figure was found for that.
"""

LOADER_LOG_SD = log(LOADER_DOWN) / _Z95
LOADER_LOG_SD_FASTER = log(LOADER_UP) / _Z95
_GIVEN_LOG_SD = 0.05
AS_GIVEN = "as given"
"""Where something comes from that an option says."""

LOADER_FIXED = Quantity(median=100.0, log_sd=1.0)
LAB = Quantity(median=1.0, log_sd=0.1)
"""How a kernel in a virtual machine compares with the same one on the bare processor.

Assumed, not measured: nested page tables make page faults dearer there, memory that is faulted in
beforehand makes them cheaper; decompression itself runs the same instructions.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """A machine for the cost model, and in words what it rests on."""

    machine: Machine
    assumptions: tuple[Assumption, ...]

    def slower(self, factor: float) -> Knowledge:
        """Return the same of a machine that takes a multiple of the time to create files (P)."""
        populate = self.machine.populate_ms
        populate = replace(populate, median=populate.median * factor)
        return replace(self, machine=replace(self.machine, populate_ms=populate))


def know_machine(
    *,
    read_mb_s: Estimate,
    link_mb_s: float | None = None,
    given_read_mb_s: float | None,
    given_overlap_ms: float | None,
    unpacked_bytes: int,
    context: BootContext,
    table: CalibrationTable,
    read_given: str = AS_GIVEN,
    overlap_given: str = AS_GIVEN,
) -> Knowledge:
    """Turn what was measured or given into what the cost model needs.

    ``read_mb_s`` is Linux's cold read, ``link_mb_s`` what the link to the disk carries, where that
    is known, ``given_read_mb_s`` the loader's speed as the user knows it; ``read_given`` and
    ``overlap_given`` say where what is given comes from. The assumptions named are those about
    reading and waiting; those about unpacking depend on the contenders, see
    ``unpacking_assumptions``.
    """
    loader = _loader(read_mb_s, given_read_mb_s, read_given, link_mb_s)
    shadow = _shadow(given_overlap_ms, overlap_given, context)
    fixed = replace(
        LOADER_FIXED,
        source=f"{LOADER_FIXED.median:.0f} ms within a factor of "
        f"{exp(_Z95 * LOADER_FIXED.log_sd):.0f}, plus reading the kernel "
        f"({context.kernel_mb:.1f} MB, {context.kernel_mb_source})",
    )
    populate = replace(
        table.populate_ms_per_mb,
        median=table.populate_ms_per_mb.median * unpacked_bytes / 1e6,
        source=table.source,
    )
    return Knowledge(
        machine=Machine(
            read_s_per_mb=loader,
            fixed_ms=fixed,
            kernel_mb=context.kernel_mb,
            populate_ms=populate,
            cpu=Quantity(median=1.0, log_sd=table.machine_log_sd, source=table.source),
            lab=LAB,
            shadow=shadow,
        ),
        assumptions=(
            Assumption(
                about=Parameter.LOADER,
                text=f"the loader's reading: {loader.source}",
                certain=given_read_mb_s is not None,
            ),
            Assumption(
                about=Parameter.SHADOW,
                text="how long the kernel is busy before it needs the initramfs (overlap): "
                f"{_said_of(shadow)}",
                certain=shadow.fixed_ms is not None,
            ),
            Assumption(about=Parameter.FIXED, text=f"what every image pays: {fixed.source}"),
        ),
    )


def unpacking_assumptions(
    candidates: Sequence[Candidate],
    machine: Machine,
    evidence: LabEvidence,
    *,
    told: Collection[Parameter] = (),
) -> tuple[Assumption, ...]:
    """Say in words what the times to unpack these contenders rest on.

    ``told``: what boots of this machine told of; how far that might be off without them is left
    out.
    """
    lab = [c for c in candidates if c.digest in evidence.unpack_ms]
    bench = [c for c in candidates if c not in lab]
    said = []
    if lab:
        who = "every image" if not bench else _names(lab)
        text = f"the time to unpack {who}: the lab's, of this machine's kernel in a virtual machine"
        if Parameter.LAB not in told:
            factor = exp(_Z95 * machine.lab.log_sd)
            text += f"; the bare machine is within a factor of {factor:.1f} of it"
        said.append(Assumption(about=Parameter.LAB, text=text))
    if bench:
        doubt = "" if Parameter.CPU in told else _doubt(machine)
        texts = _bench_assumptions(bench, machine, evidence, doubt, among_others=bool(lab))
        said.extend(Assumption(about=Parameter.CPU, text=text) for text in texts)
        plain = next((c for c in lab if c.codec is Codec.CAT), None)
        populate = machine.populate_ms
        if plain:
            text = (
                f"{evidence.unpack_ms[plain.digest].median:.0f} ms, the lab's time for the "
                "uncompressed image"
            )
        else:
            text = (
                f"{populate.median:.0f} ms, within a factor of {exp(_Z95 * populate.log_sd):.1f}, "
                f"from {populate.source}"
            )
        if Parameter.POPULATE not in told:
            said.append(Assumption(about=Parameter.POPULATE, text=f"creating the files: {text}"))
    return tuple(said)


def _doubt(machine: Machine) -> str:
    return (
        ", and whatever other kernels and processors change, within a factor of "
        f"{exp(_Z95 * machine.cpu.log_sd):.1f} either way"
    )


def _bench_assumptions(
    bench: Sequence[Candidate],
    machine: Machine,
    evidence: LabEvidence,
    doubt: str,
    *,
    among_others: bool,
) -> Iterator[str]:
    known = evidence.decompress_ms
    elsewhere = [c for c in bench if c.digest in known]
    if elsewhere:
        source = known[elsewhere[0].digest].source
        yield (
            f"the kernel's decompression of {_names(elsewhere)}: what {source}, took longer than "
            f"for the uncompressed image{doubt}"
        )
    scaled = [c for c in bench if c not in elsewhere and c.codec is not Codec.CAT]
    if scaled:
        of_whom = f" of {_names(scaled)}" if elsewhere or among_others else ""
        yield (
            f"the kernel's decompression{of_whom}: user space times the ratios of "
            f"{machine.cpu.source}{doubt}"
        )


def _names(candidates: Sequence[Candidate]) -> str:
    return ", ".join(str(candidate.setting) for candidate in candidates)


def _loader(
    measured: Estimate, given: float | None, given_by: str, link_mb_s: float | None
) -> Quantity:
    """Return r, in s per MB."""
    if given is not None:
        source = f"{given:g} MB/s, {given_by}"
        return Quantity(median=1 / given, log_sd=_GIVEN_LOG_SD, source=source)
    spread = log(max(measured.high, measured.low) / max(measured.low, 1e-3)) / (2 * _Z95)
    expected = LOADER_PART * measured.mean
    link = f", at most the link's {link_mb_s:.0f} MB/s" if link_mb_s else ""
    return Quantity(
        median=1 / min(expected, link_mb_s or expected),
        log_sd=hypot(LOADER_LOG_SD, spread),
        log_sd_below=hypot(LOADER_LOG_SD_FASTER, spread),
        least=1 / link_mb_s if link_mb_s else 0.0,
        source=f"Linux reads {measured.mean:.0f} MB/s ({measured.source}); the loader is expected "
        f"to read half as fast, {LOADER_DOWN:.0f} times slower than that to {LOADER_UP:.0f} times "
        f"faster{link}",
    )


def _shadow(given_ms: float | None, given_by: str, context: BootContext) -> Shadow:
    boots = observed_boots()
    if given_ms is not None:
        return Shadow(boots=boots, fixed_ms=given_ms, source=f"{given_ms:g} ms, {given_by}")
    if context.asynchronous is False:
        source = "none, this kernel unpacks the initramfs before it does anything else"
        return Shadow(boots=boots, fixed_ms=0.0, source=source)
    if context.one_processor:
        source = "none, on one processor unpacking and the kernel's other work add up"
        return Shadow(boots=boots, fixed_ms=0.0, source=source)
    return Shadow(boots=boots, source=f"drawn from {len(boots)} boots of other machines")


def _said_of(shadow: Shadow) -> str:
    return shadow.source if shadow.fixed_ms is not None else f"unknown here, {shadow.source}"
