"""The configuration file: which settings are tried, with what means, and when a gain counts.

It is TOML with four tables, every key optional:

    [machine]
    read_speed_mb_s = 500
    overlap_ms = 300

    [candidates]
    settings = ["zstd", "zstd -19", "lz4 -9", "cat"]
    slow_codecs = ["bzip2", "lzma"]
    jobs = 2
    cache_limit_mb = 4000

    [recommend]
    objective = "boot"
    boots_per_upgrade = 14
    tolerance_ms = 5.0
    tolerance_fraction = 0.02
    certainty = 0.95
    max_excess_s = 3.0

    [daemon]
    policy = "advise"
    trial_boots_per_kernel = 6
    person_resets = false

What each key means stands with the field of the same name in ``Config``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self, TypeVar

from initadvisor.core.codecs import CODECS, Codec
from initadvisor.core.errors import UsageError, require
from initadvisor.core.settings import Setting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


_Words = TypeVar("_Words", bound=StrEnum)


class Objective(StrEnum):
    """What is to be small."""

    BOOT = "boot"
    SIZE = "size"
    BALANCED = "balanced"


class Policy(StrEnum):
    """What the daemon does with an answer by itself; each does what the one before it does."""

    ADVISE = "advise"
    """It says it, and nothing else."""
    TRY = "try"
    """It has boots that happen anyway settle what is undecided and worth a boot."""
    APPLY = "apply"
    """It applies a switch as ``initadvisor apply --confirm`` does, without any exception."""


class Restart(StrEnum):
    """What restarts a machine whose trial hangs, see ``trial.risks``."""

    GUARD = "guard"
    """A process in the image, as long as it is not left."""
    WATCHDOG = "watchdog"
    """The hardware's, from when systemd runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What the user may choose once and for all; the defaults are those of a missing file.

    ``read_speed_mb_s``: how fast the boot loader reads, in 10^6 bytes/s, and ``overlap_ms``: for
    how long the kernel is busy before it needs the initramfs; None: not known, see
    ``advise.machine``.

    ``settings``: the settings to try, in place of the default set (each codec as the generator
    would run it, and the levels worth trying); empty: the default set.

    ``slow_codecs``: the codecs whose settings are built last, and those of the default set only
    when everything is asked for.

    ``jobs``: how many candidates are built at the same time; None: as many as there are processors.

    ``cache_limit_bytes`` (``cache_limit_mb``, in units of 10^6 bytes): when the candidates that are
    kept exceed this, those of other images than the one at hand go, the oldest first.

    ``objective``: what is to be small: ``boot`` (the time a boot takes), ``size`` (the image) or
    ``balanced`` (the time of a boot plus that of a build, divided by ``boots_per_upgrade``).

    ``boots_per_upgrade``: how many boots there are between two builds of the image; None: counted
    from recorded boots, see ``decide.upgrades``.

    ``tolerance_ms``, ``tolerance_fraction``: a saving below the larger of the two (the latter as a
    part of the time in which today's image is read and unpacked) does not matter.

    ``certainty``: how probable a saving must be before a switch is recommended.

    ``max_excess_s``: a candidate that is expected to cost so much more than today's image is not
    booted to learn from, unless everything is asked for.

    ``policy``: what the daemon does with an answer by itself.

    ``trial_boots_per_kernel``: how many trial boots the policy arms at most for one kernel release;
    0: none.

    ``person_resets``: what may be missing where the policy arms a boot, so that one which hangs may
    wait for a person to reset the machine (in the file also ``true`` for all, ``false`` for none).

    ``motd``: whether the daemon's answer is shown to whoever logs in; see pam_motd(8).
    """

    read_speed_mb_s: float | None = None
    overlap_ms: float | None = None
    settings: tuple[Setting, ...] = ()
    slow_codecs: frozenset[Codec] = frozenset(
        spec.codec for spec in CODECS.values() if not spec.is_candidate
    )
    jobs: int | None = None
    cache_limit_bytes: int = 4_000_000_000
    objective: Objective = Objective.BOOT
    boots_per_upgrade: int | None = None
    tolerance_ms: float = 5.0
    tolerance_fraction: float = 0.02
    certainty: float = 0.95
    max_excess_s: float = 3.0
    policy: Policy = Policy.ADVISE
    trial_boots_per_kernel: int = 6
    person_resets: frozenset[Restart] = frozenset()
    motd: bool = False

    @classmethod
    def from_tables(cls, tables: Mapping[str, Any], *, source: str) -> Self:
        """Return the configuration that the parsed file ``source`` holds.

        Raises ``UsageError``, naming the file and the key, for an unknown key or a bad value.
        """
        values: dict[str, Any] = {}
        for table, content in tables.items():
            if table not in _KEYS:
                msg = f"{source}: unknown table [{table}]"
                raise UsageError(msg, hint=f"one of: {', '.join(_KEYS)}")
            if not isinstance(content, dict):
                msg = f"{source}: {table} must be a table, written [{table}]"
                raise UsageError(msg)
            for key, value in content.items():
                if key not in _KEYS[table]:
                    msg = f"{source}: unknown key {key} in [{table}]"
                    raise UsageError(msg, hint=f"one of: {', '.join(_KEYS[table])}")
                field, read = _KEYS[table][key]
                try:
                    values[field] = read(value)
                except (ValueError, UsageError) as err:
                    msg = f"{source}: {table}.{key}: {err}"
                    raise UsageError(msg, hint=getattr(err, "hint", None)) from err
        return cls(**values)

    @property
    def tables(self) -> dict[str, dict[str, Any]]:
        """Every key of the file with its value as plain TOML; None where nothing is set."""
        return {
            table: {key: _plain(key, getattr(self, field)) for key, (field, _) in keys.items()}
            for table, keys in _KEYS.items()
        }


def find_key(name: str) -> tuple[str, str]:
    """Return the table and the key that ``machine.overlap_ms`` or ``overlap_ms`` name.

    Raises ``UsageError``, naming the key that is spelt alike, or else all.
    """
    found = [
        (table, key)
        for table, keys in _KEYS.items()
        for key in keys
        if name in {key, f"{table}.{key}"}
    ]
    if not found:
        from difflib import get_close_matches  # most keys are known

        keys = {
            word: f"{table}.{key}"
            for table in _KEYS
            for key in _KEYS[table]
            for word in (key, f"{table}.{key}")
        }
        near = get_close_matches(name, keys, n=1)
        hint = f"did you mean {keys[near[0]]}?" if near else f"one of: {', '.join(key_names())}"
        msg = f"unknown configuration key {name!r}"
        raise UsageError(msg, hint=hint)
    return found[0]


def key_names() -> tuple[str, ...]:
    """Return all keys, each with its table."""
    return tuple(f"{table}.{key}" for table, keys in _KEYS.items() for key in keys)


def key_values(name: str) -> tuple[str, ...]:
    """Return the words that a key takes, none where it takes something else; like ``find_key``."""
    table, key = find_key(name)
    default = getattr(Config(), _KEYS[table][key][0])
    if isinstance(default, bool):
        return ("true", "false")
    if key == "person_resets":
        return ("true", "false", *Restart)
    return tuple(map(str, type(default))) if isinstance(default, StrEnum) else ()


def _plain(key: str, value: object) -> object:
    if key == "person_resets" and value in {frozenset(), frozenset(Restart)}:
        return bool(value)
    if isinstance(value, tuple | frozenset):
        words = [str(item) for item in value]
        return words if isinstance(value, tuple) else sorted(words)
    if key == "cache_limit_mb" and isinstance(value, int):
        return value / 1_000_000
    return str(value) if isinstance(value, StrEnum) else value


def _settings(value: object) -> tuple[Setting, ...]:
    return tuple(dict.fromkeys(Setting.parse(word) for word in _strings(value)))


def _codecs(value: object) -> frozenset[Codec]:
    return frozenset(_codec(word) for word in _strings(value))


def _strings(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        msg = f"{value!r} is not a list of strings"
        raise ValueError(msg)
    return value


def _codec(word: str) -> Codec:
    require(word in set(Codec), f"{word!r} is not a codec (one of: {', '.join(Codec)})")
    return Codec(word)


def _one_of(words: type[_Words]) -> Callable[[object], _Words]:
    """Return a reader of one of the words of an enumeration."""

    def read(value: object) -> _Words:
        if not isinstance(value, str) or value not in set(words):
            msg = f"{value!r} is not one of: {', '.join(words)}"
            raise ValueError(msg)
        return words(value)

    return read


def _count(low: int) -> Callable[[object], int]:
    """Return a reader of whole numbers from ``low``."""

    def read(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < low:
            msg = f"{value!r} is not a whole number of at least {low}"
            raise ValueError(msg)
        return value

    return read


def _true_or_false(value: object) -> bool:
    if not isinstance(value, bool):
        msg = f"{value!r} is neither true nor false"
        raise ValueError(msg)
    return value


def _consent(value: object) -> frozenset[Restart]:
    if isinstance(value, bool):
        return frozenset(Restart if value else ())
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not set(map(str, words)) <= set(Restart):
        msg = f"{value!r} is neither true nor false, nor of: {', '.join(Restart)}"
        raise ValueError(msg)
    return frozenset(Restart(str(word)) for word in words)


def _megabytes(value: object) -> int:
    return int(_number(0, math.inf)(value) * 1_000_000)


def _number(low: float, high: float) -> Callable[[object], float]:
    """Return a reader of numbers from ``low`` up to, but not including, ``high``."""

    def read(value: object) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            msg = f"{value!r} is not a number"
            raise ValueError(msg)
        if not low <= value < high:
            bound = f"at least {low:g}" + ("" if math.isinf(high) else f" and below {high:g}")
            msg = f"{value!r} is not {bound}"
            raise ValueError(msg)
        return float(value)

    return read


_KEYS: dict[str, dict[str, tuple[str, Callable[[Any], Any]]]] = {
    "machine": {
        "read_speed_mb_s": ("read_speed_mb_s", _number(0.01, 1e6)),
        "overlap_ms": ("overlap_ms", _number(0, 1e6)),
    },
    "candidates": {
        "settings": ("settings", _settings),
        "slow_codecs": ("slow_codecs", _codecs),
        "jobs": ("jobs", _count(1)),
        "cache_limit_mb": ("cache_limit_bytes", _megabytes),
    },
    "recommend": {
        "objective": ("objective", _one_of(Objective)),
        "boots_per_upgrade": ("boots_per_upgrade", _count(1)),
        "tolerance_ms": ("tolerance_ms", _number(0, math.inf)),
        "tolerance_fraction": ("tolerance_fraction", _number(0, 1)),
        "certainty": ("certainty", _number(0.5, 1)),
        "max_excess_s": ("max_excess_s", _number(0, math.inf)),
    },
    "daemon": {
        "policy": ("policy", _one_of(Policy)),
        "trial_boots_per_kernel": ("trial_boots_per_kernel", _count(0)),
        "person_resets": ("person_resets", _consent),
        "motd": ("motd", _true_or_false),
    },
}
"""Each table's keys: the field of ``Config`` it sets and how its value is read."""
