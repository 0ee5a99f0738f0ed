"""How mkinitcpio is called so that it builds one image of a preset somewhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.generators.private import PrivateBuild, text_for, write_text
from initadvisor.measure.secure_boot import enforces_signatures
from initadvisor.model.errors import UnsafeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from initadvisor.generators.presets import Preset
    from initadvisor.host import Host
    from initadvisor.model.generator import InstalledImage


def private_build(
    host: Host,
    image: InstalledImage,
    preset: Preset | None,
    files: Sequence[Path],
    texts: Mapping[Path, str],
    place: Path,
) -> PrivateBuild:
    """Put the configuration into ``place`` and return the command that makes ``image`` of it.

    mkinitcpio makes one text of ``files``, without a newline between them; ``-c`` with that text
    is the same, because it switches drop-ins off. The rest is as ``process_preset`` passes it: of
    options that are given twice mkinitcpio takes the last, therefore ours stand behind the
    preset's. Post hooks (signing, copying) are for installed images, but for a unified kernel image
    where Secure Boot is on: they sign it, and it could not be started otherwise.

    Raises ``UnsafeError`` for a unified kernel image that no preset describes.
    """
    config, built = place / "mkinitcpio.conf", place / "image"
    write_text(config, "".join(text_for(host, file, texts) for file in files))
    signed = image.uki and enforces_signatures(host)
    hooks = () if signed else ("--nopost",)
    ours = ("-c", config, "-U" if image.uki else "-g", built, *hooks)
    if preset is None:
        if image.uki:
            msg = (
                f"not building {image.path}: no preset tells how that unified kernel image is made"
            )
            raise UnsafeError(msg)
        return PrivateBuild(argv=("mkinitcpio", "-k", image.kernel_release, *ours), image=built)
    parts: list[str] = []
    if image.uki:
        parts += ["--cmdline", preset.cmdline] if preset.cmdline else []
        parts += ["--splash", preset.splash] if preset.splash else []
    return PrivateBuild(
        argv=("mkinitcpio", "-k", preset.kernel, *parts, *preset.options, *ours),
        image=built,
        # A unified kernel image says in its os-release section which preset it is of.
        env={"MKINITCPIO_PROCESS_PRESET": f"{preset.file.stem}-{preset.name}"},
    )
