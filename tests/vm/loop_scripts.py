"""What the guest does in the boots of the whole loop, and what is looked at in each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.vm.guest import Generator
from tests.vm.installed import ENABLE
from tests.vm.loop_guest import KERNEL_PACKAGE, OTHER_KERNEL_PACKAGE

if TYPE_CHECKING:
    from collections.abc import Sequence

SEEN, RECOMMENDATION, HISTORY = (
    f"/root/{name}.json" for name in ("seen", "recommendation", "history")
)
_IMAGES = (
    *("/boot/initrd.img-{}", "/boot/initramfs-{}.img", "/boot/debian/{}/initrd"),
    "/boot/initramfs-linux.img",
)
"""Where a kernel's image is, whoever makes it; in no guest is it in two of these places."""
_CONFIGURATIONS = {
    Generator.INITRAMFS_TOOLS: "/etc/initramfs-tools/initramfs.conf",
    Generator.DRACUT: "/etc/dracut.conf",
    Generator.MKINITCPIO: "/etc/mkinitcpio.conf",
}
_LOOKING = """
import glob, hashlib, io, json, os, pathlib, subprocess

def said(*argv):
    return subprocess.run(argv, capture_output=True, text=True).stdout

def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()

def records(pattern):
    return [json.loads(pathlib.Path(path).read_text()) for path in sorted(glob.glob(pattern))]

def unified(path):
    content = pathlib.Path(path).read_bytes()
    from initadvisor.image.pe import read_uki
    part = read_uki(io.BytesIO(content), len(content)).initrd
    return hashlib.sha256(content[part.offset : part.offset + part.size_bytes]).hexdigest()

def image_of(release):
    named = [glob.glob(pattern.format(release)) for pattern in @IMAGES@]
    found = [pathlib.Path(path) for paths in named for path in paths]
    assert len(found) < 2, found
    return found[0] if found else None

def described(image):
    return {"sha256": digest(image), "bytes": image.stat().st_size}

release = os.uname().release
kernels = {name: image_of(name) for name in os.listdir("/usr/lib/modules")}
image = kernels[release]
state = "/var/lib/initadvisor"
ours = {"initadvisor-measure": [], "initadvisor-settle": [], "initadvisord": []}
fields = "--output-fields=MESSAGE,_SYSTEMD_UNIT"
journal = ("journalctl", "-b", "-q", "-o", "json", fields)
for line in said(*journal, "-t", "initadvisor", "-t", "initadvisord").splitlines():
    record = json.loads(line)
    unit = record.get("_SYSTEMD_UNIT", "").removesuffix(".service")
    if unit in ours:
        ours[unit] += record["MESSAGE"].splitlines()
built = {}
for path in glob.glob("/var/cache/initadvisor/candidates/*.json"):
    candidate = json.loads(pathlib.Path(path).read_text())["candidate"]
    built[candidate["setting"]] = os.stat(path.removesuffix("json") + "img").st_size
print(json.dumps({
    "release": release,
    "images": {name: described(path) for name, path in kernels.items() if path},
    "command_line": pathlib.Path("/proc/cmdline").read_text().split(),
    "campaign": (records(state + "/campaigns/*.json") or [None])[-1],
    "transactions": records(state + "/transactions/*.json"),
    "candidates": built,
    "image": digest(image),
    "copies": [digest(path) for path in glob.glob("/boot/efi/debian/*/initrd.img-*")]
    + [unified(path) for path in glob.glob("/boot/efi/EFI/Linux/*.efi")],
    "image_bytes": os.stat(image).st_size,
    "configuration": pathlib.Path("@CONFIGURATION@").read_text(),
    "slot": glob.glob("/boot/**/.initadvisor-*-trial*", recursive=True),
    "notes": sorted(os.listdir(state)) + sorted(os.listdir(state + "/queue")),
    "said": ours,
    "failed": said("systemctl", "--failed", "--plain", "--no-legend").splitlines(),
}))
"""
AT_REST = """
at_rest() {
    [ "$(systemctl show -P ActiveState initadvisord.service)" = inactive ] &&
        [ ! -e /var/lib/initadvisor/tasks ] && [ -z "$(ls /var/lib/initadvisor/queue)" ]
}
until at_rest; do sleep 3; done
"""
DPKG_ON_FAT = """
# dpkg makes hard links of what it replaces, which FAT has not: kernels of one release cannot be
# upgraded there, only others can be put beside them.
[ "$(stat -f -c %T /boot)" != msdos ] || rm -f /boot/{vmlinuz,System.map,config}-$(uname -r)
"""
IN_PLACE = """
# Or kernel-install(8) would copy the image to where this guest's entry does not look for it.
[ -e /etc/kernel/install.conf ] || grep -qs /debian/ /boot/{,efi/}loader/entries/*.conf ||
    rm -f /etc/kernel/post{inst,rm}.d/zz-systemd-boot /etc/initramfs/post-update.d/systemd-boot
"""
UPGRADE = f"""
{ENABLE}
{IN_PLACE}
{DPKG_ON_FAT}
modprobe i6300esb
systemctl enable --quiet --now initadvisord.path
dpkg -i {KERNEL_PACKAGE}
{AT_REST}
"""
OTHER_KERNEL = f"dpkg -i {OTHER_KERNEL_PACKAGE}\n{AT_REST}"
RECORDED = """
# Without KVM, to ask systemd costs more than to wait a little longer.
is_done() {
    [ "$(systemctl show -P ExecMainExitTimestampMonotonic $1)" != 0 ] &&
        [ "$(systemctl show -P ActiveState $1)" = inactive ]
}
until is_done initadvisor-measure.service; do sleep 3; done
"""
JUDGED = f"""
{RECORDED}
until is_done initadvisor-settle.service; do sleep 3; done
"""
IS_OVER = "[ ! -e /var/lib/initadvisor/campaign-active ]"
APPLY = f"initadvisor recommend --json >{RECOMMENDATION}\ninitadvisor apply --confirm\n"
GO_BACK = f"{JUDGED}\ninitadvisor rollback --confirm\n"
LOOK_BACK = f"initadvisor history --json >{HISTORY}\n"


def look(
    path: str, generator: Generator = Generator.INITRAMFS_TOOLS, *, image: str | None = None
) -> str:
    """Return the guest's command that writes down what there is to see; ``image`` is a pattern."""
    looking = _LOOKING.replace("@IMAGES@", repr((image,) if image else _IMAGES))
    looking = looking.replace("@CONFIGURATION@", _CONFIGURATIONS[generator])
    return f"python3 - >{path} <<'END'\n{looking}\nEND\n"


def apply_unproven(setting: str) -> str:
    """Return the guest's command that applies what has not booted yet."""
    return f"initadvisor apply '{setting}' --confirm\n"


def going_back(seen: str, generator: Generator = Generator.INITRAMFS_TOOLS) -> str:
    """Return the guest's commands that look when the boot is judged, and then go back."""
    return f"{JUDGED}\n{look(seen, generator)}initadvisor rollback --confirm\n"


def begin(settings: Sequence[str], most_boots: int) -> str:
    """Return the guest's command that begins a campaign."""
    wanted = " ".join(f"--only '{setting}'" for setting in settings)
    return f"initadvisor trial start --yes --max-boots {most_boots} {wanted}\n"
