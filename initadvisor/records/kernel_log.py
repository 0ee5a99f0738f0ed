"""What a kernel says about its initramfs, recognised in the text of its messages.

The texts are those of ``init/initramfs.c``, ``init/main.c`` and ``mm/page_alloc.c`` of Linux 2.6 to
6; a built-in initramfs is unpacked before the first of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

UNPACKING_INITCALL = "populate_rootfs"
"""The initcall that unpacks, or since 5.13 begins to."""

LONGEST_TEXT = 4096
"""Characters of a message that are looked at; a kernel's own has at most 1024 bytes (printk.c)."""


class KernelEvent(StrEnum):
    """What a line tells of."""

    VERSION = "version"
    COMMAND_LINE = "command-line"
    DEBUG_AID = "debug-aid"
    HYPERVISOR = "hypervisor"
    PRODUCT = "product"
    PROCESSOR = "processor"
    MICROCODE = "microcode"
    BEGIN = "begin"
    FREED = "freed"
    FAILED = "failed"
    FREED_INIT = "freed-init"
    RUN = "run"
    PANIC = "panic"
    OOPS = "oops"
    CALLING = "calling"
    RETURNED = "returned"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelMessage:
    """A message of the kernel's, without what its carrier put in front.

    ``time_us``: the kernel's own stamp, None where it prints none. ``caller``: who printed it,
    ``T1`` for the task with PID 1, ``C0`` for an interrupt on processor 0; None where the kernel
    does not say (CONFIG_PRINTK_CALLER).
    """

    text: str
    time_us: int | None = None
    caller: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLine:
    """A line that matters here.

    ``time_us``: the kernel's own stamp, None where it prints none; subtract stamps only from each
    other. ``subject``: the release, the command line, the aid, the reason, the program or the
    initcall. ``number``: KiB freed, the process that calls, or the microseconds that an initcall
    took. ``detail``: of VERSION, what ``uname -v`` prints.
    """

    event: KernelEvent
    time_us: int | None
    subject: str = ""
    number: int = 0
    detail: str = ""


_NUMBER = r"(?P<number>[0-9]{1,15})"

