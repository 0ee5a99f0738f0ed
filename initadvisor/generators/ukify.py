"""Unified kernel images that kernel-install(8) has ukify(1) make of an initramfs.

So it is where install.conf says ``layout=uki`` and names no other ``uki_generator``. The plugin
60-ukify.install takes the command line, the stub and the keys from where the machine has them. It
is run as kernel-install runs it, with a staging area of its own (read and run: systemd 257).
"""

from __future__ import annotations

import os
import re
from collections import Counter
from configparser import ConfigParser
from configparser import Error as ConfigParserError
from dataclasses import replace
from functools import partial
from typing import IO, TYPE_CHECKING, Final

from initadvisor.core.errors import UnfitImageError, UnsafeError
from initadvisor.core.text import shown
from initadvisor.generators.files import exists
from initadvisor.generators.kernel_install import install_conf, plugin
from initadvisor.generators.running import PrivateBuild, build_privately, write_text
from initadvisor.host.files import append_range, failing_as, open_regular, sha256_of
from initadvisor.host.storage.mounts import machine_path
from initadvisor.image.pe import OF_THE_INITRAMFS, read_uki, sections_of_uki

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from initadvisor.generators import InstalledImage
    from initadvisor.host import Host


NAME: Final = "ukify"

_PLUGIN = "60-ukify.install"
_KERNELS = ("/boot/vmlinuz-{0}", "/boot/vmlinux-{0}", "/usr/lib/modules/{0}/vmlinuz")
"""Which file Debian's hooks give to kernel-install, and which one Fedora's and Arch's."""


def makes_ukis(host: Host) -> bool:
    """Tell whether the UKIs that kernel-install places are ukify's."""
    conf = install_conf(host)
    is_wanted = conf.get("layout") == "uki" and conf.get("uki_generator") in {None, "", NAME}
    return is_wanted and plugin(host, _PLUGIN) is not None


def with_ukis(
    host: Host, images: Sequence[InstalledImage], placed: Iterable[InstalledImage]
) -> tuple[InstalledImage, ...]:
    """Return those UKIs of ``placed`` that ukify makes, then ``images``: what boots comes first.

    Debian's hooks have kernel-install take the image in /boot, elsewhere a plugin has another made.
    """
    if not makes_ukis(host):
        return (*images,)
    written = {one.path for one in images}
    ukis = (one for one in placed if one.uki)
    found = ((one, host.path(f"/boot/initrd.img-{one.kernel_release}")) for one in ukis)
    made = (replace(one, made_of=path if path in written else None) for one, path in found)
    return (*made, *images)


def build_of(
    host: Host, image: InstalledImage, target: Path, make_initramfs: Callable[[Path], None]
) -> None:
    """Have the file ``target`` be the UKI ``image`` anew, of the initramfs that is made for it.

    Raises what ``unify`` does.
    """
    initramfs = target.with_name(f"{target.name}.initramfs")
    try:
        make_initramfs(initramfs)
        unify(host, image, initramfs, target)
    finally:
        initramfs.unlink(missing_ok=True)


def can_unify(host: Host) -> bool:
    """Tell whether ``unify`` may succeed: kernel-install has ukify run, or it is installed."""
    return makes_ukis(host) or host.runner.which(NAME) is not None


def unify(host: Host, image: InstalledImage, initramfs: Path, target: Path) -> None:
    """Have the file ``target`` be the UKI ``image`` with another initramfs.

    Where kernel-install has ukify run, it is run so; elsewhere with the parts that the image has,
    as mkinitcpio runs it (41). Raises what ``build_privately`` does, ``UnsafeError`` where
    something is missing for it, ``UnfitImageError`` where more than the initramfs became another.
    """
    as_usual = makes_ukis(host)
    prepare = (
        _by_plugin(host, image, initramfs)
        if as_usual
        else partial(_by_parts, host, image, initramfs)
    )
    build_privately(host, NAME, target, prepare)
    if image.path.exists() and (changed := _changed_sections(image.path, target)):
        msg = f"{NAME} makes {image.path} with another {' and '.join(changed)} than it has"
        release = image.kernel_release
        hint = f"kernel-install add {release} {_kernel(host, release)} makes it anew"
        raise UnfitImageError(msg, hint=hint if as_usual else "have it made by ukify")


