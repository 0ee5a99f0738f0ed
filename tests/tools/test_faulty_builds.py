"""Real generators whose compressor does it wrong: whatever they make of that is found out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from initadvisor.apply import plan as apply_plan
from initadvisor.apply.build import staged_images
from initadvisor.apply.plan import ApplyRequest, plan_apply
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import ProgramError, UnsafeError
from initadvisor.core.settings import Setting
from initadvisor.generators import dracut, initramfs_tools, mkinitcpio, running
from initadvisor.host import Host
from initadvisor.lab.observing import Unseen
from initadvisor.target import target as target_module
from tests.fakes.installed import InstalledRunner
from tests.fixtures.cache import hard_linked_copy
from tests.fixtures.debian import Suite, debian
from tests.fixtures.dracut_machine import nothing_weighed
from tests.fixtures.mkinitcpio import mkinitcpio_system
from tests.fixtures.namespace import Tree
from tests.fixtures.payload import main_payload

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from initadvisor.apply.plan_values import ApplyPlan, StagedImage

pytestmark = pytest.mark.tools

CONFIG = {
    dracut: {
        "/etc/dracut.conf": "# empty\n",
        "/etc/dracut.conf.d/small.conf": (
            'dracutmodules="bash"\nno_kernel=yes\nreproducible=yes\ncompress="gzip"\n'
        ),
    },
    initramfs_tools: {
        "/etc/initramfs-tools/initramfs.conf": "MODULES=list\nBUSYBOX=auto\nCOMPRESS=gzip\n",
        "/etc/initramfs-tools/conf.d/own": "RESUME=none\n",
    },
    mkinitcpio: {
        "/etc/mkinitcpio.conf": "MODULES=()\nHOOKS=(base)\nCOMPRESSION=gzip\n",
        "/boot/initramfs-linux.img": "the installed image\n",
    },
}

HOOKS = {
    dracut: (
        "/usr/lib/dracut/modules.d/99own/module-setup.sh",
        'check() { true; }\ninstall() { echo "own $INITADVISOR_REBUILDING" > "$initdir/own"; }\n',
    ),
    initramfs_tools: (
        "/etc/initramfs-tools/hooks/own",
        '#!/bin/sh\n[ "$1" = prereqs ] || echo "own $INITADVISOR_REBUILDING" > "$DESTDIR/own"\n',
    ),
    mkinitcpio: (
        "/etc/initcpio/install/own",
        'build() { echo "own $INITADVISOR_REBUILDING" > "$BUILDROOT/own"; }\n',
    ),
}
"""What packages and users add to an image, by a generator's own means."""

REAL = "/usr/bin/zstd.real"
FAULTS = {
    "fails": "exit 1",
    "is killed": "kill -9 $$",
    "is cut": f'{REAL} "$@" | head -c 5000',
    "writes nothing": "exec cat > /dev/null",
    "writes another format": "exec gzip -c",
}


@dataclass(frozen=True, kw_only=True)
class System:
    """An unpacked distribution with one of the generators."""

    host: Host
    generator: ModuleType
    work: Path

    def plan(self) -> ApplyPlan:
        """Return the plan to apply zstd where today's setting is gzip."""
        plan = plan_apply(self.host, ApplyRequest(setting=Setting(Codec.ZSTD)), observer=Unseen())
        assert plan.today.setting.codec is Codec.GZIP
        assert len(plan.rebuilt) == 1
        return plan

    def staged(self, plan: ApplyPlan) -> tuple[StagedImage, ...]:
        """Build; whatever comes of it, nothing is left."""
        try:
            with staged_images(self.host, self.generator, plan, observer=Unseen()) as found:
                return found
        finally:
            assert {path.name for path in self.work.iterdir()} <= {"locks", "runs"}

    def add_hook(self) -> None:
        """Have the generator put into the image what it is told of us."""
        name, text = HOOKS[self.generator]
        path = self.host.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        for config in ("/etc/dracut.conf.d/small.conf", "/etc/mkinitcpio.conf"):
            if (file := self.host.path(config)).exists():
                changed = (
                    file.read_text().replace('"bash"', '"bash own"').replace("base)", "base own)")
                )
                file.unlink()
                file.write_text(changed)

    def replace_compressor(self, commands: str) -> None:
        """Put a script in the place of zstd."""
        program = self.host.path("/usr/bin/zstd")
        program.rename(self.host.path(REAL))
        program.write_text(f"#!/bin/sh\n{commands}\n")
        program.chmod(0o755)


