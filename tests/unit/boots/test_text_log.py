"""Logs as text: every form met in the wild, several boots in one file, rings that were rotated."""

from __future__ import annotations

import codecs
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.boots.text_log import read_boots, read_log
from initadvisor.records.kernel_log import read_message
from initadvisor.records.marks import Waiting

PLAIN = """\
[    0.000000] Linux version 6.1.0 (a@b) (cc) #1 SMP
[    0.300000] Trying to unpack rootfs image as initramfs...
[    0.500000] Freeing initrd memory: 42152K
[    0.600000] Run /init as init process
"""


def unpack_times(log: str) -> list[int | None]:
    """Return the time to unpack of each boot in a log."""
    return [boot.timestamps.unpack_us for boot in read_boots(io.BytesIO(log.encode()))]


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "<6>",
        "Nov 20 23:21:55 host kernel: ",
        "Nov  7 03:21:55 host kernel: ",
        "2026-11-20T23:21:55.123456+01:00 host kernel: ",
        "2026-11-20 23:21:55.123 host kernel: ",
        "kern  :info  : ",
        "kern  :notice: ",
        "<6>Nov 20 23:21:55 host kernel: ",
        "Nov 20 23:21:55.123456 host kernel[12]: <6>",
        "Wed 2023-11-01 12:00:00 CET host kernel: ",
        "1672531200.123456 host kernel: ",
        "Wed Mar  6 18:30:00 2024 kern.info kernel: ",
        "[1.006743 0.000093] ",
        "[    1.006743     0.000093] ",
        "[12:34:56.123456 0.000093] ",
        "[2023-01-01 12:00:00.123] <6>",
        "2023-01-01T12:00:00.123Z ",
        "Jan 01 12:00:00 ",
        "12:34:56.123 ",
        "[Fri Nov 20 23:21:55.123 2026] ",
        "[Fri Nov 20 23:21:55 2026]",
        "Nov 20 23:21:55 host kern.info kernel: ",
        "<6>1 2026-11-20T23:21:55.123456+01:00 host kernel - - - ",
        "05-26 20:26:46.899     0     0 I         : ",
        "2020-10-16 09:20:45,508 - INFO - QEMUController - tracing - ",
        "2020-04-27 10:31:22,123 __init__ L0085 DEBUG| ",
        "03:09:07,559 NOTICE kernel:",
        "fev 08 11:15:51 host kernel: ",
        "d\u00e9c. 08 11:15:51 host kernel: ",
        "mer. 2024-02-08 11:15:51 CET host kernel: ",
        "2\u6708  8 11:15:51 host kernel: ",
        " ",
        "\t",
        " Feb 08 22:48:32 host kernel: ",
        "Nov 20 23:21:55 192.168.1.10 ",
        "2026-11-20T23:21:55+01:00 host ",
        "kernel: ",
        "UART: ",
        "[UART16550] ",
    ],
)
def test_what_carriers_put_in_front_is_taken_off(prefix: str) -> None:
    assert unpack_times("".join(f"{prefix}{line}\n" for line in PLAIN.splitlines())) == [200_000]


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("[    0.300000][   T12] ", "[    0.500000][   T12] "),
        ("[    0.300000] [   T12] ", "[    0.500000] [   T12] "),
        ("[0.300000] ", "[0.500000] "),
        ("[    0.300000@0] ", "[    0.500000@3] "),
        ("[    0.300000,0] ", "[    0.500000,3] "),
        ("[    0.300000][0] ", "[    0.500000][3] "),
        ("[    0.300000 ] ", "[    0.500000 ] "),
        ("[    0.300] ", "[    0.500] "),
        ("[12345.300000] ", "[12345.500000] "),
        ("[4294670.331] ", "[4294670.531] "),
        ("[4294967.200] ", "[    0.104] "),
        ("[    0.300000 <    0.000000>] ", "[    0.500000 <    0.200000>] "),
        (
            "[    0.300000                ] host kernel: ",
            "[    0.500000 <    0.200000 >] host kernel: ",
        ),
        (
            "[    0.300000 <    0.000000*>] host kernel: ",
            "[    0.500000 <    0.200000 >] host kernel: ",
        ),
    ],
)
def test_every_stamp_of_a_kernel_s_clock(begin: str, end: str) -> None:
    log = f"{begin}Unpacking initramfs... done\n{end}Freeing initrd memory: 394k freed\n"
    assert unpack_times(log) == [200_000]


