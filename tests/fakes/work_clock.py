"""A clock that only decompressing moves, so that what is weighed is the same on every machine."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from initadvisor.host import SystemClock, load

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    import pytest

    from initadvisor.image.stream_facts import StreamFacts

    Stream = Generator[bytes | memoryview, None, StreamFacts]

_DECOMPRESSORS = (
    ("gunzip", "gunzip", 3.0),
    ("bunzip2", "bunzip2", 25.0),
    ("unxz", "unlzma", 14.0),
    ("unxz", "unxz", 12.0),
    ("lzop", "unlzop", 1.5),
    ("lz4_legacy", "unlz4", 0.7),
    ("unzstd", "unzstd", 1.4),
)
"""The module and the name of each, and the ns that a byte of content takes on a usual processor."""


class WorkClock:
    """``cpu_ns`` is the processor time that decompressing has taken, as it is made up."""

    cpu_ns = 0.0


def install(monkeypatch: pytest.MonkeyPatch, *, slowness: float = 1.0) -> None:
    """Have decompressors, and nothing else, move the machine's clock of processor time.

    ``slowness``: how many times as long they take as on a usual processor.
    """
    clock = WorkClock()
    for module_name, name, ns_per_byte in _DECOMPRESSORS:
        module = importlib.import_module(f"initadvisor.image.decompressors.{module_name}")
        counted = _counted(clock, getattr(module, name), ns_per_byte * slowness)
        monkeypatch.setattr(module, name, counted)
    monkeypatch.setattr(SystemClock, "thread_cpu_ns", lambda _: round(clock.cpu_ns))
    monkeypatch.setattr(load, "_COUNTERS", "/nowhere")


def _counted(
    clock: WorkClock, decompressor: Callable[..., Stream], ns_per_byte: float
) -> Callable[..., Stream]:
    def counted(*arguments: object, **named: object) -> Stream:
        stream = decompressor(*arguments, **named)
        while True:
            try:
                piece = next(stream)
            except StopIteration as end:
                facts: StreamFacts = end.value
                return facts
            clock.cpu_ns += len(piece) * ns_per_byte
            yield piece

    return counted
