"""Debian's makepkg builds the package for Arch, and a real pacman installs and removes it."""

from __future__ import annotations

import ast
import io
import json
import os
import re
import shutil
import sys
import tarfile
from typing import TYPE_CHECKING

import pytest

from tests.fixtures.arch_package import PROJECT, Installed, built_package, information_of
from tests.fixtures.checkout import ROOT, SYSTEM_PYTHON
from tests.fixtures.debian import Suite, debian
from tests.fixtures.generated import dracut_image
from tests.fixtures.mkinitcpio import mkinitcpio_source
from tests.fixtures.namespace import FailedInside, Tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.tools, pytest.mark.xdist_group("arch-package")]

_PACKAGES = {
    "jinja2": "python-jinja",
    "markupsafe": "python-jinja",
    "systemd": "python-systemd",
}
"""Modules whose package is not called python- and their name."""

_LIBRARIES = (
    *("python3", "python3-click", "python3-lz4", "python3-numpy", "python3-psutil"),
    *("python3-pyudev", "python3-rich", "python3-systemd"),
    "python3-zstandard",
)
"""The oldest that are supported; without lzo, which not every distribution has."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package."""
    return built_package(tmp_path_factory.mktemp("arch"))


@pytest.fixture(scope="module")
def information(built: Path) -> dict[str, list[str]]:
    """What the package says of itself."""
    return information_of(built)


MKINITCPIO_TRIGGERS = (
    "usr/lib/initcpio/install/any",
    "usr/lib/firmware/any.bin",
    "usr/lib/modules/9.9.9-9/extramodules/",
    "usr/src/any-1/dkms.conf",
    "usr/lib/systemd/systemd",
    "usr/bin/cryptsetup",
    "usr/bin/lvm",
)
"""Of each kind one path for which mkinitcpio's own hook has images made anew."""


@pytest.fixture
def root(tmp_path: Path, built: Path, information: dict[str, list[str]]) -> Installed:
    """A root where nothing is installed yet."""
    return Installed(debian(Suite.BOOKWORM), tmp_path / "root", built, information["depend"])


@pytest.fixture(scope="module")
def system(
    tmp_path_factory: pytest.TempPathFactory, built: Path, information: dict[str, list[str]]
) -> Tree:
    """A Debian with its own Python, where the package is installed."""
    debian_with_python = debian(Suite.BOOKWORM, also=_LIBRARIES)
    root = tmp_path_factory.mktemp("system") / "root"
    Installed(debian_with_python, root, built, information["depend"]).install()
    return Tree(root=root, release=debian_with_python.release)


def test_it_is_this_version(information: dict[str, list[str]]) -> None:
    assert information["pkgname"] == ["initadvisor"]
    assert information["pkgver"] == [f"{PROJECT['version']}-1"]
    assert information["arch"] == ["any"]
    assert information["license"] == ["GPL-3.0-or-later"]


def test_its_page_is_in_it(information: dict[str, list[str]], built: Path) -> None:
    [url] = information["url"]
    with tarfile.open(built) as package:
        assert url.removeprefix("file:///") in package.getnames()


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield the modules of the first level that a file imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def test_every_module_that_is_imported_has_its_package(
    information: dict[str, list[str]],
) -> None:
    modules: set[str] = set()
    for file in (ROOT / "initadvisor").rglob("*.py"):
        modules |= set(imported(ast.parse(file.read_text(encoding="utf-8"))))
    foreign = modules - set(sys.stdlib_module_names) - {"initadvisor", "_typeshed"}
    needed = {_PACKAGES.get(name, f"python-{name}") for name in foreign}
    optional = {line.partition(":")[0] for line in information["optdepend"]}
    assert needed <= {*information["depend"], *optional}
    assert {name for name in information["depend"] if name.startswith("python-")} <= needed


def test_what_it_consists_of_is_root_s_and_belongs_there(built: Path) -> None:
    with tarfile.open(built) as archive:
        members = [member for member in archive if not member.name.startswith(".")]
        assert {(member.uid, member.gid) for member in members} == {(0, 0)}
        assert {member.name.partition("/")[0] for member in members} == {"etc", "usr"}
        # Which would have every image made anew.
        assert not [each.name for each in members if each.name.startswith("usr/lib/initcpio")]
        for member in members:
            assert member.issym() or member.mode & 0o022 == 0, member.name
            assert "/usr/local" not in member.name
            file = archive.extractfile(member) if member.isfile() else None
            assert str(built.parent).encode() not in (file.read() if file else b""), member.name


