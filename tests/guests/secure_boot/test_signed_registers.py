"""A disk that a TPM unlocks for any image whose PCR 11 the machine's key has signed is unlocked in
trials, too: a trial's unified kernel image brings its own signature.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.fixtures.debian import program
from tests.fixtures.waiting import HANGS_S
from tests.vm.applying import UKIFY, boot_unified
from tests.vm.boot import Then, boot
from tests.vm.filesystems import write
from tests.vm.guest import Loader
from tests.vm.installed import ENABLE
from tests.vm.loop_boots import left
from tests.vm.loop_guest import prepared
from tests.vm.loop_scripts import JUDGED, SEEN, begin, look
from tests.vm.machine import Machine
from tests.vm.outside_engine import with_engine
from tests.vm.tpm import tpm

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vm.boot import Boot
    from tests.vm.guest import Guest

pytestmark = pytest.mark.vm

_CANDIDATE = "zstd -1"
_PACKAGES = (*UKIFY, "cryptsetup-bin", "systemd-cryptsetup", "tpm2-tools")
_KEY, _PUBLIC = "/etc/kernel/pcr.key", "/etc/kernel/pcr.pub"
# No systemd in the initramfs says that it has come to an end.
_CONFIGURATION = f"""\
[PCRSignature:all]
PCRPrivateKey={_KEY}
PCRPublicKey={_PUBLIC}
Phases=sysinit sysinit:ready
"""
_PASSPHRASE, _DISK = "/root/passphrase", "/root/disk"
_FORMAT = f"""
truncate -s 20M {_DISK}
printf passphrase >{_PASSPHRASE}
cryptsetup luksFormat --batch-mode --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 \\
    {_DISK} {_PASSPHRASE}
losetup /dev/loop0 {_DISK}
systemd-cryptenroll --unlock-key-file={_PASSPHRASE} --tpm2-device=auto --tpm2-pcrs= \\
    --tpm2-public-key={_PUBLIC} --tpm2-public-key-pcrs=11 /dev/loop0
"""
_UNLOCK = f"""
cat >/root/signature.py <<'END'
import io, sys
from initadvisor.image.pe import sections_of_uki
data = open(sys.argv[1], "rb").read()
part = dict(sections_of_uki(io.BytesIO(data), len(data)))[".pcrsig"]
sys.stdout.buffer.write(data[part.offset : part.offset + part.size_bytes].rstrip(b"\\0"))
END
unlocks() {{
    python3 /root/signature.py "$1" >/run/signature.json
    timeout 60 systemd-cryptsetup attach data /dev/loop0 - \\
        tpm2-device=auto,tpm2-signature=/run/signature.json,headless=1
}}
modprobe loop
[ ! -e {_DISK} ] || losetup /dev/loop0 {_DISK}
default=$(ls /boot/efi/EFI/Linux/*.efi)
trial=$(ls /boot/efi/EFI/Linux/.initadvisor-*-trial || true)
"""


@pytest.mark.shows("trial boot, signed PCR 11", "systemd-boot, unified kernel image by ukify")
def test_a_trial_s_image_unlocks_what_a_signature_unlocks(tmp_path: Path) -> None:
    made = prepared(Loader.SYSTEMD_BOOT, tmp_path / "guest", (_CANDIDATE,), also=_PACKAGES)
    _put_keys(made, tmp_path)
    boot_unified(made)
    (tmp_path / "tpm").mkdir()
    first = _boot(
        made,
        tmp_path,
        f"{ENABLE}{_UNLOCK}{_FORMAT}unlocks $default\n{begin((_CANDIDATE,), 1)}{look(SEEN)}",
    )
    assert not [line for line in first.output if "PCR" in line and "bound" in line]
    rehearsal = left(made, SEEN)["campaign"]
    assert (rehearsal["state"], rehearsal["trial_boots"][0]["armed_boot"]["stage"]) == (
        *("armed", "rehearsal"),
    )
    _boot(made, tmp_path, f"{_UNLOCK}unlocks $default\n{JUDGED}{look(SEEN)}")
    assert left(made, SEEN)["campaign"]["trial_boots"][-1]["setting"] == _CANDIDATE
    # Today's signature is of another image: that the disk is bound to what boots is no pretence.
    trial = f"! unlocks $default\nunlocks $trial\n{JUDGED}{look(SEEN)}"
    _boot(made, tmp_path, f"{_UNLOCK}{trial}")
    done = left(made, SEEN)["campaign"]
    assert (done["state"], done["trial_boots"][-1]["outcome"]) == ("done", "passed")


def _put_keys(made: Guest, directory: Path) -> None:
    key, public = directory / "pcr.key", directory / "pcr.pub"
    openssl = program("openssl")
    for words in (
        ("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", key),
        ("rsa", "-in", key, "-pubout", "-out", public),
    ):
        argv = [openssl, *words]
        subprocess.run(argv, check=True, capture_output=True, timeout=HANGS_S)
    write(made.disk.root, _KEY, key.read_bytes(), mode=0o600)
    write(made.disk.root, _PUBLIC, public.read_bytes())
    write(made.disk.root, "/etc/kernel/uki.conf", _CONFIGURATION)


def _boot(made: Guest, directory: Path, script: str) -> Boot:
    with tpm(directory / "tpm") as socket:
        machine = with_engine(Machine(bare_metal=True, tpm=socket))
        return boot(made, machine, script=script, then=Then.REBOOT)