@pytest.mark.parametrize(
    ("stamp", "caller"),
    [
        ("<6>[    0.300000]  [4:      swapper/0:    1] ", "T1"),
        ("<6>[    0.300000]  [2:    kworker/2:1:   37] ", "T37"),
        ("<0>[    0.300000] I[7:      swapper/0:    1] ", None),
        ("<6>[    0.300000] c0      1 ", "T1"),
        ("<6>[    0.300000]  (3)[1:swapper/0]", "T1"),
        ("[    0.300000] <5>.(4)[1:swapper/0][name:mtk_wdt&]", "T1"),
        ("<4>[    0.300000] -(0)[0:swapper/0]", "T0"),
        ("[    0.300000s][pid:1,cpu7,swapper/0]", "T1"),
        ("<6>[    0.300000] [pid:12,cpu7,kworker/u16:1]", "T12"),
        ("<6>[    0.300000 / 01-01 00:00:00.529][7] ", None),
        ("6,160,300000,-;", None),
        ("6,160,300000,-,caller=T1;", "T1"),
        ("6.1.0-13-amd64,6,160,300000,-;", None),
        ("6.1.0-13-amd64,6,160,300000,-,caller=T1;", "T1"),
    ],
)
def test_who_prints_is_told_by_vendors_kernels_and_by_the_ring(
    stamp: str, caller: str | None
) -> None:
    message = read_message(f"{stamp}Trying to unpack rootfs image as initramfs...")
    assert message.text == "Trying to unpack rootfs image as initramfs..."
    assert message.time_us == 300_000
    assert message.caller == caller


@pytest.mark.parametrize(
    "stamp",
    [
        "[  +0.014341] ",
        "[<    0.014341>] ",
        "[Nov 7 10:11] ",
        "[Fri Nov 20 23:21:55 2026] ",
        "[ven. nov.  20 23:21:55 2026] ",
        "[Fri Nov 20 23:21:55 2026 <    0.000123>] ",
        "[Nov20 23:21] ",
        "2026-11-20T23:21:55,123456+01:00 ",
        "",
    ],
)
def test_other_stamps_are_taken_off_and_give_no_time(stamp: str) -> None:
    log = f"{stamp}Unpacking initramfs...\n{stamp}Freeing initrd memory: 394K\n"
    (boot,) = read_boots(io.BytesIO(log.encode()))
    assert (boot.timestamps.begun, boot.timestamps.freed) == (True, True)
    assert boot.timestamps.unpack_us is None


@pytest.mark.parametrize(
    "line",
    [
        "> Trying to unpack rootfs image as initramfs...",
        'printk("[    0.300000] Trying to unpack rootfs image as initramfs...");',
        "Nov 20 23:21:55 host cat[99]: [    0.300000] Unpacking initramfs...",
        "Nov 20 23:21:55 host cat: [    0.300000] Unpacking initramfs...",
        "[    0.300000] systemd[1]: Trying to unpack rootfs image as initramfs...",
        "[    0.3] Trying to unpack rootfs image as initramfs...",
    ],
)
def test_text_that_quotes_a_mark_is_none(line: str) -> None:
    assert unpack_times(f"{line}\n[    0.500000] Freeing initrd memory: 42152K\n") == [None]