def test_it_is_installed_whole_and_removed_whole(root: Installed) -> None:
    said = root.install()
    assert "initadvisor doctor" in said
    assert "error" not in said
    assert re.search(r"initadvisor: \d+ total files, 0 altered files", root.pacman("-Qkk"))
    new = root.files() - root.before
    assert {
        "etc/initcpio/post/initadvisor",
        "usr/bin/initadvisor",
        "usr/lib/initadvisor/disarm",
        "usr/lib/initadvisor/queue",
        "usr/lib/kernel/install.d/05-initadvisor.install",
        "usr/lib/kernel/install.d/95-initadvisor.install",
        "usr/lib/systemd/system/initadvisor-measure.timer",
        "usr/lib/systemd/system/timers.target.wants/initadvisor-settle.timer",
        "usr/lib/systemd/system-preset/90-initadvisor.preset",
        "usr/share/bash-completion/completions/initadvisor",
        "usr/share/fish/vendor_completions.d/initadvisor.fish",
        "usr/share/libalpm/hooks/05-initadvisor-disarm.hook",
        "usr/share/libalpm/hooks/95-initadvisor-added.hook",
        "usr/share/libalpm/hooks/95-initadvisor-removed.hook",
        "usr/share/licenses/initadvisor/LICENSE",
        "usr/share/man/man1/initadvisor.1.gz",
        "usr/share/man/man5/initadvisor.toml.5.gz",
        "usr/share/zsh/site-functions/_initadvisor",
    } <= new
    programs = {name for name in new if os.access(root.root / name, os.X_OK)}
    programs = {name for name in programs if (root.root / name).is_file()}
    assert programs == {
        *(f"usr/bin/{name}" for name in PROJECT["scripts"]),
        "usr/lib/initadvisor/disarm",
        "usr/lib/initadvisor/queue",
        "etc/initcpio/post/initadvisor",
        "usr/lib/kernel/install.d/05-initadvisor.install",
        "usr/lib/kernel/install.d/95-initadvisor.install",
    }
    first = (root.root / "usr/bin/initadvisor").read_text().splitlines()[0]
    assert first == f"#!{SYSTEM_PYTHON}"
    root.remove()
    assert root.files() - root.before == set()


def package_of(root: Installed, name: str, *paths: str) -> Path:
    """Make a package of files, and of directories where a path ends with a slash."""
    info = f"pkgname = {name}\npkgver = 1-1\npkgdesc = {name}\narch = any\nsize = 0\n"
    package = root.root.parent / f"{name}-1.pkg.tar"
    with tarfile.open(package, "w") as archive:
        for path in (".PKGINFO", *paths):
            member = tarfile.TarInfo(path.rstrip("/"))
            content = info if path == ".PKGINFO" else ""
            member.type = tarfile.DIRTYPE if path.endswith("/") else tarfile.REGTYPE
            member.size, member.mode = len(content), 0o755
            archive.addfile(member, io.BytesIO(content.encode()))
    return package


@pytest.mark.parametrize("way", ["--upgrade", "--remove"])
def test_what_has_mkinitcpio_make_images_anew_is_noted(root: Installed, way: str) -> None:
    """With its own hook and that hook's script; what it calls only says so."""
    root.install()
    for path in ("libalpm/hooks/90-mkinitcpio-install.hook", "libalpm/scripts/mkinitcpio"):
        target = root.root / "usr/share" / path
        target.parent.mkdir(exist_ok=True)
        shutil.copy(mkinitcpio_source() / path, target)
        target.chmod(0o755)
    maker = root.root / "usr/bin/mkinitcpio"
    maker.write_text('#!/bin/sh\necho "called: mkinitcpio $*"\n')
    maker.chmod(0o755)
    modules, queue = root.root / "usr/lib/modules/9.9.9-9", root.root / "var/lib/initadvisor/queue"
    modules.mkdir(parents=True)
    (modules / "pkgbase").write_text("linux\n")
    presets = root.root / "etc/mkinitcpio.d"
    presets.mkdir()
    (presets / "linux.preset").write_text("PRESETS=()\n")
    for number, path in enumerate(MKINITCPIO_TRIGGERS):
        name = f"package{number}"
        if not path.endswith("/"):
            (root.root / path).unlink(missing_ok=True)
        said = root.pacman("--upgrade", *root.assumed, package_of(root, name, path))
        if way == "--remove":
            shutil.rmtree(queue, ignore_errors=True)
            said = root.pacman("--remove", *root.assumed, name)
        assert "called: mkinitcpio -" in said, path
        assert [note.name for note in queue.iterdir()] == ["image-rebuilt"], path
        shutil.rmtree(queue)


