"""Real generators build with a configuration that is not installed, and leave no trace of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.apply import plan as apply_plan
from initadvisor.apply.build import staged_images
from initadvisor.apply.plan import ApplyRequest, plan_apply
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError, ProgramError
from initadvisor.core.settings import Setting
from initadvisor.generators import InstalledImage, dracut, initramfs_tools, mkinitcpio, running
from initadvisor.generators.rewriting import texts_of
from initadvisor.host import Host
from initadvisor.image.contents import Verdict
from initadvisor.image.difference import ImageDifference, ImageListing, difference
from initadvisor.image.scan import scan
from initadvisor.lab.observing import Unseen
from initadvisor.target import target as target_module
from tests.fakes.installed import InstalledRunner
from tests.fixtures.cache import hard_linked_copy
from tests.fixtures.debian import RELEASED, Suite, debian
from tests.fixtures.mkinitcpio import mkinitcpio_system
from tests.fixtures.namespace import Tree

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import ModuleType


pytestmark = pytest.mark.tools

_DRACUT = {
    "/etc/dracut.conf": "# empty\n",
    "/etc/dracut.conf.d/small.conf": 'dracutmodules="bash"\nno_kernel=yes\nreproducible=yes\n',
    "/etc/dracut.conf.d/compress.conf": 'compress="gzip"\n',
}
_MORE = {"/etc/dracut.conf.d/more/own.conf": 'install_items+=" /etc/debian_version "\n'}
_INITRAMFS_TOOLS = {
    "/etc/initramfs-tools/initramfs.conf": "MODULES=list\nBUSYBOX=auto\nCOMPRESS=gzip\n",
    "/etc/initramfs-tools/modules": "loop\n",
    "/etc/initramfs-tools/conf.d/own": "RESUME=none\n",
    "/etc/initramfs-tools/hooks/own": (
        '#!/bin/sh\n[ "$1" = prereqs ] || echo "ours" > "$DESTDIR/own-hook"\n'
    ),
    "/etc/initramfs-tools/scripts/local-top/own": '#!/bin/sh\n[ "$1" = prereqs ] && exit\n',
}


@pytest.fixture(autouse=True)
def _installed_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unpacked tree has no process 1; that such places are refused is another test's matter."""
    monkeypatch.setattr(running, "require_installed_system", lambda _host, _name: None)


def system(tree: Tree, tmp_path: Path, files: Mapping[str, str]) -> Host:
    """Return a copy of a distribution with configuration files of its own."""
    root = tmp_path / "system"
    hard_linked_copy(tree.root, root)
    for name, text in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # it is a link to a file of the cache
        path.write_text(text)
        path.chmod(0o755 if text.startswith("#!") else 0o644)
    work = tmp_path / "staging"
    work.mkdir()
    copy = Tree(root=root, release=tree.release)
    return Host(root=root, runner=InstalledRunner(tree=copy, work=work))


def read(path: Path) -> tuple[Codec, ImageListing]:
    """Return an image's codec and what is in it."""
    listing = ImageListing()
    with path.open("rb") as file:
        return scan(file, listing=listing).main.codec, listing


def snapshot(root: Path) -> set[tuple[str, int, int]]:
    """Return every file of the system's /etc and /boot as it is."""
    return {
        (str(path), path.lstat().st_mtime_ns, path.lstat().st_ino)
        for directory in ("etc", "boot")
        for path in (root / directory).rglob("*")
    }


def compare_builds(
    host: Host, generator: ModuleType, release: str, setting: Setting, name: str = "/boot/image"
) -> Path:
    """Build with today's and with the new configuration; return the directory of both."""
    assert isinstance(host.runner, InstalledRunner)
    work = host.runner.work
    image = InstalledImage(path=host.path(name), kernel_release=release)
    before = snapshot(host.root)
    edits = generator.rewritten(host, release, setting)
    texts = texts_of(edits)
    assert texts
    generator.build(host, image, work / "control", {})
    generator.build(host, image, work / "new", texts)
    assert snapshot(host.root) == before
    assert sorted(path.name for path in work.iterdir()) == ["control", "new"]
    (control_codec, control), (codec, new) = read(work / "control"), read(work / "new")
    assert control_codec is Codec.GZIP
    assert codec is setting.codec
    noted = generator.noted_inside(host, texts)
    assert difference(control, new, ignored=noted) == ImageDifference()
    assert len(control.paths()) > 50
    return work


@pytest.mark.parametrize("suite", RELEASED)
def test_dracut_builds_the_same_content_with_a_private_configuration(
    suite: Suite, tmp_path: Path
) -> None:
    host = system(debian(suite), tmp_path, _DRACUT)
    assert isinstance(host.runner, InstalledRunner)
    compare_builds(host, dracut, host.runner.tree.release, Setting(Codec.ZSTD))


