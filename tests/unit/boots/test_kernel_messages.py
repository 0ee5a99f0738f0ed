"""The marks of a boot, in every form that kernels print them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.boots.kernel_messages import KernelMessages
from initadvisor.records.kernel_log import KernelMessage
from initadvisor.records.marks import BootStep, DebugAid, KernelTimestamps, MachineWords
from tests.fixtures.kernel_boots import read_boot

BEGIN = "Trying to unpack rootfs image as initramfs..."
FREED = "Freeing initrd memory: 42152K"
RUN = "Run /init as init process"
VERSION = (
    "Linux version 6.1.0-44-amd64 (maker@host) (gcc-12 (Debian 12.2.0) 12.2) #1 SMP Debian 6.1"
)


def marks(*texts: str) -> KernelTimestamps:
    """Return the marks of a boot that prints these, a millisecond apart."""
    return read_boot(
        KernelMessage(text=text, time_us=1000 * number) for number, text in enumerate(texts)
    ).timestamps


def with_words(command_line: str, *, release: str = "6.1.0") -> KernelTimestamps:
    """Return the marks of a boot with this command line."""
    version = f"Linux version {release} (a@b) (cc) #1 SMP"
    return marks(version, f"Kernel command line: {command_line}", BEGIN, FREED, RUN)


def test_a_whole_boot() -> None:
    assert marks(VERSION, "Kernel command line: ro quiet", BEGIN, FREED, RUN) == KernelTimestamps(
        release="6.1.0-44-amd64",
        version="#1 SMP Debian 6.1",
        command_line="ro quiet",
        begun=True,
        freed=True,
        begin_us=2000,
        end_us=3000,
        run_init_us=4000,
        run_program="/init",
        loaded_kib=42152,
        synchronous=False,
        messages=5,
    )


@pytest.mark.parametrize(
    "begin",
    [BEGIN, "Unpacking initramfs...", "Unpacking initramfs... done"],
)
def test_every_wording_of_the_beginning(begin: str) -> None:
    assert marks(begin, FREED).unpack_us == 1000


@pytest.mark.parametrize(
    "freed",
    [
        "Freeing initrd memory: 394K",
        "Freeing initrd memory: 394k freed",
        "Freeing initrd memory: 394K (ffff88003727d000 - ffff8800373e0000)",
    ],
)
def test_every_wording_of_the_end(freed: str) -> None:
    found = marks(BEGIN, freed)
    assert found.unpack_us == 1000
    assert found.loaded_kib == 394


def test_an_image_freed_in_parts_ended_with_the_first_and_is_as_large_as_all() -> None:
    found = marks(BEGIN, "Freeing initrd memory: 1000K", "Freeing initrd memory: 24K", RUN)
    assert found.unpack_us == 1000
    assert found.loaded_kib == 1024


@pytest.mark.parametrize(
    "text",
    [
        f'printk(KERN_INFO "{BEGIN}");',
        f"systemd[1]: {BEGIN}",
        f" {BEGIN}",
        f"audit: type=1400 msg={BEGIN!r}",
    ],
)
def test_a_message_that_quotes_a_mark_is_none(text: str) -> None:
    assert not marks(text, FREED).begun


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("rootfs image is not initramfs (no cpio magic); looks like an initrd", "no cpio magic"),
        ("Initramfs unpacking failed: Decoding failed", "Decoding failed"),
        ("Initramfs unpacking failed: write error", "write error"),
        (
            "INITRD: 0x7f000000+0x01000000 overlaps in-use memory region",
            "overlaps in-use memory region",
        ),
        ("INITRD: 0x7f000000+0x01000000 is not a memory region", "is not a memory region"),
    ],
)
def test_failures_are_kept_in_the_kernel_s_words(text: str, failure: str) -> None:
    found = marks(BEGIN, text, FREED, RUN)
    assert found.failures == (failure,)
    assert found.unpack_us == 2000


def test_what_comes_after_init_ran_changes_nothing() -> None:
    collected = KernelMessages()
    assert not collected.note(KernelMessage(text=BEGIN, time_us=1))
    assert not collected.note(KernelMessage(text=FREED, time_us=2))
    assert collected.note(KernelMessage(text=RUN, time_us=3))
    before = collected.result()
    for text in (
        BEGIN,
        FREED,
        "Kernel panic - not syncing: later",
        "Run /sbin/init as init process",
    ):
        assert collected.note(KernelMessage(text=text, time_us=9))
    collected.lost(100)
    assert collected.result() == before


def test_lost_messages_are_counted() -> None:
    collected = KernelMessages()
    collected.lost(5)
    collected.lost(0)
    assert collected.result().timestamps.missed_messages == 6


@pytest.mark.parametrize(
    ("release", "command_line", "synchronous"),
    [
        ("5.12.19-arch1-1", "ro", True),
        ("5.13.0-20-generic", "ro", False),
        ("4.19.0", "ro", True),
        ("6.1.0", "ro initramfs_async=0", True),
        ("6.1.0", "initramfs_async=no", True),
        ("6.1.0", "initramfs_async=off", True),
        ("6.1.0", "initramfs_async=1", False),
        ("6.1.0", "initramfs_async=0 initramfs_async=on", False),
        ("6.1.0", "noinitramfs_async=0", False),
    ],
)
def test_version_and_command_line_tell_whether_anything_runs_beside(
    release: str, command_line: str, synchronous: bool
) -> None:
    assert with_words(command_line, release=release).synchronous is synchronous


def test_without_a_version_nobody_knows_whether_anything_runs_beside() -> None:
    assert marks(BEGIN, FREED, RUN).synchronous is None


def test_the_initcall_s_own_account_is_the_time_of_a_synchronous_unpack() -> None:
    done = "initcall populate_rootfs+0x0/0x60 returned 0 after 437768 usecs"
    found = marks(VERSION, "calling  populate_rootfs+0x0/0x60 @ 1", BEGIN, FREED, done, RUN)
    assert found.synchronous is True
    assert found.initcall_us == 437_768
    assert found.unpack_us == 1000
    assert marks(VERSION, BEGIN, done, FREED, RUN).synchronous is False


def test_the_longest_initcalls_are_told_in_their_order() -> None:
    """They are printed when they have returned; of those of modules nothing is told."""
    texts = [
        f"initcall call_{number}+0x0/0x60 returned 0 after {1000 * number} usecs"
        for number in range(200, -1, -1)
    ]
    module = "initcall ext4_init_fs+0x0/0x60 [ext4] returned 0 after 437768 usecs"
    found = read_boot(
        KernelMessage(text=text, time_us=500_000 + 1000 * number)
        for number, text in enumerate([*texts, module, RUN, texts[0]])
    ).initcalls
    assert {step.name for step in found} == {f"call_{number}" for number in range(151, 201)}
    assert found[0] == BootStep(name="call_200", start_us=300_000, duration_us=200_000)
    assert [step.start_us for step in found] == sorted(step.start_us for step in found)


def test_the_initcall_times_an_image_that_is_not_freed() -> None:
    found = marks(
        VERSION,
        "Kernel command line: retain_initrd initramfs_async=0",
        BEGIN,
        "initcall populate_rootfs+0x0/0x60 returned 0 after 437768 usecs",
        RUN,
    )
    assert found.retained
    assert found.unpack_us == 437_768


@pytest.mark.parametrize(
    ("command_line", "retained"),
    [
        ("retain_initrd", True),
        ("quiet keepinitrd ro", True),
        ("retain_initrd=1", False),
        ("ro -- retain_initrd", False),
        ('x="keep keepinitrd"', False),
        ("ro", False),
    ],
)
def test_who_is_told_to_keep_the_image_keeps_it(command_line: str, retained: bool) -> None:
    assert with_words(command_line).retained is retained


@pytest.mark.parametrize(
    ("text", "aid"),
    [
        ("kasan: KernelAddressSanitizer initialized (generic)", DebugAid.KASAN),
        ("kasan: KernelAddressSanitizer initialized", DebugAid.KASAN),
        ("Starting KernelMemorySanitizer", DebugAid.KMSAN),
        ("kcsan: enabled early", DebugAid.KCSAN),
        ("kcsan: non-strict mode configured", DebugAid.KCSAN),
        (
            "Lock dependency validator: Copyright (c) 2006 Red Hat, Inc., Ingo Molnar",
            DebugAid.LOCKDEP,
        ),
        (
            "kmemleak: Kernel memory leak detector initialized (mem pool available: 15679)",
            DebugAid.KMEMLEAK,
        ),
    ],
)
def test_aids_for_debugging_are_seen_in_what_they_say(text: str, aid: DebugAid) -> None:
    assert marks(VERSION, text, BEGIN, FREED, RUN).debug_aids == (aid,)


@pytest.mark.parametrize(
    ("command_line", "aids"),
    [
        ("slub_debug=FZPU", (DebugAid.SLAB_DEBUG,)),
        ("slab_debug", (DebugAid.SLAB_DEBUG,)),
        ("slub_debug=-", ()),
        ("debug_pagealloc=on", (DebugAid.PAGE_DEBUG,)),
        ("page_owner=on", (DebugAid.PAGE_DEBUG,)),
        ("page_owner=off", ()),
        ("ftrace=function_graph", (DebugAid.FUNCTION_TRACER,)),
        ("initcall_debug debug loglevel=8 no_hash_pointers", ()),
    ],
)
def test_aids_for_debugging_are_seen_in_what_was_asked_for(
    command_line: str, aids: tuple[DebugAid, ...]
) -> None:
    assert with_words(command_line).debug_aids == aids


@pytest.mark.parametrize(
    "text",
    [
        "kasan: KernelAddressSanitizer initialized (hw-tags, mode=sync, vmalloc=on)",
        "kmemleak: Kernel memory leak detector disabled",
        "**   This system shows unhashed kernel memory addresses   **",
        "** trace_printk() being used. Allocating extra memory.  **",
    ],
)
def test_what_costs_nothing_is_no_aid_for_debugging(text: str) -> None:
    assert marks(VERSION, text, BEGIN, FREED, RUN).debug_aids == ()


def test_a_command_line_in_several_lines_is_one() -> None:
    found = marks(
        "Kernel command line: root=/dev/sda1 ro \\", "Kernel command line: retain_initrd quiet"
    )
    assert found.command_line == "root=/dev/sda1 ro retain_initrd quiet"
    assert found.command_line_whole
    assert found.retained
    assert not marks("Kernel command line: root=/dev/sda1 ro \\", BEGIN).command_line_whole


def test_a_command_line_as_long_as_a_message_may_be_cut_off() -> None:
    assert marks(f"Kernel command line: {'x' * 900}").command_line_whole
    assert not marks(f"Kernel command line: {'x' * 971}").command_line_whole


def test_what_the_kernel_says_of_the_machine_is_kept() -> None:
    found = marks(
        VERSION,
        "DMI: LENOVO 20XWCTO1WW/20XWCTO1WW, BIOS N32ET75W (1.51 ) 12/02/2021",
        "Hypervisor detected: KVM",
        "smpboot: CPU0: AMD Ryzen 7 5800X 8-Core (family: 0x19, model: 0x21, stepping: 0x0)",
        "microcode: sig=0x806c1, pf=0x80, revision=0x9a",
        "microcode: Microcode Update Driver: v2.2.",
        BEGIN,
        FREED,
    )
    assert found.machine == MachineWords(
        hypervisor="KVM",
        product="LENOVO 20XWCTO1WW/20XWCTO1WW, BIOS N32ET75W (1.51 ) 12/02/2021",
        processor="AMD Ryzen 7 5800X 8-Core",
        microcode="0x9a",
    )
    newer = marks("microcode: Current revision: 0x000000f4", "microcode: Updated early from: 0x01")
    assert newer.machine.microcode == "0x000000f4"


def test_an_empty_command_line_is_one() -> None:
    assert marks("Kernel command line: ").command_line == ""
    assert marks(BEGIN).command_line is None


@pytest.mark.parametrize(
    "texts",
    [
        (BEGIN, FREED, BEGIN, RUN),
        (FREED, BEGIN, RUN),
        (VERSION, BEGIN, VERSION, FREED, RUN),
    ],
)
def test_marks_that_cannot_be_of_one_boot_contradict_each_other(texts: tuple[str, ...]) -> None:
    assert marks(*texts).contradictory


def test_a_mark_that_is_told_twice_does_not() -> None:
    said = [KernelMessage(text=BEGIN, time_us=5)] * 2 + [KernelMessage(text=FREED, time_us=9)]
    assert not read_boot(said).timestamps.contradictory


def test_marks_without_stamps_are_marks() -> None:
    found = read_boot(KernelMessage(text=text) for text in (BEGIN, FREED, RUN)).timestamps
    assert (found.begun, found.freed, found.run_program) == (True, True, "/init")
    assert found.unpack_us is None


def test_memory_is_bounded_whatever_comes() -> None:
    collected = KernelMessages()
    flood = (
        f"Initramfs unpacking failed: {'y' * 5000}",
        f"Kernel command line: {'z' * 4000} \\",
        f"calling  {'c' * 5000} @ 1",
        f"Linux version {'v' * 5000}",
        "w" * 5000,
    )
    for number, text in zip(range(20_000), itertools.cycle(flood), strict=False):
        collected.note(KernelMessage(text=text, time_us=number))
    kernel = collected.result()
    kernel_text = repr(kernel)
    assert kernel.timestamps.messages == 20_000
    assert len(kernel_text) < 100_000


TEXTS = st.one_of(
    st.text(),
    st.sampled_from([BEGIN, FREED, RUN, VERSION, "Kernel command line: a \\", "initcall "]),
    st.builds("".join, st.lists(st.sampled_from([BEGIN, FREED, "calling  x @ 1", "\0", "\n"]))),
)


@given(
    st.lists(
        st.builds(
            KernelMessage,
            text=TEXTS,
            time_us=st.one_of(st.none(), st.integers(0, 2**63)),
            caller=st.sampled_from([None, "T1", "T12", "C0"]),
        )
    )
)
def test_no_messages_whatever_make_an_exception(messages: list[KernelMessage]) -> None:
    kernel = read_boot(messages)
    marks, seen = kernel.timestamps, kernel.shadow
    if marks.unpack_us is not None and not marks.contradictory:
        assert marks.unpack_us >= 0
    if seen.shadow_us is not None and not marks.contradictory:
        assert seen.shadow_min_us is not None
        assert seen.shadow_max_us is not None
        assert 0 <= seen.shadow_min_us <= seen.shadow_us <= seen.shadow_max_us