@pytest.mark.parametrize("quote", ["> ", ">> ", "> > ", "|", "   > "])
def test_a_log_that_mail_quotes_is_read(quote: str) -> None:
    # as in 25817877716 and 10763905621, with what somebody says of it
    quoted = "".join(f"{quote}{line}\n" for line in PLAIN.splitlines())
    commented = quoted.replace(f"{quote}[    0.6", f"\nIt takes too long.\n\n{quote}[    0.6")
    assert unpack_times(f"He wrote:\n{commented}Freeing initrd memory: 5K is less.\n")[1:] == [
        200_000
    ]


def test_lines_of_a_quotation_and_others_are_not_of_one_boot() -> None:
    begin, end = "[    0.300000] Unpacking initramfs...", "[    0.500000] Freeing initrd memory: 5K"
    assert unpack_times(f"> {begin}\n{end}\n") == [None, None]
    assert unpack_times(f"{begin}\n>> {end}\n") == [None, None]
    assert unpack_times(f"> {begin}\n>> {end}\n") == [None, None]


def test_each_boot_of_a_file_is_one() -> None:
    second = PLAIN.replace("0.500000", "0.700000").replace("0.600000", "0.800000")
    assert unpack_times(PLAIN + second + PLAIN) == [200_000, 400_000, 200_000]


def test_a_clock_that_goes_back_is_another_boot_and_a_little_jitter_is_not() -> None:
    beheaded = PLAIN.split("\n", 1)[1]
    later = "[   99.000000] something\n"
    assert unpack_times(beheaded + later + beheaded) == [200_000, 200_000]
    assert unpack_times(PLAIN.replace("0.500000] Fr", "0.510000] x\n[    0.500000] Fr")) == [
        200_000
    ]
    oops = "[   31.244487] Call Trace:\n[   29.608372] RSP: 002b:00007fffdeaf2ec8\n"
    assert unpack_times(PLAIN.replace("[    0.6", f"{oops}[   38.6")) == [200_000]


def test_a_processor_whose_clock_does_not_run_right_yet_begins_no_boot() -> None:
    """From guests of KVM whose second processor is behind by seconds."""
    guest = """\
[    0.000000] Linux version 5.4.0-216-generic (a@b) (cc) #1 SMP
[    2.431690] .... node  #0, CPUs:      #1
[    0.931497] kvm-clock: cpu 1, msr 54a01041, secondary cpu clock
Inserted module 'msr'
[    2.449778] TSC synchronization [CPU#0 -> CPU#1]:
[    4.415154] Trying to unpack rootfs image as initramfs...
[    8.294488] Freeing initrd memory: 90804K
"""
    boots = list(read_boots(io.BytesIO((guest + guest).encode())))
    assert [boot.timestamps.release for boot in boots] == ["5.4.0-216-generic"] * 2
    assert [boot.timestamps.unpack_us for boot in boots] == [3_879_334] * 2
    assert [boot.shadow.waiting for boot in boots] == [Waiting.SYNCHRONOUS] * 2


def test_a_boot_whose_first_messages_are_overwritten_is_another() -> None:
    tail = "[    0.200000] one\n[    0.250000] two\n[    0.260000] three\n[    0.270000] four\n"
    beheaded = tail + PLAIN.split("\n", 1)[1] + "[   99.000000] something\n"
    assert unpack_times(beheaded + beheaded) == [200_000, 200_000]
    few = tail.split("\n", 2)[2] + PLAIN.split("\n", 1)[1] + "[   99.000000] something\n"
    boots = list(read_boots(io.BytesIO((few + few).encode())))
    assert [boot.timestamps.messages for boot in boots] == [5, 5]


