"""How certain a conclusion about one boot is."""

from __future__ import annotations

from enum import StrEnum


class Certainty(StrEnum):
    """What may be built on a conclusion; only what is certain becomes a sample."""

    CERTAIN = "certain"
    LIKELY = "likely"
    AMBIGUOUS = "ambiguous"
    UNKNOWN = "unknown"

    @property
    def description(self) -> str:
        """What it means, in words."""
        match self:
            case Certainty.CERTAIN:
                return "nothing else fits what was seen"
            case Certainty.LIKELY:
                return "what was seen fits, but does not prove it"
            case Certainty.AMBIGUOUS:
                return "what was seen fits more than one"
            case Certainty.UNKNOWN:
                return "what was seen fits nothing that is known, or nothing was seen"
