"""How dracut is called so that it builds one kernel's image somewhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.generators.private import PrivateBuild, text_for, write_text
from initadvisor.model.errors import UnsafeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.model.generator import InstalledImage

NOTED_INSIDE = ("lib/dracut/build-parameter.txt", "usr/lib/dracut/build-parameter.txt")
"""Where dracut keeps its command line for ``--rebuild``, on a merged /usr or not."""

_MAIN = "/etc/dracut.conf"


def private_build(
    host: Host,
    image: InstalledImage,
    files: Sequence[Path],
    texts: Mapping[Path, str],
    makes_ukis: bool,
    place: Path,
) -> PrivateBuild:
    """Put the files below ``/etc`` into ``place`` and return the command that reads them there.

    Those of other directories dracut reads as ever, unless ``--confdir`` has one of their name. A
    main file must be given, or it would be the installed one.

    Raises ``UnsafeError`` for a unified kernel image that dracut is not configured to make: then it
    is another program's work.
    """
    if image.uki and not makes_ukis:
        msg = f"not building {image.path}: dracut is not configured to make unified kernel images"
        raise UnsafeError(msg, hint="kernel-install(8) has another program make it")
    main, drop_ins, built = place / "dracut.conf", place / "dracut.conf.d", place / "image"
    drop_ins.mkdir()
    write_text(main, "")
    for file in files:
        if file == host.path(_MAIN):
            write_text(main, text_for(host, file, texts))
        elif file.parent == host.path(f"{_MAIN}.d"):
            write_text(drop_ins / file.name, text_for(host, file, texts))
    argv = ("dracut", "--force", "--conf", main, "--confdir", drop_ins, "--tmpdir", place)
    kind = "--uefi" if image.uki else "--no-uefi"
    return PrivateBuild(argv=(*argv, kind, "--kver", image.kernel_release, built), image=built)