def _kernel(host: Host, release: str) -> str | None:
    """Return the kernel that kernel-install is given."""
    paths = (path.format(release) for path in _KERNELS)
    return next((path for path in paths if exists(host, path)), None)


def _by_plugin(
    host: Host, image: InstalledImage, initramfs: Path
) -> Callable[[Path], PrivateBuild]:
    release = image.kernel_release
    argv0, kernel = plugin(host, _PLUGIN), _kernel(host, release)
    if argv0 is None or kernel is None:
        lack = f"no {_PLUGIN}" if argv0 is None else f"no kernel {_KERNELS[0].format(release)}"
        msg = f"not building {image.path}: {lack}"
        raise UnsafeError(msg)
    token = image.path.name.removesuffix(f"-{release}.efi")
    entries = str(machine_path(host, image.path).parents[2] / token / release)

    def prepare(place: Path) -> PrivateBuild:
        return PrivateBuild(
            argv=(
                *(str(machine_path(host, argv0)), "add", release, entries),
                *(kernel, initramfs),
            ),
            image=place / "uki.efi",
            env={
                "KERNEL_INSTALL_LAYOUT": "uki",
                "KERNEL_INSTALL_UKI_GENERATOR": NAME,
                "KERNEL_INSTALL_STAGING_AREA": str(place),
                "KERNEL_INSTALL_ENTRY_TOKEN": token,
                "KERNEL_INSTALL_MACHINE_ID": (host.read_text("/etc/machine-id") or "").strip(),
            },
        )

    return prepare


_PARTS = {
    ".linux": "--linux={}",
    ".osrel": "--os-release=@{}",
    ".cmdline": "--cmdline=@{}",
    ".splash": "--splash={}",
}
_PLACES = ("/etc", "/run", "/usr/local/lib", "/usr/lib")
_CONFIGURATIONS = (
    *(f"{place}/kernel/uki.conf" for place in _PLACES),
    *(f"{place}/systemd/ukify.conf" for place in _PLACES),
)
"""Of which the first counts that is there (60-ukify.install and ukify of systemd 257)."""

_SBCTLS = ("/var/lib/sbctl/keys/db/db", "/usr/share/secureboot/keys/db/db")
"""Where sbctl(8) keeps the pair it signs with: since 0.15, and before."""

_MOST_BYTES = 1 << 20
"""Of a configuration: one with every setting has a few KB."""


def _by_parts(host: Host, image: InstalledImage, initramfs: Path, place: Path) -> PrivateBuild:
    words = [f"--uname={image.kernel_release}"]
    words += [f"--config={path}" for path in (_configuration(host),) if path]
    with open_regular(image.path) as file:
        # Of a name that is there again, the first counts: the comparison finds what is lost.
        sections = dict(reversed(sections_of_uki(file, file.seek(0, os.SEEK_END))))
        for name in _PARTS.keys() & sections.keys():
            path, part = place / name.lstrip("."), sections[name]
            with path.open("xb") as out:
                append_range(out, file, offset=part.offset, size_bytes=part.size_bytes)
            words.append(_PARTS[name].format(path))
    built = place / "uki.efi"
    argv = (NAME, "build", *sorted(words), f"--initrd={initramfs}", f"--output={built}")
    return PrivateBuild(argv=argv, image=built)


_SIGNING = re.compile(r"(SecureBoot|Signing|CertificateProvider)")


def can_sign(host: Host) -> bool:
    """Tell whether ukify's configuration names a key to sign with for Secure Boot."""
    signing = _signing(host)
    return any(map(signing.get, ("SecureBootPrivateKey", "SecureBootCertificateName")))


def make_addon(host: Host, words: Sequence[str], target: Path) -> None:
    """Have the file ``target`` be an addon with these words, signed with the machine's keys.

    Raises what ``build_privately`` does, ``UnsafeError`` where no configuration names a key.
    """
    if not can_sign(host):
        raise no_key(host)
    keys = "".join(f"{name}={value}\n" for name, value in _signing(host).items())

    def prepare(place: Path) -> PrivateBuild:
        config, text, built = place / "uki.conf", place / "words", place / "addon.efi"
        write_text(config, f"[UKI]\n{keys}")
        write_text(text, " ".join(words))
        argv = (NAME, "build", f"--config={config}", f"--cmdline=@{text}", f"--output={built}")
        return PrivateBuild(argv=argv, image=built)

    build_privately(host, NAME, target, prepare)


