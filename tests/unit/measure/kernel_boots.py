"""Boots of which all kernel messages are at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.measure.kernel_messages import KernelMessages

if TYPE_CHECKING:
    from collections.abc import Iterable

    from initadvisor.model.boot_marks import KernelBoot
    from initadvisor.model.kernel_log import KernelMessage


def read_boot(messages: Iterable[KernelMessage]) -> KernelBoot:
    """Return what the messages of one boot tell; reads no more of them than it needs."""
    collected = KernelMessages()
    for message in messages:
        if collected.note(message):
            break
    return collected.result()
