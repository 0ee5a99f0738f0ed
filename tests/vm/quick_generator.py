"""A generator that is quick, for tests of what happens to images once they are built."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fixtures.payload import early_bytes, main_payload
from tests.vm.filesystems import write

if TYPE_CHECKING:
    from tests.vm.guest import Guest

_CONTENT = "/usr/local/lib/quick-generator"
_SCRIPT = f"""\
#!/bin/bash -e
# As initadvisor calls mkinitramfs(8).
[ "$1 $3 $#" = "-d -o 5" ]
. "$2/initramfs.conf"
cat {_CONTENT}/early >"$4"
"$COMPRESS" ${{COMPRESSLEVEL:+-$COMPRESSLEVEL}} -c {_CONTENT}/main >>"$4"
"""


def put_quick_generator(guest: Guest) -> None:
    """Put a stand-in for mkinitramfs on the guest's disk; that one takes it half a minute.

    It makes what is installed now, compressed as its configuration says.
    """
    with tempfile.TemporaryDirectory() as scratch:
        image = Path(scratch) / "image"
        guest.disk.files("/boot").fetch(f"/initrd.img-{guest.release}", image)
        write(guest.disk.root, f"{_CONTENT}/early", early_bytes(image))
        write(guest.disk.root, f"{_CONTENT}/main", main_payload(image))
    write(guest.disk.root, "/usr/sbin/mkinitramfs", _SCRIPT, mode=0o755)