@pytest.mark.parametrize("suite", RELEASED)
def test_mkinitramfs_builds_the_same_content_with_a_private_configuration(
    suite: Suite, tmp_path: Path
) -> None:
    host = system(debian(suite), tmp_path, _INITRAMFS_TOOLS)
    assert isinstance(host.runner, InstalledRunner)
    release = host.runner.tree.release
    host.path("/etc/initramfs-tools/conf.d/dangling").symlink_to("../../../usr/share/none")
    work = compare_builds(host, initramfs_tools, release, Setting(Codec.ZSTD))
    _, control = read(work / "control")
    assert b"own-hook" in control.paths()
    assert b"scripts/local-top/own" in control.paths()
    assert b"conf/conf.d/own" in control.paths()
    # It is what the command that Debian's update-initramfs runs gives.
    own = InstalledRunner(tree=host.runner.tree, work=work)
    own.run(["mkinitramfs", "-o", work / "installed", release], timeout_s=60)
    _, installed = read(work / "installed")
    assert difference(installed, control) == ImageDifference()


def test_mkinitcpio_builds_the_same_content_with_a_private_configuration(tmp_path: Path) -> None:
    files = {
        "/etc/mkinitcpio.conf": "MODULES=()\nHOOKS=(base)\nCOMPRESSION=gzip\n",
        "/etc/mkinitcpio.conf.d/ours.conf": "BINARIES=(cmp)\n",
    }
    tree = mkinitcpio_system()
    host = system(tree, tmp_path, files)
    name = "/boot/initramfs-linux.img"  # a preset makes it
    work = compare_builds(host, mkinitcpio, tree.release, Setting.parse("xz -1"), name)
    assert isinstance(host.runner, InstalledRunner)
    assert all(f"/boot/vmlinuz-{tree.release}" in call for call in host.runner.calls)
    _, new = read(work / "new")
    assert b"usr/bin/cmp" in new.paths()


def test_dracut_falls_back_to_what_was_foreseen_where_a_compressor_is_missing(
    tmp_path: Path,
) -> None:
    host = system(debian(Suite.BOOKWORM), tmp_path, _DRACUT)
    assert isinstance(host.runner, InstalledRunner)
    work, release = host.runner.work, host.runner.tree.release
    texts = {host.path("/etc/dracut.conf.d/compress.conf"): 'compress="no-such-program -9"\n'}
    foreseen = dracut.configured(host, release, texts=texts)
    image = InstalledImage(path=host.path("/boot/image"), kernel_release=release)
    dracut.build(host, image, work / "new", texts)
    assert "no-such-program is not installed" in foreseen.warnings[0]
    assert read(work / "new")[0] is foreseen.setting.codec


def test_a_generator_that_stops_leaves_nothing(tmp_path: Path) -> None:
    host = system(debian(Suite.BOOKWORM), tmp_path, _INITRAMFS_TOOLS)
    assert isinstance(host.runner, InstalledRunner)
    work, release = host.runner.work, host.runner.tree.release
    hook = host.path("/etc/initramfs-tools/hooks/own")
    hook.write_text("#!/bin/sh\nexit 7\n")
    image = InstalledImage(path=host.path("/boot/image"), kernel_release=release)
    with pytest.raises(ProgramError):
        initramfs_tools.build(host, image, work / "new", {})
    assert list(work.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "suite", "added"),
    [
        ("zstd -19", Suite.BOOKWORM, ()),
        ("lz4", Suite.BOOKWORM, ()),
        ("xz -0", Suite.TRIXIE, ("--add-confdir", "more")),
        ("xz -0", Suite.TRIXIE, ("--add-confdir", "no-xattr")),
    ],
)
def test_a_plan_for_a_real_system_is_built_and_found_right(
    text: str,
    suite: Suite,
    added: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some versions' kernel-install plugin has dracut read one more directory."""
    host = system(debian(suite), tmp_path, {**_DRACUT, **_MORE})
    assert isinstance(host.runner, InstalledRunner)
    work, tree = host.runner.work, host.runner.tree
    installed = tree.root / f"boot/initrd.img-{tree.release}"
    host.runner.run(["dracut", *added, "--kver", tree.release, work / "installed"], timeout_s=60)
    (work / "installed").rename(installed)
    monkeypatch.setenv("CACHE_DIRECTORY", str(work))
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.setattr(apply_plan, "require_installed_system", lambda _host, _name: None)
    monkeypatch.setattr(apply_plan, "recommend", _not_weighed)
    monkeypatch.setattr(target_module, "detect_generator", lambda _host: dracut)
    before = snapshot(host.root)
    plan = plan_apply(host, ApplyRequest(setting=Setting.parse(text)), observer=Unseen())
    with staged_images(host, dracut, plan, observer=Unseen()) as staged:
        (image,) = staged
        assert image.codec is Setting.parse(text).codec
        assert image.lint.verdict is Verdict.OK
        assert image.updates == ImageDifference()
    assert snapshot(host.root) == before
    assert not (work / "apply").exists()


def _not_weighed(*_args: object, **_named: object) -> None:
    msg = "nothing is weighed"
    raise InitadvisorError(msg)