def test_a_kernel_that_comes_or_goes_is_noted(root: Installed) -> None:
    """Hooks are called by what they are installed as; see test_hooks.py for all that they do."""
    root.install()
    package = package_of(root, "kernel", "usr/lib/modules/9.9.9-9/vmlinuz")
    queue = root.root / "var/lib/initadvisor/queue"
    root.pacman("--upgrade", *root.assumed, package)
    assert [note.name for note in queue.iterdir()] == ["kernel-added@9.9.9-9"]
    root.pacman("--remove", *root.assumed, "kernel")
    assert {note.name for note in queue.iterdir()} == {
        "kernel-added@9.9.9-9",
        "kernel-removed@9.9.9-9",
    }


def test_state_stays_and_is_told_of(root: Installed) -> None:
    root.install()
    state = root.root / "var/lib/initadvisor"
    state.mkdir(parents=True)
    (state / "measurements.db").touch()
    said = root.remove()
    assert "Measurements stay in /var/lib/initadvisor" in said
    assert {name for name in root.files() - root.before if "initadvisor" in name} == {
        "var/lib/initadvisor",
        "var/lib/initadvisor/measurements.db",
    }


def test_nothing_stays_armed_or_enabled(root: Installed) -> None:
    """Programs are stand-ins: nothing is armed here, and no systemd runs."""
    root.install()
    state = root.root / "var/lib/initadvisor"
    state.mkdir(parents=True)
    (state / "trial-entry").write_text("systemd-boot\n")
    for name in ("initadvisor", "systemctl"):
        command = root.root / "usr/bin" / name
        command.unlink(missing_ok=True)  # it may be a link to a file that others use
        command.write_text(f'#!/bin/sh\necho "called: {name} $*"\n')
        command.chmod(0o755)
    said = root.remove()
    withdrawn, turned_off = (
        said.index("called: initadvisor settle --withdraw\n"),
        said.index("called: systemctl --quiet disable --now initadvisor-measure.timer"),
    )
    assert withdrawn < turned_off


def test_an_installed_one_reads_an_image(system: Tree, tmp_path: Path) -> None:
    image = dracut_image(debian(Suite.BOOKWORM), "zstd")
    shutil.copy(image, tmp_path / "image")
    said = system.run(["initadvisor", "inspect", "/mnt/image", "--json"], work=tmp_path)
    assert json.loads(said)["segments"][-1]["codec"] == "zstd"


def test_an_installed_one_completes(system: Tree, tmp_path: Path) -> None:
    """With the oldest click that is supported, too."""
    script = (
        ". /usr/share/bash-completion/completions/initadvisor; COMP_WORDS=(initadvisor recom);"
        " COMP_CWORD=1; _initadvisor initadvisor; echo ${COMPREPLY[@]}"
    )
    assert system.run(["bash", "-c", script], work=tmp_path) == b"recommend\n"


def test_an_installed_one_knows_what_it_lacks(system: Tree, tmp_path: Path) -> None:
    """The doctor of a machine without an image, and without the module lzo."""
    with pytest.raises(FailedInside):
        system.run(["initadvisor", "doctor"], work=tmp_path)
    script = "initadvisor doctor --json; test $? = 1"
    findings = json.loads(system.run(["sh", "-c", script], work=tmp_path))["findings"]
    stopped = {f["topic"]: f["text"] for f in findings if f["grade"] == "in-the-way"}
    assert "but no image of it" in stopped["generator"]
    noted = [(f["text"], f["advice"]) for f in findings if f["grade"] == "worth-knowing"]
    missing = "cannot read lzop images: the Python module lzo is not installed"
    assert (missing, "sudo apt install --no-install-recommends python3-lzo") in noted
    python = next(f["text"] for f in findings if f["topic"] == "python" and f["grade"] == "ok")
    assert "click 8.1.3" in python
    # Packages are unpacked here, not configured: nothing chose among numpy's libraries.
    assert "the Python module numpy cannot be loaded" in stopped["python"]
    assert "libblas" in stopped["python"]
    kernel = [f["text"] for f in findings if f["topic"] == "kernel"]
    assert any("unpacks" in text for text in kernel)
