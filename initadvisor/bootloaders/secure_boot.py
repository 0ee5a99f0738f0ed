"""What signatures, and what is added to them, mean for an entry of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.measure.secure_boot import enforces_signatures
from initadvisor.model.boot_entry import EntryKind
from initadvisor.model.refusal import RefusalKind, refused

if TYPE_CHECKING:
    from initadvisor.host import Host
    from initadvisor.model.boot_entry import TrialRequest


def require_free_command_line(host: Host, uki: str) -> None:
    """Raise ``RefusedError`` where a unified kernel image would not take a trial's options.

    systemd-stub ignores other options than the image's own when Secure Boot is on: the trial could
    not be told apart, and would hang for ever where it panics. What lies in the directories beside
    the image (addons, credentials) is for that very name of image only.
    """
    if enforces_signatures(host):
        reason = f"Secure Boot is on, and {uki} with its command line is signed as a whole"
        remedy = "have kernel and image installed as files of their own (Type #1), or turn it off"
        raise refused(RefusalKind.SIGNED_UKI, reason, remedy)
    _require_nothing_added(host, uki)


def require_same_start(host: Host, uki: str, request: TrialRequest) -> None:
    """Raise ``RefusedError`` where an image in the place of ``uki`` would not start as asked for.

    The image that was replaced is signed as it was, and starts with its own command line.
    """
    match request.kind:
        case EntryKind.TRIAL:
            require_free_command_line(host, uki)
        case EntryKind.PREVIOUS:
            _require_nothing_added(host, uki)


def _require_nothing_added(host: Host, uki: str) -> None:
    if host.path(f"{uki}.extra.d").is_dir():
        reason = f"{uki}.extra.d adds to {uki}, but would not to an image of another name"
        raise refused(RefusalKind.SIGNED_UKI, reason, "have it built into the image")