@pytest.mark.parametrize(
    "before",
    [
        "Booting from ROM..\x1bc\x1b[?7l\x1b[2J",
        "\x1b[0m\x1b[37m\x1b[40m",
        "\x1b[1;1H\x1b[J",
        "\x1b[32m",
        "^[[32m",
        "#033[32m",
    ],
)
def test_what_terminals_are_told_before_the_first_line_does_not_hide_it(before: str) -> None:
    log = f"{before}{PLAIN.replace('Linux', chr(27) + '[0mLinux', 1)}" * 2
    boots = list(read_boots(io.BytesIO(log.encode())))
    assert [boot.timestamps.release for boot in boots] == ["6.1.0", "6.1.0"]


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_text_that_windows_has_written_is_read(mark: bytes, encoding: str, line_end: str) -> None:
    long = "[    0.100000] d\u00e9j\u00e0 \u0a0a " + "x" * 20_000 + "\n"
    log = (PLAIN + long + PLAIN).replace("\n", line_end)
    boots = list(read_boots(io.BytesIO(mark + log.encode(encoding))))
    assert [boot.timestamps.release for boot in boots] == ["6.1.0", "6.1.0"]
    assert [boot.timestamps.unpack_us for boot in boots] == [200_000, 200_000]


def test_carriage_returns_end_lines_where_no_newline_does() -> None:
    long = "[    0.100000] " + "x" * 20_000 + "\n"
    assert unpack_times((PLAIN + long + PLAIN).replace("\n", "\r")) == [200_000, 200_000]


def test_what_a_loss_of_power_leaves_in_a_log_does_not_hide_the_next_boot() -> None:
    """From a syslog with hundreds of NUL bytes before "Linux version"; there may be blocks."""
    head = "2024-10-22T20:43:49.883695+08:00 host kernel: "
    boot = "".join(f"{head}{line.split('] ', 1)[1]}\n" for line in PLAIN.splitlines())
    for lost in (1, 4096, 10_000):
        boots = list(read_boots(io.BytesIO((boot + "\0" * lost + boot).encode())))
        assert [boot.timestamps.release for boot in boots] == ["6.1.0", "6.1.0"]


def test_early_messages_before_the_version_are_of_the_same_boot() -> None:
    microcode = "[    0.000000] microcode: updated early to revision 0xf4\n"
    later = "[   99.000000] something\n"
    whole = microcode + PLAIN + later
    assert unpack_times(whole + whole) == [200_000, 200_000]


def test_an_overflowing_clock_goes_on_and_the_next_boot_begins_anew() -> None:
    old = """\
[4294667.296] Linux version 2.6.15 (a@b) (cc) #1 SMP
[4294967.200] Unpacking initramfs... done
[    0.104] Freeing initrd memory: 394k freed
[    5.000] something
"""
    assert unpack_times(old + old) == [200_000, 200_000]


def test_a_ring_that_was_rotated_has_no_beginning() -> None:
    (boot,) = read_boots(io.BytesIO(PLAIN.split("...\n")[1].encode()))
    assert boot.timestamps.begin_us is None
    assert boot.timestamps.end_us == 500_000
    assert boot.timestamps.release is None


def test_losses_that_journald_tells_of_are_counted() -> None:
    lost = "Nov 20 23:21:55 host systemd-journald[231]: Missed 12 kernel messages\n"
    (boot,) = read_boots(io.BytesIO((lost + PLAIN).encode()))
    assert boot.timestamps.missed_messages == 12


def test_caller_ids_reach_the_judgement() -> None:
    log = """\
[    0.000000][    T0] Linux version 6.1.0 (a@b) (cc) #1 SMP
[    0.300000][   T12] Trying to unpack rootfs image as initramfs...
[    0.310000][    T1] one
[    0.499000][   T45] another task's
[    0.500000][   T12] Freeing initrd memory: 42152K
[    0.501000][    T1] two
"""
    (boot,) = read_boots(io.BytesIO(log.encode()))
    assert boot.shadow.waiting is Waiting.WAITED


def test_a_line_of_any_length_is_looked_at_no_further_than_needed() -> None:
    class Counting(io.BytesIO):
        longest = 0

        def readline(self, size: int | None = -1, /) -> bytes:
            line = super().readline(size)
            self.longest = max(self.longest, len(line))
            return line

    begin, rest = PLAIN.split("\n", 1)
    file = Counting(f"{begin}{'x' * 10_000_000}\n{rest}".encode())
    (boot,) = read_boots(file)
    assert boot.timestamps.unpack_us == 200_000
    assert boot.timestamps.messages == 4
    assert file.longest < 10_000