_PATTERNS = (
    (KernelEvent.BEGIN, r"Trying to unpack rootfs image as initramfs\.\.\."),
    (KernelEvent.BEGIN, r"Unpacking initramfs\.\.\."),
    (KernelEvent.CALLING, rf"calling  ?(?P<subject>[^\s+]+)\S* @ {_NUMBER}"),
    (
        KernelEvent.RETURNED,
        rf"initcall (?P<subject>[^\s+]+)\S* returned -?\d+ after {_NUMBER} usecs",
    ),
    (KernelEvent.FREED, rf"Freeing initrd memory: {_NUMBER}[kK]"),
    (KernelEvent.FAILED, r"rootfs image is not initramfs \((?P<subject>.*)\)"),
    (KernelEvent.FAILED, r"Initramfs unpacking failed: (?P<subject>.*)"),
    (
        KernelEvent.FAILED,
        r"INITRD: \S+ (?P<subject>is not a memory region|overlaps .* memory region)",
    ),
    (KernelEvent.FREED_INIT, r"Freeing unused kernel "),
    (KernelEvent.FREED_INIT, r"Freeing init memory: "),
    (KernelEvent.RUN, r"Run (?P<subject>\S+) as init process"),
    (KernelEvent.PANIC, r"Kernel panic - not syncing: (?P<subject>.*)"),
    (KernelEvent.PANIC, r"Kernel panic: (?P<subject>.*)"),
    (KernelEvent.OOPS, r"(?P<subject>Oops(?:: | - | ?\[#).*)"),
    (KernelEvent.OOPS, r"(?P<subject>Internal error: .*)"),
    (KernelEvent.OOPS, r"(?P<subject>BUG: .*)"),
    (KernelEvent.OOPS, r"(?P<subject>kernel BUG (?:at |\[#).*)"),
    (KernelEvent.OOPS, r"(?P<subject>Kernel BUG (?:at |\[#).*)"),
    (KernelEvent.OOPS, r"(?P<subject>Unable to handle kernel .*)"),
    (KernelEvent.OOPS, r"(?P<subject>CPU \d+ Unable to handle kernel .*)"),
    (KernelEvent.OOPS, r"(?P<subject>Unhandled fault: .*)"),
    (KernelEvent.OOPS, r"(?P<subject>PANIC: double fault.*)"),
    (KernelEvent.OOPS, r"(?P<subject>traps: PANIC: double fault.*)"),
    (KernelEvent.OOPS, r"(?P<subject>general protection fault.*)"),
    (KernelEvent.OOPS, r"(?P<subject>invalid opcode: \d+.*)"),
    (KernelEvent.OOPS, r"(?P<subject>divide error: \d+.*)"),
    (KernelEvent.OOPS, r"(?P<subject>stack segment: \d+.*)"),
    (KernelEvent.OOPS, r"(?P<subject>double fault: \d+.*)"),
    (KernelEvent.OOPS, r"(?P<subject>int3: \d+.*)"),
    (KernelEvent.OOPS, r"(?P<subject>watchdog: BUG: .*)"),
    (KernelEvent.OOPS, r"(?P<subject>NMI watchdog: BUG: .*)"),
    # s390: what a program check is called, its number and the length of the instruction
    (KernelEvent.OOPS, r"(?P<subject>addressing exception: [0-9a-f]{4} ilc:.*)"),
    (KernelEvent.OOPS, r"(?P<subject>data exception: [0-9a-f]{4} ilc:.*)"),
    (KernelEvent.OOPS, r"(?P<subject>execute exception: [0-9a-f]{4} ilc:.*)"),
    (KernelEvent.OOPS, r"(?P<subject>fixpoint divide exception: [0-9a-f]{4} ilc:.*)"),
    (KernelEvent.OOPS, r"(?P<subject>illegal operation: [0-9a-f]{4} ilc:.*)"),
    (KernelEvent.OOPS, r"(?P<subject>monitor event: [0-9a-f]{4} ilc:.*)"),
    (KernelEvent.OOPS, r"(?P<subject>operation exception: [0-9a-f]{4} ilc:.*)"),
    (KernelEvent.OOPS, r"(?P<subject>privileged operation: [0-9a-f]{4} ilc:.*)"),
    (KernelEvent.OOPS, r"(?P<subject>specification exception: [0-9a-f]{4} ilc:.*)"),
    (KernelEvent.OOPS, r"(?P<subject>special operation exception: [0-9a-f]{4} ilc:.*)"),
    (KernelEvent.VERSION, r"Linux version (?P<subject>\S+)(?: \(.*\) (?P<detail>#\d.*))?"),
    (KernelEvent.COMMAND_LINE, r"Kernel command line: ?(?P<subject>.*)"),
    (KernelEvent.HYPERVISOR, r"Hypervisor detected: (?P<subject>.*)"),
    (KernelEvent.PRODUCT, r"DMI: (?P<subject>.*, BIOS .*)"),
    (KernelEvent.PROCESSOR, r"smpboot: CPU0: (?P<subject>.*) \(fam"),
    (KernelEvent.MICROCODE, r"microcode: .*\brevision(?:=|: )(?P<subject>0x[0-9a-f]+)"),
    (
        KernelEvent.DEBUG_AID,
        # Memory tagging by hardware is made for use in production.
        r"(?P<subject>kasan): KernelAddressSanitizer initialized(?! \(hw-tags)",
    ),
    (KernelEvent.DEBUG_AID, r"Starting (?P<subject>KernelMemorySanitizer)"),
    (KernelEvent.DEBUG_AID, r"(?P<subject>kcsan): (?:enabled early|(?:non-)?strict mode)"),
    (KernelEvent.DEBUG_AID, r"(?P<subject>Lock dependency validator): Copyright"),
    (KernelEvent.DEBUG_AID, r"(?P<subject>kmemleak): Kernel memory leak detector initialized"),
)

_KEY_LENGTH = 4
"""All patterns begin with at least so many plain characters; most messages begin with others."""


