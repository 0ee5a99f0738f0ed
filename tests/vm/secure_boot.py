"""Guests whose firmware starts nothing but what is signed, with a key that Debian gives to all.

Their boot loader and their unified kernel images are signed by the programs that a person would
have do it: sbsign(1) and, at each kernel's installation, ukify(1).
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.fixtures.debian import program
from tests.fixtures.signing import Signer
from tests.fixtures.waiting import HANGS_S
from tests.vm import tools
from tests.vm.boot import boot
from tests.vm.filesystems import write

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vm.guest import Guest

PACKAGES = ("sbsigntool", "openssl")
KEY, CERTIFICATE = "/etc/kernel/secure-boot.key", "/etc/kernel/secure-boot.pem"
CONFIGURATION = "/etc/kernel/uki.conf"
KEYS = """\
[UKI]
SecureBootPrivateKey={}
SecureBootCertificate={}
"""
_OTHER = "/root/other"
ANOTHER_KEY = f"""
openssl req -new -x509 -newkey rsa:2048 -nodes -days 9 -subj /CN=another/ -batch \\
    -keyout {_OTHER}.key -out {_OTHER}.pem
cat >{CONFIGURATION} <<'END'
{KEYS.format(f"{_OTHER}.key", f"{_OTHER}.pem")}END
"""
"""Have ukify sign with a key that the firmware does not know."""
_SIGN_LOADER = f"""
cd {{esp}}/EFI
for loader in BOOT/BOOTX64.EFI systemd/systemd-bootx64.efi; do
    sbsign --key {KEY} --cert {CERTIFICATE} --output $loader $loader
done
sync -f .
"""


def put_keys(made: Guest) -> None:
    """Have the guest's ukify sign what it makes from now on."""
    root = made.disk.root
    found = signer(made.directory)
    write(root, KEY, found.key.read_bytes(), mode=0o600)
    write(root, CERTIFICATE, _of_ovmf("pem").read_bytes())
    write(root, CONFIGURATION, KEYS.format(KEY, CERTIFICATE))


def turn_on(made: Guest, esp: str) -> Guest:
    """Have a guest's loader signed, and return it with Secure Boot on; it has the keys already."""
    boot(made, direct=True, script=_SIGN_LOADER.format(esp=esp))
    shutil.copyfile(tools.tree() / "usr/share/OVMF/OVMF_VARS_4M.snakeoil.fd", made.variables)
    return replace(made, secure_boot=True)


def signer(directory: Path) -> Signer:
    """Return who has signed it all; the key, without its passphrase, lies in the directory."""
    key, certificate = directory / "secure-boot.key", directory / "secure-boot.der"
    if not key.exists():
        locked, pem = _of_ovmf("key"), _of_ovmf("pem")
        _openssl("rsa", "-in", locked, "-passin", "pass:snakeoil", "-out", key)
        _openssl("x509", "-in", pem, "-outform", "DER", "-out", certificate)
    return Signer(key=key, certificate=certificate.read_bytes())


def _of_ovmf(suffix: str) -> Path:
    return tools.tree() / f"usr/share/ovmf/PkKek-1-snakeoil.{suffix}"


def _openssl(*words: str | Path) -> None:
    argv = [program("openssl"), *words]
    subprocess.run(argv, check=True, capture_output=True, timeout=HANGS_S)