@given(st.one_of(st.binary(), st.text(alphabet="[]<>0123456789.TC +:k\n ").map(str.encode)))
def test_no_bytes_whatever_make_an_exception(data: bytes) -> None:
    assert all(boot.timestamps.messages >= 0 for boot in read_boots(io.BytesIO(data)))


@given(st.lists(st.sampled_from(PLAIN.splitlines(keepends=True))))
def test_no_order_of_lines_makes_a_negative_time(lines: list[str]) -> None:
    for boot in read_boots(io.BytesIO("".join(lines).encode())):
        if not boot.timestamps.contradictory and boot.timestamps.unpack_us is not None:
            assert boot.timestamps.unpack_us >= 0


def infixed(infix: str) -> str:
    """Return the log as journalctl prints it, who has said it behind the stamp."""
    return PLAIN.replace("] ", f"] {infix}")


@pytest.mark.parametrize("infix", ["host kernel: ", "host-1.example.org kernel: ", "kernel: "])
@pytest.mark.parametrize("priority", ["", "<6>"])
def test_journalctl_s_monotonic_lines_are_the_kernel_s(infix: str, priority: str) -> None:
    log = "".join(f"{priority}{line}\n" for line in infixed(infix).splitlines())
    assert unpack_times(log) == [200_000]


def test_lines_of_other_programs_in_journalctl_s_output_are_no_marks() -> None:
    begin = "[    0.300000] host cat[9]: Trying to unpack rootfs image as initramfs...\n"
    end = "[    0.500000] host kernel: Freeing initrd memory: 42152K\n"
    assert unpack_times(begin + end) == [None]


def test_times_of_receipt_are_not_the_kernel_s() -> None:
    """Some versions of journalctl print when journald has read a message, milliseconds too late."""
    lines = [line.split("] ", 1)[1] for line in PLAIN.splitlines()]
    log = "".join(f"[    0.7489{n:02}] host kernel: {line}\n" for n, line in enumerate(lines))
    (boot,) = read_boots(io.BytesIO(log.encode()))
    assert boot.timestamps.begun
    assert boot.timestamps.freed
    assert boot.timestamps.unpack_us is None


def test_the_stamps_of_who_logs_a_console_are_no_times_of_the_kernel_s() -> None:
    lines = [line.split("] ", 1)[1] for line in PLAIN.splitlines()]
    log = "".join(f"[{n}.006743 0.000093] {line}\n" for n, line in enumerate(lines))
    (boot,) = read_boots(io.BytesIO(log.encode()))
    assert (boot.timestamps.release, boot.timestamps.unpack_us) == ("6.1.0", None)


def test_journalctl_says_where_a_boot_begins_and_which_it_is() -> None:
    beheaded = PLAIN.split("\n", 1)[1]
    ids = ["0123456789abcdef" * 2, "fedcba9876543210" * 2]
    log = "-- Logs begin at Mon 2026-01-05. --\n"
    log += "".join(f"-- Boot {boot_id} --\n{beheaded}" for boot_id in ids)
    boots = list(read_log(io.BytesIO(log.encode())))
    assert [boot.boot_id for boot in boots] == ids
    assert [boot.kernel.timestamps.unpack_us for boot in boots] == [200_000, 200_000]


def test_the_kernel_tells_when_it_started() -> None:
    clock = "[    0.550000] rtc_cmos 00:02: setting system clock to 2023-02-22T14:03:41 UTC ({})\n"
    log = PLAIN.replace("[    0.600000]", clock.format(1677074621) + "[    0.600000]")
    (boot,) = read_log(io.BytesIO(log.encode()))
    assert boot.started_us == 1677074621_000000 - 550_000
    (boot,) = read_log(io.BytesIO(log.replace("1677074621", "123456789").encode()))
    assert boot.started_us is None