def _by_beginning() -> dict[str, tuple[tuple[KernelEvent, re.Pattern[str]], ...]]:
    found: dict[str, tuple[tuple[KernelEvent, re.Pattern[str]], ...]] = {}
    for event, pattern in _PATTERNS:
        key = pattern.removeprefix("(?P<subject>")[:_KEY_LENGTH]
        found[key] = (*found.get(key, ()), (event, re.compile(pattern, re.ASCII)))
    return found


_BY_BEGINNING = _by_beginning()

_NAME = r"(?:\d{1,2})?[^\x00-@\[-`{-\x7f]{1,6}\.?"
"""How a month or a weekday is abbreviated, in any language: Feb, fev, févr., 2月."""

_PREFIX = re.compile(
    # what programs put in front that log a serial console: conserver, Tera Term
    r"(?:\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [0-9:]{8}(?:\.\d{1,9})? \d{4}\] *(?=<\d{1,3}>|\[)"
    # grabserial, ts, tio, minicom, LAVA
    r"|\[ *\d{1,10}\.\d{1,9} +-?\d{1,7}\.\d{1,9}\] ?"
    r"|\[(?:\d\d:){2}\d\d(?:\.\d{1,9})?(?: +-?\d{1,7}\.\d{1,9})?\] ?"
    r"|(?:\[\d{4}-\d\d-\d\d[T ][^\] ]{8,32}\]|\d{4}-\d\d-\d\d[T ][0-9:.+Z-]{8,32}"
    r"|(?:[A-Z][a-z]{2} [ \d]?\d )?\d\d:\d\d:\d\d(?:\.\d{1,9})?|\d{9,10}\.\d{1,9})"
    r" +(?=<\d{1,3}>|\[)"
    # Python's logging in harnesses that run tests
    r"|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (?:[^\s\[\]]{1,40} ){1,8}(?=\[ *\d{1,10}\.\d{6}\]))?"
    # ``logcat -b kernel``
    r"(?:\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} {1,7}\d{1,7} {1,7}\d{1,7} [VDIWEF] (?: *: )?)?"
    # /dev/kmsg, and the network's console, which may put the release in front
    r"(?:(?:[^\s,;]{1,64},)?[0-7],\d{1,20},(?P<kmsg_us>\d{1,18}),[^,;]?"
    r"(?:,caller=(?P<kmsg_caller>[TC]\d{1,10}))?;)?"
    # what a syslog daemon, journalctl, ``dmesg -x`` or an emulator puts in front of a line
    rf"(?:(?:<\d{{1,3}}>)?(?:{_NAME} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{{1,6}})?"
    rf"|\d{{4}}-\d\d-\d\d[T ]\S{{8,32}}|{_NAME} \d{{4}}-\d\d-\d\d [0-9:.]{{8,16}} \S{{1,8}}"
    rf"|{_NAME} {_NAME} [ \d]\d [0-9:]{{8}} \d{{4}}|\d{{9,10}}\.\d{{1,6}}"
    r"|\d\d:\d\d:\d\d,\d{3})"
    r" (?:(?:\S{1,255} ){0,2}kernel(?:\[\d{1,9}\])?: ?|\S{0,254}[^\s:] (?=\[ *\d{1,10}\.\d{6}\]))"
    r"|(?:[\w-]{1,32}:|\[[\w-]{1,32}\]) (?=\[ *\d{1,10}\.\d{6}\])"
    r"|<\d{1,3}>1 \S{8,40} \S{1,255} kernel \S{1,128} \S{1,32} - |[a-z]{4,8} *:[a-z]{4,6} *: )?"
    r"(?:<\d{1,3}>)?"
    r"(?:\[ *(?P<s>\d{1,10})\.(?P<fraction>\d{6}|\d{3})"
    # the kernel's, a vendor's, those with the time since the last by dmesg and journalctl
    r"(?:s? ?\](?:\[\d{1,3}\])?|[@,]\d{1,3}\]|(?: {16}| <[ \d]{1,10}\.\d{6}[ *]?>)\]"
    r"| / [\d-]{5} [\d:.]{8,12}\]\[\d{1,3}\])"
    # stamps of dmesg's own making
    r"|\d{4}-\d\d-\d\dT[0-9:]{8},\d{6}[+-]\d\d:\d\d(?= )"
    rf"|\[ *[+<] *\d+[.,]\d{{6}}>?\]|\[(?:{_NAME} )?{_NAME} *\d{{1,2}} [\d: ]{{5,14}}"
    r"(?:<[ \d]{1,10}\.\d{6}>)?\])?"
    # who printed it, where a vendor has the kernel say so: Samsung, MediaTek, Huawei
    r"(?:(?: ?(?: |(?P<interrupt>I))\[\d{1,3}: *[^\[\]]{1,20}: *| c\d{1,3} +| ?\[pid:"
    r"|(?: ?<\d>)?[ .+-]{0,3}\(\d{1,2}\)\[)(?P<pid>\d{1,10})"
    r"(?:(?:,cpu\d{1,3},|:)[^\]]{1,20}\](?: ?\[name:[^\]]{1,40}\])?|\]|(?= )))?"
    # ``journalctl -o short-monotonic``
    r"(?P<journal> (?:[^ :\[\]]{1,255} )?kernel(?:\[\d{1,9}\])?:)?"
    r"(?: ?\[ *(?P<caller>[TC]\d{1,10})\])? ?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLine:
    """A line of a log; ``by_journal``: its stamp is journalctl's, which may not be the kernel's."""

    message: KernelMessage
    by_journal: bool = False


def read_text(line: str) -> TextLine:
    """Take a line of a text log apart: a console's, dmesg(1)'s, a syslog daemon's, journalctl's.

    Stamps that are not the kernel's clock (dmesg's ``[  +0.014341]`` and ``[Nov 7 10:11]``, those
    of whoever logs a serial console) are taken off but give no time: a difference to a line that
    may have been left out marks nothing. Reports of bugs indent the logs that are in them.
    """
    line = line[:LONGEST_TEXT]
    prefix = _PREFIX.match(line)
    if line[:1] in {" ", "\t"}:
        indented = _PREFIX.match(inner := line.lstrip(" \t"))
        if indented and indented.end():
            line, prefix = inner, indented
    if prefix is None:  # cannot be: all of it is optional
        return TextLine(message=KernelMessage(text=line))
    time_us = None
    if fraction := prefix["fraction"]:
        time_us = int(prefix["s"]) * 1_000_000 + int(fraction.ljust(6, "0"))
    elif ring_us := prefix["kmsg_us"]:
        time_us = int(ring_us)
    text = line[prefix.end() :]
    return TextLine(
        message=KernelMessage(text=text, time_us=time_us, caller=_caller(prefix)),
        by_journal=prefix["journal"] is not None,
    )


def _caller(prefix: re.Match[str]) -> str | None:
    """Return who printed a line; of interrupts the vendors' kernels name the task they broke."""
    if pid := prefix["pid"]:
        return None if prefix["interrupt"] else f"T{pid}"
    return prefix["caller"] or prefix["kmsg_caller"]


def read_message(line: str) -> KernelMessage:
    """Return the message of a line; see ``read_text``."""
    return read_text(line).message


def recognise(message: KernelMessage) -> KernelLine | None:
    """Return what a message tells, None for one of no interest.

    Only the beginning of a message counts: what quotes such a line is not one.
    """
    text = message.text
    for event, pattern in _BY_BEGINNING.get(text[:_KEY_LENGTH], ()):
        if found := pattern.match(text):
            told = found.groupdict()
            return KernelLine(
                event=event,
                time_us=message.time_us,
                subject=(told.get("subject") or "").rstrip(),
                number=int(told.get("number") or 0),
                detail=(told.get("detail") or "").rstrip(),
            )
    return None


def read_line(line: str) -> KernelLine | None:
    """Return what a line of the kernel's log tells, None for one of no interest."""
    return recognise(read_message(line))