def no_key(
    host: Host, *, because: str = "Secure Boot is on", what: str = "a trial's words"
) -> UnsafeError:
    """Return the refusal of a trial for which nothing can be signed."""
    msg = f"{because}, and {_CONFIGURATIONS[0]} names no key to sign {what} with"
    keys = "SecureBootPrivateKey= and SecureBootCertificate="
    hint = f"name those that sign your images there: {keys} (ukify(1))"
    if found := next((path for path in _SBCTLS if exists(host, f"{path}.key")), None):
        hint += f"; sbctl's are {found}.key and .pem"
    return UnsafeError(msg, hint=hint)


def _configured(path: Path) -> str:
    """Return a configuration's text, as ``Host.read_text`` does; raises ``InitadvisorError``."""
    with open_regular(path) as file, failing_as(f"cannot read {path}"):
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        msg = f"cannot read {path}: larger than {_MOST_BYTES} bytes"
        raise UnsafeError(msg, hint="restore or remove it")
    return content.decode(errors="replace")


def _signing(host: Host) -> dict[str, str]:
    """Return what ukify's configuration says of signatures for Secure Boot.

    Signatures of PCR 11 are none of an addon's.
    """
    # As ukify reads it (257).
    parser = ConfigParser(
        comment_prefixes="#",
        inline_comment_prefixes="#",
        delimiters="=",
        empty_lines_in_values=False,
        interpolation=None,
        strict=False,
    )
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    path = _configuration(host)
    try:
        parser.read_string(_configured(host.path(path)) if path else "")
    except ConfigParserError as err:
        msg = f"cannot read {path}: {' '.join(str(err).split())}"
        raise UnsafeError(msg, hint="ukify would not, either: mend it") from err
    section = parser["UKI"] if parser.has_section("UKI") else {}
    return {name: value for name, value in section.items() if _SIGNING.match(name)}


def _configuration(host: Host) -> str | None:
    return next((path for path in _CONFIGURATIONS if exists(host, path)), None)


def _changed_sections(before: Path, after: Path) -> list[str]:
    found = []
    for path in (before, after):
        with open_regular(path) as file:
            found.append(section_digests(file, file.seek(0, os.SEEK_END)))
    one, other = found
    return sorted(shown(name) for name in {name for name, _ in one.items() ^ other.items()})


def section_digests(file: IO[bytes], size_bytes: int) -> dict[str, str]:
    """Return the digest of each section of a UKI, empty of those that are the initramfs's.

    A name that is there again, as in a second profile, has its number behind it. Raises
    ``BadImageError``.
    """
    digests: dict[str, str] = {}
    numbers = Counter[str]()
    for name, part in sections_of_uki(file, size_bytes):
        numbers[name] += 1
        key = name if numbers[name] == 1 else f"{name} {numbers[name]}"
        is_of_it = name in OF_THE_INITRAMFS
        whole = (
            None if is_of_it else sha256_of(file, offset=part.offset, size_bytes=part.size_bytes)
        )
        digests[key] = whole or ""
    return digests


def require_made_of(host: Host, image: InstalledImage) -> None:
    """Raise ``UnsafeError`` where a UKI does not hold the image that it is made of.

    Raises ``InitadvisorError`` where one of them cannot be read.
    """
    if image.made_of is None:
        return
    with failing_as(f"cannot compare {image.path} with {image.made_of}"):
        with open_regular(image.path) as file:
            part = read_uki(file, file.seek(0, os.SEEK_END)).initrd
            held = sha256_of(file, offset=part.offset, size_bytes=part.size_bytes)
        with open_regular(image.made_of) as file:
            written = sha256_of(file)
    if held != written:
        release, path = image.kernel_release, machine_path(host, image.made_of)
        msg = f"{image.path} holds another initramfs than {path}, which {NAME} makes it of"
        hint = f"kernel-install add {release} /boot/vmlinuz-{release} {path} makes it anew"
        raise UnsafeError(msg, hint=hint)
