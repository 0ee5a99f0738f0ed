"""The cost of a candidate: what is known of the machine and of each image, and what follows.

T(c) = L + r * size(c) + max(B1, U(c)) + B2, with U(c) = P + D(c)

L is what every candidate pays, r the loader's time per byte, U the kernel's time to unpack (P to
create the files, D to decompress), B1 (the shadow) how long the kernel has other work before
something waits for the initramfs, B2 what it does after that. A kernel that unpacks synchronously
has no shadow.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initadvisor.core.estimates import Estimate
    from initadvisor.core.settings import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A positive figure known up to a factor: lognormal, ``median`` times exp(N(0, ``log_sd``)).

    ``log_sd_below``: that of what is below the median, where it is lopsided. ``least``: it is never
    less.
    """

    median: float
    log_sd: float = 0.0
    source: str = ""
    log_sd_below: float | None = None
    least: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedBoot:
    """One boot of some machine from which the prior of the shadow is drawn; times in ms.

    ``waited``: the init task was seen waiting for the unpack, so ``shadow_ms`` (B1) was seen;
    otherwise B1 lies between ``unpack_ms`` and ``begin_to_init_ms`` (None where the log ends
    before /init ran).
    """

    waited: bool
    unpack_ms: float
    shadow_ms: float | None
    begin_to_init_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shadow:
    """What is known of B1 and B2: one of a number of boots, and where B1 is given, that instead.

    ``fixed_ms``: B1 as the user gives it; 0 for a kernel that unpacks synchronously, or on one
    processor.
    """

    boots: tuple[ObservedBoot, ...]
    fixed_ms: float | None = None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How a kernel's decompressor compares with the user-space library of the same codec.

    D is ``ratio`` times the time in user space, plus what mapping buffers takes. On the calibrated
    processor, user space took ``user_ms_per_mb`` per 10^6 unpacked bytes.
    ``log_sd`` is the error that all images of the codec share, ``own_log_sd`` that of each.
    """

    ratio: float
    user_ms_per_mb: float
    log_sd: float
    own_log_sd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What all candidates share on one machine.

    ``read_s_per_mb``: the loader's time per 10^6 bytes (r). ``fixed_ms`` and ``kernel_mb``: L is
    the former plus reading the kernel, which is as long as the latter. ``populate_ms``: P.
    ``cpu``: a factor on every D, for what differs between this machine's kernel and the kernel
    that was calibrated with. ``lab``: a factor on every U that was measured in a virtual machine,
    for what differs from the bare one.
    """

    read_s_per_mb: Quantity
    fixed_ms: Quantity
    kernel_mb: float
    populate_ms: Quantity
    cpu: Quantity
    lab: Quantity
    shadow: Shadow


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateFacts:
    """What is known of one candidate: its size and D, the time to decompress it in the kernel.

    ``codec_log_sd``: the error of D that all candidates with the codec share; that of
    ``decompress_ms`` itself is the candidate's own. ``unpack_ms``: U, all of it, as a virtual
    machine with this machine's kernel took it; where it is known, D is not needed. ``extra_ms`` is
    what the objective adds to each boot (the build, divided by the boots between two upgrades).
    ``eligible``: it fits, and the kernel would unpack it. ``digest``: of the image, where there is
    one, so that its boots are known as its own.
    """

    setting: Setting
    size_mb: Quantity
    decompress_ms: Quantity
    codec_log_sd: float = 0.0
    unpack_ms: Quantity | None = None
    extra_ms: float = 0.0
    eligible: bool = True
    digest: str | None = None


class Advice(StrEnum):
    """What the user is advised to do."""

    KEEP = "keep"
    SWITCH = "switch"


class Outcome(StrEnum):
    """Why: an expected gain that hardly ever is a loss, a certain lack of a gain, no difference
    worth having (``even``), or too little evidence for any of these.
    """

    SWITCH = "switch"
    KEEP = "keep"
    EVEN = "even"
    UNDECIDED = "undecided"


class Factor(StrEnum):
    """A fact about the machine that bench measurements leave open.

    Each is one of the quantities of ``Parameter``, by the same name.
    """

    LOADER = "loader"
    SHADOW = "overlap"
    CPU = "cpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class BestRange:
    """A range of a factor within which one setting is the best choice."""

    low: float
    high: float
    setting: Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidingFact:
    """The fact that, once known, is likeliest to settle a decision that is open.

    ``settled`` is the probability that knowing it gives a certain decision, to switch or to keep.
    ``ranges``: which setting would then be the best, over the middle 95 % of what the fact may
    be, from the smallest value to the largest (loader: MB/s; shadow: ms; cpu: the kernel's
    decompression time relative to the prediction).
    """

    factor: Factor
    settled: float
    ranges: tuple[BestRange, ...]

    @property
    def decides(self) -> bool:
        """Whether knowing it may change what is best, and settle that."""
        return self.settled > 0 and len(self.ranges) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The advice. ``setting`` is today's unless the outcome is ``switch``.

    ``probability``: for ``switch`` that the setting does not lose more than the tolerance, else
    that no setting saves more than the tolerance. ``best_probability``: that nothing is better than
    the setting by more than the tolerance; ``best``: that this is certain. ``settled``: nothing is
    left that is worth finding out. ``loss_ms``: how much more than with the best setting, whichever
    that is, a boot is expected to cost with this one. ``tolerance_ms``: the difference that does
    not matter. ``saving_ms`` is what the setting saves per boot against today's. ``leader`` is the
    setting, other than today's, with the largest expected saving; ``leader_probability``: that it
    saves more than the tolerance. ``guess`` is what is expected to cost least, today's included,
    where nothing is definite; else it is ``setting``. ``guess_probability``: that nothing is better
    by more than the tolerance.
    """

    action: Advice
    outcome: Outcome
    setting: Setting
    probability: float
    best_probability: float
    best: bool
    settled: bool
    loss_ms: float
    tolerance_ms: float
    saving_ms: Estimate
    guess: Setting
    guess_probability: float
    leader: Setting
    leader_probability: float
    leader_saving_ms: Estimate

    @property
    def is_worth_boots(self) -> bool:
        """Whether to know the best setting is expected to save what matters."""
        return self.loss_ms > self.tolerance_ms