@pytest.mark.parametrize(
    "words",
    [
        "BUG: kernel NULL pointer dereference, address: 0000000000000010",
        "Oops: 0002 [#1] PREEMPT SMP NOPTI",
        "Internal error: Oops - BUG: 0 [#1] SMP ARM",
        "Oops[#1]:",
        "CPU 0 Unable to handle kernel paging request at virtual address 0, era == 9",
        "traps: PANIC: double fault, error_code: 0x0",
        "kernel BUG at mm/slub.c:305!",
        "Unable to handle kernel paging request at virtual address ffffffff",
        "watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [swapper/0:1]",
        "general protection fault, probably for non-canonical address: 0000 [#1]",
        "illegal operation: 0001 ilc:1 [#1] SMP",
        "monitor event: 0040 ilc:2 [#1] PREEMPT SMP",
        "addressing exception: 0005 ilc:3 [#1] SMP",
    ],
)
def test_an_oops_counts_only_before_init(words: str) -> None:
    before, after = PLAIN.split("[    0.600000]")
    early = f"{before}[    0.550000] {words}\n[    0.600000]{after}"
    late = f"{PLAIN}[    0.700000] {words}\n"
    oopses = [boot.timestamps.oops for boot in read_boots(io.BytesIO((early + late).encode()))]
    assert oopses == [words, None]


def test_kernels_that_do_not_say_when_they_run_init_free_their_memory_just_before() -> None:
    """From a server with Linux 3.10 and a soft lockup after more than an hour."""
    freed = "[    2.745802] Freeing unused kernel memory: 1984k freed\n"
    log = """\
[    0.000000] Linux version {release} (a@b) (cc) #1 SMP
[    0.915553] Unpacking initramfs...
[    1.495440] Freeing initrd memory: 38376k freed
{early}[    2.745802] Freeing unused kernel memory: 1984k freed
[    2.746367] Write protecting the kernel read-only data: 12288k
[    2.748282] Freeing unused kernel memory: 420k freed
{late}"""
    lockup = "BUG: soft lockup - CPU#1 stuck for 22s! [z_wr_chk:22112]"
    early, late = f"[    2.700000] {lockup}\n", f"[ 4404.374104] {lockup}\n"
    soon, run = f"[    2.750000] {lockup}\n", "[    2.800000] Run /init as init process\n"
    lost = "Nov 20 23:21:55 host systemd-journald[231]: Missed 12 kernel messages\n"
    cases = {
        log.format(release="3.10.0-1062", early="", late=late + lost): (None, 0),
        log.format(release="3.10.0-1062", early=early, late=late): (lockup, 0),
        log.format(release="3.10.0-1062", early=early, late="").replace(freed, ""): (lockup, 0),
        # those that say it have not come so far
        log.format(release="6.1.0", early="", late=late): (lockup, 0),
        log.format(release="6.1.0", early="", late=run + late): (None, 0),
        log.format(release="3.10.0-android", early="", late=soon + run): (lockup, 0),
    }
    for text, (oops, missed) in cases.items():
        (boot,) = read_boots(io.BytesIO(text.encode()))
        assert (boot.timestamps.oops, boot.timestamps.missed_messages) == (oops, missed)
        assert boot.timestamps.unpack_us == 579_887


@pytest.mark.parametrize(
    "words",
    [
        "INFO: task swapper/0:1 blocked for more than 122 seconds.",
        "rcu: INFO: rcu_sched self-detected stall on CPU",
    ],
)
def test_to_be_slow_is_no_error(words: str) -> None:
    """Who waits for an unpack of minutes, on a processor that is emulated, is reported as hung."""
    before, after = PLAIN.split("[    0.600000]")
    (boot,) = read_boots(
        io.BytesIO(f"{before}[    0.550000] {words}\n[    0.600000]{after}".encode())
    )
    assert boot.timestamps.oops is None
