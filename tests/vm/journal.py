"""The guest's journal, read from its disk."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.vm import tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.vm.disk import Disk


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalBoot:
    """One boot as the journal has it; records as ``journalctl -o json`` prints them."""

    boot_id: str
    records: tuple[Mapping[str, Any], ...]

    def messages(self, transport: str | None = None) -> list[str]:
        """Return the text of the records, of one transport (``kernel``) or of all."""
        return [
            record["MESSAGE"]
            for record in self.records
            if transport in {None, record.get("_TRANSPORT")}
            and isinstance(record.get("MESSAGE"), str)
        ]


def journal(disk: Disk) -> list[JournalBoot]:
    """Return the boots that reached the disk's journal, oldest first."""
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch) / "journal"
        disk.root.fetch("/var/log/journal", directory)
        output = tools.run("journalctl", "-D", directory, "-o", "json", "--all", "--no-pager")
    boots: dict[str, list[Mapping[str, Any]]] = {}
    for line in output.splitlines():
        record = json.loads(line)
        boots.setdefault(record["_BOOT_ID"], []).append(record)
    return [
        JournalBoot(boot_id=boot_id, records=tuple(records)) for boot_id, records in boots.items()
    ]
