"""A machine whose dracut does what a test wants, on which settings can be applied."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import TYPE_CHECKING

from initadvisor.generators import private
from initadvisor.image.cpio import CpioWriter
from initadvisor.model.codec import Codec
from initadvisor.model.errors import InitadvisorError, LostVMError
from initadvisor.model.estimate import Estimate
from initadvisor.model.setting import Setting
from initadvisor.vm.engines import NoEngineError
from initadvisor.workflow import apply_plan, proving
from initadvisor.workflow import built as built_images
from tests.fakes.boot_loader import FakeLoader
from tests.fakes.compressors import COMPRESSORS
from tests.fakes.generators import FakeGenerators
from tests.fixtures.hosts import RELEASE, Machine

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from tests.fakes.generators import Ordered

OTHER = "5.10.0-9-amd64"
CONFIG = "/etc/dracut.conf.d/own.conf"
IMAGE = f"/boot/initramfs-{RELEASE}.img"
BOOT = "11111111-1111-4111-8111-111111111111"
_KERNEL = "CONFIG_BLK_DEV_INITRD=y\nCONFIG_RD_GZIP=y\nCONFIG_RD_ZSTD=y\nCONFIG_RD_LZ4=y\n"
_PROGRAMS = ("bzip2", "cat", "dracut", "gzip", "lz4", "lzma", "lzop", "xz", "zstd")


def image(codec: Codec, *, parameters: str = "", extra: str = "") -> bytes:
    """Return an image as dracut makes it, with its command line inside."""
    file = io.BytesIO()
    with CpioWriter(file) as writer:
        for directory in ("usr", "usr/lib", "usr/lib/dracut"):
            writer.directory(directory)
        writer.file("usr/lib/dracut/build-parameter.txt", parameters.encode())
        writer.file("init", b"the same line\n" * 3000)
        if extra:
            writer.file(extra, b"extra")
    return COMPRESSORS[codec](file.getvalue())


def ordered_codec(order: Ordered) -> Codec:
    """Return what the configuration asks for."""
    text = "".join(order.config.values())
    return next(codec for codec in Codec if f"compress={codec}" in text.replace('"', ""))


def built(order: Ordered) -> None:
    """Build what was ordered."""
    order.image.write_bytes(image(ordered_codec(order), parameters=" ".join(order.argv)))


def unlike(change: Callable[[Ordered], bytes]) -> Callable[[Ordered], None]:
    """Return what builds with gzip, as today, right, and anything else with a change."""

    def make(order: Ordered) -> None:
        if ordered_codec(order) is Codec.GZIP:
            built(order)
        else:
            order.image.write_bytes(change(order))

    return make


def make_machine(root: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return a machine with two kernels and a rescue image, all gzip; generators may be run."""
    files = {
        "/usr/lib/dracut/dracut-version.sh": "DRACUT_VERSION=059\n",
        CONFIG: "# ours\ncompress=gzip\n",
        f"/boot/config-{RELEASE}": _KERNEL,
        f"/lib/modules/{RELEASE}/config": _KERNEL,
        f"/lib/modules/{OTHER}/config": _KERNEL,
        "/proc/self/mountinfo": "22 1 0:22 / / rw - tmpfs tmpfs rw\n",
        **{f"/usr/bin/{name}": "#!/bin/sh\n" for name in _PROGRAMS},
    }
    for name, text in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    for name in (RELEASE, OTHER, "0-rescue-1"):
        (root / f"boot/initramfs-{name}.img").write_bytes(image(Codec.GZIP, parameters="--kver"))
    monkeypatch.setenv("CACHE_DIRECTORY", str(root / "cache"))
    monkeypatch.setenv("STATE_DIRECTORY", str(root / "state"))
    unpacks(monkeypatch)
    for module in (private, apply_plan):
        monkeypatch.setattr(module, "require_installed_system", lambda _host, _name: None)
    return Machine(root=root, runner=FakeGenerators(programs=_PROGRAMS, make=built))


def advice(machine: Machine, setting: Setting, outcome: object, *, saving_ms: float = 5) -> object:
    """Return what ``apply`` reads of a recommendation: half of today's size."""
    low, high = saving_ms - 4, saving_ms + 4
    saving = Estimate(mean=saving_ms, low=low, high=high, source="a test")
    path = machine.root / f"boot/initramfs-{RELEASE}.img"
    today = path.stat().st_size
    return SimpleNamespace(
        image=path,
        baseline=Setting(Codec.GZIP),
        evidence="bench",
        unpacked_bytes=42_000,
        decision=SimpleNamespace(setting=setting, outcome=outcome),
        rows=(
            SimpleNamespace(setting=setting, size_bytes=today // 2, saving_ms=saving),
            SimpleNamespace(setting=Setting(Codec.GZIP), size_bytes=today, saving_ms=saving),
        ),
    )


def nothing_weighed(*_args: object, **_named: object) -> None:
    """Have no figures: applying needs none."""
    msg = "nothing is weighed"
    raise InitadvisorError(msg)


def snapshot(machine: Machine) -> dict[str, bytes]:
    """Return everything that is installed."""
    return {
        str(path): path.read_bytes()
        for directory in ("etc", "boot")
        for path in (machine.root / directory).rglob("*")
        if path.is_file()
    }


def make_appliable(
    root: Path, monkeypatch: pytest.MonkeyPatch, outcome: object = "switch"
) -> tuple[Machine, FakeLoader]:
    """Return such a machine with a boot loader, a kernel that unpacks images, and advice: zstd."""
    machine = make_machine(root, monkeypatch)
    known = advice(machine, Setting(Codec.ZSTD), outcome)
    monkeypatch.setattr(apply_plan, "recommend", lambda *_args, **_named: known)
    for module in (apply_plan, proving):
        monkeypatch.setattr(module, "require_boot_time_unit", lambda _host: None)
    path = root / "proc/sys/kernel/random/boot_id"
    path.parent.mkdir(parents=True)
    path.write_text(f"{BOOT}\n")
    loader = FakeLoader(image=IMAGE)
    loader.use(monkeypatch)
    return machine, loader


def unpacks(monkeypatch: pytest.MonkeyPatch, *problems: str) -> None:
    """Have a kernel unpack everything, or refuse for some reasons."""
    found = SimpleNamespace(problems=problems)
    monkeypatch.setattr(built_images, "verify", lambda _host, _path, **_named: found)
    monkeypatch.setattr(built_images, "require_verifying", lambda _host, _wanted: None)


def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no virtual machine, which shows before anything is built."""

    def fail(release: str | None) -> object:
        msg = f"no virtual machine for {release}"
        raise NoEngineError(msg, hint="install QEMU")

    monkeypatch.setattr(
        built_images, "require_verifying", lambda _host, wanted: fail(wanted.release)
    )
    monkeypatch.setattr(built_images, "verify", lambda _host, _path, *, release: fail(release))


def lost_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a virtual machine that is lost when it is asked."""

    def fail(_host: object, _path: object, *, release: str) -> object:
        msg = f"the virtual machine for {release} was lost"
        raise LostVMError(msg)

    monkeypatch.setattr(built_images, "verify", fail)
