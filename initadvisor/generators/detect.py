"""Decides which generator makes this machine's images; several may be installed.

What decides, in this order:

1. ``initrd_generator=`` of kernel-install (install.conf and drop-ins), if that one is installed.
2. Debian's kernel hooks, ``/etc/kernel/postinst.d/{initramfs-tools,dracut}``: dracut-core, which
   brings a kernel-install plugin but no such hook, makes nothing there.
3. mkinitcpio's pacman hook together with a preset: how Arch makes images until that hook is masked.
4. A kernel-install plugin that is not masked (``50-dracut.install``, ``50-mkinitcpio.install``).
5. The only one that is installed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from initadvisor.core.errors import UnsafeError
from initadvisor.generators import dracut, initramfs_tools, mkinitcpio, unknown
from initadvisor.generators.kernel_install import install_conf, plugin
from initadvisor.generators.running import refuse_unsupported
from initadvisor.host.files import listing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.generators import Generator
    from initadvisor.host import Host


GENERATORS: Final[tuple[Generator, ...]] = (mkinitcpio, dracut, initramfs_tools)

_MKINITCPIO_HOOK = "90-mkinitcpio-install.hook"
_KERNEL_HOOKS: Final[dict[str, Generator]] = {"initramfs-tools": initramfs_tools, "dracut": dracut}
_PLUGINS: Final[dict[str, Generator]] = {
    "50-dracut.install": dracut,
    "50-mkinitcpio.install": mkinitcpio,
}


def detect_generator(host: Host) -> Generator | None:
    """Return the generator that makes this machine's images, None if there is none.

    Raises ``UnsafeError`` on systems whose images are made another way (ostree, NixOS, booster).
    """
    refuse_unsupported(host)
    installed = [generator for generator in GENERATORS if generator.detect(host)]
    for rule in (_by_kernel_install, _by_kernel_hook, _by_pacman_hook, _by_plugin):
        for generator in rule(host):
            if generator in installed:
                return generator
    if not installed and host.path("/usr/bin/booster").exists():
        msg = "not supported: booster makes this machine's images"
        raise UnsafeError(msg, hint="an image can still be examined with --image FILE")
    return installed[0] if installed else None


def generator_of_image(made_by: str | None) -> Generator:
    """Return the generator of that name (``Generator.NAME``), the plain tools for any other."""
    return next((g for g in GENERATORS if made_by == g.NAME), unknown)


def _by_kernel_install(host: Host) -> Iterator[Generator]:
    name = install_conf(host).get("initrd_generator")
    yield from (generator for generator in GENERATORS if name == generator.NAME)


def _by_kernel_hook(host: Host) -> Iterator[Generator]:
    for name, generator in _KERNEL_HOOKS.items():
        if os.access(host.path(f"/etc/kernel/postinst.d/{name}"), os.X_OK):
            yield generator


def _by_pacman_hook(host: Host) -> Iterator[Generator]:
    shipped = host.path(f"/usr/share/libalpm/hooks/{_MKINITCPIO_HOOK}")
    own = host.path(f"/etc/pacman.d/hooks/{_MKINITCPIO_HOOK}")
    presets = any(path.suffix == ".preset" for path in listing(host, "/etc/mkinitcpio.d"))
    if presets and (own.stat().st_size if own.exists() else shipped.exists()):
        yield mkinitcpio


def _by_plugin(host: Host) -> Iterator[Generator]:
    for name, generator in _PLUGINS.items():
        if plugin(host, name) is not None:
            yield generator
