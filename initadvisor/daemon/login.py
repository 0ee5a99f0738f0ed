"""What whoever logs in is shown (pam_motd(8)), where the user wants it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.host.files import failing_as, remove_durably, write_file

if TYPE_CHECKING:
    from initadvisor.host import Host

_NAME = "motd"


def show_at_login(host: Host, line: str | None) -> None:
    """Have this line shown, or none any more; it outlasts reboots.

    ``systemd/initadvisor.tmpfiles`` leads to its file from /run/motd.d, which does not. Raises
    ``InitadvisorError`` where it cannot be written.
    """
    path = host.cache_dir() / _NAME
    with failing_as(f"cannot change what is shown at login, {path}", only_root=True):
        before = path.read_text(encoding="utf-8") if path.exists() else None
        if line is None:
            if before is not None:
                remove_durably(path)
        elif before != f"{line}\n":
            write_file(path, f"{line}\n".encode(), mode=0o644)