@pytest.fixture(params=list(CONFIG), ids=lambda generator: str(generator.NAME))
def system(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> System:
    """A copy of a distribution whose generator works, so far."""
    generator: ModuleType = request.param
    tree = mkinitcpio_system() if generator is mkinitcpio else debian(Suite.BOOKWORM)
    return _made(generator, tree, tmp_path, monkeypatch)


@pytest.fixture
def with_hooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> System:
    """A Debian 13 whose dracut runs the scripts of other packages with each image it has made.

    This one leaves nothing of the image.
    """
    found = _made(dracut, debian(Suite.TRIXIE), tmp_path, monkeypatch)
    path = found.host.path("/etc/initramfs/post-update.d/own")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('#!/bin/sh\necho >"$2"\n')
    path.chmod(0o755)
    return found


def _made(
    generator: ModuleType, tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> System:
    root, work = tmp_path / "system", tmp_path / "staging"
    hard_linked_copy(tree.root, root)
    work.mkdir()
    files = {f"/boot/initrd.img-{tree.release}": "the installed image\n", **CONFIG[generator]}
    for name, text in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # it is a link to a file of the cache
        path.write_text(text)
    monkeypatch.setenv("CACHE_DIRECTORY", str(work))
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    for module in (apply_plan, running):  # an unpacked tree has no process 1
        monkeypatch.setattr(module, "require_installed_system", lambda _host, _name: None)
    monkeypatch.setattr(apply_plan, "recommend", nothing_weighed)
    monkeypatch.setattr(target_module, "detect_generator", lambda _host: generator)
    runner = InstalledRunner(tree=Tree(root=root, release=tree.release), work=work)
    return System(host=Host(root=root, runner=runner), generator=generator, work=work)


def test_a_plan_is_built_by_each_of_them(system: System) -> None:
    (image,) = system.staged(system.plan())
    assert image.codec is Codec.ZSTD
    assert "neither a cpio archive" in image.unreadable


def test_hooks_are_told_that_it_is_our_doing(system: System) -> None:
    system.add_hook()
    with staged_images(system.host, system.generator, system.plan(), observer=Unseen()) as (image,):
        assert b"own 1\n" in main_payload(image.staged)


def test_no_script_of_others_is_run_with_what_is_built(with_hooks: System) -> None:
    """Debian's systemd-boot would have the default entry load it."""
    assert "post-update.d" in (with_hooks.host.read_text("/usr/bin/dracut") or "")
    (image,) = with_hooks.staged(with_hooks.plan())
    assert image.codec is Codec.ZSTD


@pytest.mark.parametrize("fault", FAULTS)
def test_a_compressor_that_does_it_wrong_is_found_out(system: System, fault: str) -> None:
    """Some generators stop, others install what they have with exit status 0."""
    plan = system.plan()
    system.replace_compressor(FAULTS[fault])
    with pytest.raises((ProgramError, UnsafeError)) as caught:
        system.staged(plan)
    if fault == "writes another format":
        assert "with gzip, not with zstd" in caught.value.message
    elif isinstance(caught.value, UnsafeError):
        # Where nothing is written, mkinitcpio's image ends with the part that is never compressed.
        early_only = system.generator is mkinitcpio and fault == "writes nothing"
        words = "with cat, not with zstd" if early_only else "wrote no whole image"
        assert words in caught.value.message


def test_a_compressor_that_goes_away_meanwhile_is_found_out(system: System) -> None:
    """Each of them falls back to another codec with exit status 0."""
    plan = system.plan()
    system.host.path("/usr/bin/zstd").unlink()
    fallback = "cat" if system.generator is mkinitcpio else "gzip"
    with pytest.raises(UnsafeError, match=f"with {fallback}, not with zstd"):
        system.staged(plan)
    with pytest.raises(UnsafeError, match=r"not configuring .* for zstd"):
        system.plan()
