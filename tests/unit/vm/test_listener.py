"""What is heard of a boot."""

from __future__ import annotations

from initadvisor.records.lab import BootKind
from initadvisor.vm.boot import Listener
from tests.fakes.machines import REFUSED, UNPACKED, UNTIL_INIT


def listen(kind: BootKind, said: str) -> tuple[Listener, int]:
    """Return the listener and how many lines it wanted."""
    listener = Listener(kind)
    for number, line in enumerate(said.encode().splitlines(), 1):
        if listener(line):
            return listener, number
    return listener, 0


def test_the_initcalls_own_figure_is_the_time_to_unpack() -> None:
    listener, last = listen(BootKind.UNPACK, UNPACKED.format(us=437_768) + "never read\n")
    assert listener.unpack_us == 437_768
    assert listener.release == "6.1.0-50-amd64"
    assert listener.failures == []
    assert last == 5


def test_until_init_the_marks_give_the_times_and_the_waiter() -> None:
    listener, last = listen(BootKind.INIT, UNTIL_INIT)
    assert listener.unpack_us == 1_930_417 - 1_314_817
    assert listener.init_us == 2_500_000 - 1_314_817
    assert listener.waiter == "crypto_kdf108_init"
    assert last == 6


def test_an_initcall_that_was_only_passing_by_is_no_waiter() -> None:
    quick = UNTIL_INIT.replace("after 610000 usecs", "after 999 usecs")
    assert listen(BootKind.INIT, quick)[0].waiter is None


def test_an_initcall_of_another_process_is_no_waiter() -> None:
    other = UNTIL_INIT.replace("0x12c @ 1", "0x12c @ 77")
    assert listen(BootKind.INIT, other)[0].waiter is None


def test_a_kernel_that_waits_only_before_init_names_no_waiter() -> None:
    """All initcalls are done long before the unpacking ends."""
    done = UNTIL_INIT.replace("[    1.930417] Freeing initrd memory: 22716K\n", "").replace(
        "[    2.5", "[    2.400000] Freeing initrd memory: 22716K\n[    2.5"
    )
    listener, _ = listen(BootKind.INIT, done)
    assert listener.waiter is None
    assert listener.unpack_us == 2_400_000 - 1_314_817


def test_the_kernels_complaint_is_kept_word_for_word() -> None:
    listener, _ = listen(BootKind.UNPACK, REFUSED.format(why="decompressor failed"))
    assert listener.failures == ["decompressor failed"]


def test_a_kernel_that_was_given_no_image_has_not_unpacked_one() -> None:
    said = "initcall populate_rootfs+0x0/0x60 returned 0 after 3 usecs\n"
    assert listen(BootKind.UNPACK, said)[0].unpack_us is None


def test_a_panic_ends_it() -> None:
    listener, last = listen(BootKind.UNPACK, "Kernel panic - not syncing: Out of memory\nmore\n")
    assert listener.panic == "Out of memory"
    assert listener.unpack_us is None
    assert last == 1


def test_bytes_that_are_no_text_are_no_trouble() -> None:
    listener = Listener(BootKind.UNPACK)
    assert not listener(bytes(range(256)) * 16)
