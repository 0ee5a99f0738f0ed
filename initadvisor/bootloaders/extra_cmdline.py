"""What a trial's entry adds to the command line, and where.

A kernel that panics hangs for ever unless told otherwise (CONFIG_PANIC_TIMEOUT is 0 by default),
and most images open a shell or wait for a person where the root does not come up: a trial has to
restart by itself, so that the default entry is booted again. What does that with which generator,
and after how long, was measured: see docs/guests.md.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from initadvisor.core.errors import UnsafeError, UsageError
from initadvisor.records.boot_class import command_line_words, parameters
from initadvisor.records.boot_start import TRIAL_TAG

if TYPE_CHECKING:
    from collections.abc import Sequence


_TRIAL = re.compile(r"[a-z0-9][a-z0-9-]{0,39}", re.ASCII)
_WATCHDOG = "systemd.watchdog_sec="
_UNTIL_INIT = re.compile(r'((?:"[^"]*"|[^"])*?)(?<!\S)--(?!\S)')
PANIC_S = 30
"""After how long a kernel that panicked restarts the machine."""

GUARD_S = 600
"""Long enough for somebody to type a passphrase."""

_GUARD = (
    "rdinit=/bin/sh",
    "--",
    "-c",
    f'": >/dev/null;(sleep {GUARD_S}&&test -e /init||exit;mkdir -p /proc;'
    'mount -t proc proc /proc;echo b>/proc/sysrq-trigger)& exec /init"',
)
"""The image's shell leaves a process behind and becomes /init. dash does not do that where there is
no /dev/null, be it a file (observed: klibc's, in images of initramfs-tools). Whoever goes on to the
root file system removes /init with all else in the initramfs, or ends its processes; without /init
the guard does nothing. Double quotes mean the same to the kernel and to GRUB, which has no variable
to replace here, and nothing is a pattern or a word to the scripts that read the command line.
"""

_KERNELS_OWN = frozenset(
    {
        "debug",
        "ignore_loglevel",
        "initcall_debug",
        "no_timer_check",
        "noapic",
        "nohibernate",
        "nomodeset",
        "noresume",
        "nosmt",
        "nosoftlockup",
        "nowatchdog",
        "quiet",
        "ro",
        "rootwait",
        "rw",
        "threadirqs",
    }
)
"""Words without a value that the kernel takes itself (kernel-parameters.txt)."""
_LONGEST_COMMAND_LINE = 2047
"""What x86 and arm64 keep of it; the rest is cut off (COMMAND_LINE_SIZE with its final NUL)."""


def extra_cmdline(
    trial: str, *, generator: str, watchdog_s: int | None = None, guarded: bool = False
) -> tuple[str, ...]:
    """Return the words for a trial of an image that ``generator`` (``Generator.NAME``) made.

    ``watchdog_s``: have the hardware's watchdog restart a machine that hangs silently, after so
    many seconds; only for machines that are known to have one. ``guarded``: have the image's shell
    restart a machine that is still in the initramfs after ``GUARD_S``, only for images that
    have what it takes (``trial.risks.unguarded``) and options that ``may_be_guarded``.

    Raises ``UsageError`` for a name of a trial that does not fit on a command line, or a watchdog
    that would never let a boot finish.
    """
    if not _TRIAL.fullmatch(trial):
        msg = f"{trial!r} is no name for a trial: small letters, digits and '-' only, 40 at most"
        raise UsageError(msg)
    words = [f"{TRIAL_TAG}={trial}", f"panic={PANIC_S}"]
    if generator == "dracut":  # dracut.cmdline(7); initramfs-tools honours panic=
        words += ["rd.shell=0", "rd.emergency=reboot"]
    if watchdog_s is not None:
        if watchdog_s < PANIC_S:
            msg = f"a watchdog of {watchdog_s} s is too short: no less than {PANIC_S} s"
            raise UsageError(msg)
        words += [f"{_WATCHDOG}{watchdog_s}", f"watchdog.open_timeout={watchdog_s}"]
    return (*words, *_GUARD) if guarded else tuple(words)


def is_watched(words: Sequence[str]) -> bool:
    """Tell whether ``extra_cmdline`` has given these words with a watchdog."""
    return any(word.startswith(_WATCHDOG) for word in words)


def may_be_guarded(options: str) -> bool:
    """Tell whether the options leave it to others what is started first, and with what.

    A word without a value that the kernel does not know, such as ``splash``, is handed to what is
    started first, before all that stands behind ``--`` (init/main.c: unknown_bootoption): the
    image's shell would take it for a script.
    """
    kernels, inits = _split_at_init(options)
    words = {word for word in command_line_words(kernels) if not {"=", "."} & set(word)}
    return not inits and not parameters(kernels, "rdinit") and words <= _KERNELS_OWN


def new_parameters(options: str, words: Sequence[str]) -> tuple[str, ...]:
    """Return those of ``words`` that do not take effect with these options already."""
    return tuple(word for word in words if not _takes_effect(options, word))


def with_parameters(options: str, words: Sequence[str]) -> str:
    """Return the options with ``words`` behind them, but before what is for init (``--``).

    The last one of several counts to the kernel. Raises ``UnsafeError`` where the options are a
    trial's already, or the result is longer than a kernel keeps.
    """
    if parameters(options, TRIAL_TAG):
        msg = f"not making a trial of a trial: {TRIAL_TAG} is among the default entry's options"
        raise UnsafeError(msg, hint="boot the entry without it, and have it be the default")
    kernels, inits = _split_at_init(options)
    result = " ".join(part for part in (kernels.rstrip(), *words, inits) if part)
    if len(result.encode(errors="surrogateescape")) > _LONGEST_COMMAND_LINE:
        msg = f"the trial's command line would be longer than {_LONGEST_COMMAND_LINE} bytes"
        raise UnsafeError(msg, hint="the kernel would cut it off")
    return result


def _takes_effect(options: str, word: str) -> bool:
    name, _, value = word.partition("=")
    given = parameters(_split_at_init(options)[0], name)
    return bool(given) and given[-1] == value


def _split_at_init(options: str) -> tuple[str, str]:
    """Return what is for the kernel, and from ``--`` on what is for init."""
    if match := _UNTIL_INIT.match(options):
        return match[1], options[match.end(1) :]
    return options, ""
