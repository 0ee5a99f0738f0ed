"""What a sample of an image's content tells of a setting without building its candidate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initadvisor.model.cost import Quantity
    from initadvisor.model.setting import Setting
    from initadvisor.model.stream import StreamFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledCandidate:
    """A candidate that was not built: what it would be, estimated from a sample of the content.

    ``key`` is that of the candidate's recipe. ``main_bytes``: the length of the main segment.
    ``build_cpu_s``, ``build_s`` and ``build_peak_bytes``: what its compressor would take.
    ``decompress_ms``: processor time of user-space decompression of all of it, one value for each
    time the sample was decompressed. ``command`` is what was run on ``sample_bytes`` of
    ``whole_bytes``, ``facts`` what the result says of itself.
    """

    setting: Setting
    key: str
    main_bytes: Quantity
    build_s: float
    build_cpu_s: float
    build_peak_bytes: int
    decompress_ms: tuple[float, ...]
    command: tuple[str, ...]
    sample_bytes: int
    whole_bytes: int
    facts: tuple[StreamFacts, ...] = ()
