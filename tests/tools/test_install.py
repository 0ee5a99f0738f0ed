"""``make install`` puts everything where it is looked for, and ``make uninstall`` takes it away."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.fixtures.checkout import ROOT, SYSTEM_PYTHON, copied_checkout, made
from tests.fixtures.waiting import HANGS_S

pytestmark = [pytest.mark.tools, pytest.mark.xdist_group("install")]

HOOKS = {
    "pacman": ("usr/share/libalpm/hooks", "etc/pacman.d/hooks"),
    "mkinitcpio": ("etc/initcpio/post", "etc/initcpio/post"),
    "kernel-install": ("usr/lib/kernel/install.d", "etc/kernel/install.d"),
    "debian": ("etc/kernel/postinst.d", "etc/kernel/postinst.d"),
}
"""Where a hook of each is with the prefix /usr, and with another."""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with a wheel."""
    directory = copied_checkout(tmp_path_factory.mktemp("checkout"))
    (directory / "build/lib/initadvisor").mkdir(parents=True)
    (directory / "build/lib/initadvisor/stale.py").touch()
    made(directory, "wheel")
    return directory


def files(root: Path) -> dict[str, Path]:
    """Return every file below a directory by its relative path."""
    return {str(path.relative_to(root)): path for path in root.rglob("*") if not path.is_dir()}


def installed(checkout: Path, root: Path, prefix: str, *words: str) -> dict[str, Path]:
    """Install everything into an empty root."""
    made(checkout, "install", f"DESTDIR={root}", f"PREFIX={prefix}", *words)
    return files(root)


@pytest.mark.parametrize("prefix", ["/usr", "/usr/local", "/opt/initadvisor"])
def test_everything_is_installed_and_can_be_read_by_all(
    checkout: Path, tmp_path: Path, prefix: str
) -> None:
    before = os.umask(0o077)
    try:
        found = installed(checkout, tmp_path, prefix)
    finally:
        os.umask(before)
    below = {name.removeprefix(f"{prefix[1:]}/") for name in found}
    assert {f"share/man/man{page.suffix[1:]}/{page.name}" for page in ROOT.glob("man/*")} <= below
    units = [unit for kind in ("service", "timer") for unit in ROOT.glob(f"systemd/*.{kind}")]
    assert {f"lib/systemd/system/{unit.name}" for unit in units} <= below
    assert {
        "bin/initadvisor",
        "lib/initadvisor/disarm",
        "lib/initadvisor/queue",
        "lib/systemd/system-preset/90-initadvisor.preset",
        "share/bash-completion/completions/initadvisor",
        "share/doc/initadvisor/README.md",
        "share/fish/vendor_completions.d/initadvisor.fish",
        "share/licenses/initadvisor/LICENSE",
        "share/zsh/site-functions/_initadvisor",
    } <= below
    for path in (tmp_path, *tmp_path.rglob("*")):
        wanted = 0o755 if path.is_dir() or is_program(path) else 0o644
        assert path.is_symlink() or path == tmp_path or path.stat().st_mode & 0o777 == wanted, path


@pytest.mark.parametrize("prefix", ["/usr", "/usr/local"])
def test_modules_are_where_the_interpreter_looks(
    checkout: Path, tmp_path: Path, prefix: str
) -> None:
    found = installed(checkout, tmp_path, prefix)
    (package,) = {path.parents[1] for path in found.values() if path.name == "py.typed"}
    command = [SYSTEM_PYTHON, "-c", "import site; print(*site.getsitepackages())"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=HANGS_S)
    places = [Path(place) for place in done.stdout.split()]
    there = Path("/", package.relative_to(tmp_path))
    # Only Debian's interpreter looks for modules below /usr/local, without being told.
    if prefix == "/usr" or any(place.is_relative_to(prefix) for place in places):
        assert there in places
    assert there.is_relative_to(prefix)


def is_program(path: Path) -> bool:
    """Tell whether a file says what runs it."""
    with path.open("rb") as file:
        return file.read(2) == b"#!"


@pytest.mark.parametrize("prefix", ["/usr", "/usr/local"])
def test_hooks_are_where_package_managers_look(checkout: Path, tmp_path: Path, prefix: str) -> None:
    for kind, places in HOOKS.items():
        names = set(installed(checkout, tmp_path / kind, prefix, f"HOOKS={kind}"))
        place = places[prefix != "/usr"]
        shipped = {path.name for path in (ROOT / "hooks" / kind).rglob("*") if path.is_file()}
        assert {name.rpartition("/")[2] for name in names if name.startswith(place)} <= shipped
        assert any(name.startswith(place) for name in names)
        others = {p[prefix != "/usr"] for other, p in HOOKS.items() if other != kind}
        assert not any(name.startswith(other) for name in names for other in others)


def test_nothing_names_a_program_that_is_not_installed(checkout: Path, tmp_path: Path) -> None:
    found = installed(checkout, tmp_path, "/usr/local")
    named: set[str] = set()
    for path in found.values():
        if path.suffix in {".service", ".hook", ".install"} or path.name.endswith("-initadvisor"):
            text = path.read_text(encoding="utf-8")
            named |= set(re.findall(r"/usr/(?:local/)?(?:bin|lib)/initadvisor[\w/-]*", text))
    assert "/usr/local/bin/initadvisor" in named
    assert {name.lstrip("/") for name in named} <= set(found)


def test_units_that_finish_what_was_begun_are_enabled_and_no_other(
    checkout: Path, tmp_path: Path
) -> None:
    found = installed(checkout, tmp_path, "/usr")
    links = {path.parent.name: path for path in found.values() if path.is_symlink()}
    assert links["timers.target.wants"].name == "initadvisor-settle.timer"
    assert links["sleep.target.wants"].name == "initadvisor-sleep.service"
    assert all(path.resolve().is_file() for path in links.values())
    assert "initadvisor-measure.timer" not in {path.name for path in links.values()}


def test_a_preset_names_units_that_there_are() -> None:
    for preset in ROOT.glob("systemd/*.preset"):
        lines = [line.split() for line in preset.read_text().splitlines() if line[:1] != "#"]
        for verb, unit in lines:
            assert verb == "enable"
            assert "[Install]" in (ROOT / "systemd" / unit).read_text()


def test_the_package_is_whole_and_has_nothing_stale(checkout: Path, tmp_path: Path) -> None:
    found = installed(checkout, tmp_path, "/usr")
    (package,) = {path.parent for path in found.values() if path.name == "py.typed"}
    names = {str(path.relative_to(package)) for path in package.rglob("*") if path.is_file()}
    source = checkout / "initadvisor"
    shipped = {
        str(path.relative_to(source))
        for kind in ("py", "json", "typed", "html", "css", "js")
        for path in source.rglob(f"*.{kind}")
    }
    assert {name for name in names if not name.endswith(".pyc")} == shipped
    modules = {name for name in names if name.endswith(".py")}
    compiled = {name.replace("__pycache__/", "") for name in names if name.endswith(".pyc")}
    assert {re.sub(r"\.cpython-\d+\.pyc$", ".py", name) for name in compiled} >= modules


def test_the_command_runs_where_it_was_installed(checkout: Path, tmp_path: Path) -> None:
    """With the interpreter it was installed for, and click in a place of its own."""
    import click

    found = installed(checkout, tmp_path, "/usr")
    (package,) = {path.parents[1] for path in found.values() if path.name == "py.typed"}
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    (libraries / "click").symlink_to(Path(click.__file__).parent)
    command = found["usr/bin/initadvisor"]
    assert command.read_text().splitlines()[0] == f"#!{SYSTEM_PYTHON}"
    for words in (["--version"], ["recommend", "--help"], ["status", "--json"]):
        done = subprocess.run(
            [str(command), *words],
            env={
                **os.environ,
                "PYTHONPATH": f"{package}:{libraries}",
                "STATE_DIRECTORY": str(tmp_path / "state"),
            },
            check=True,
            capture_output=True,
            text=True,
            timeout=HANGS_S,
        )
        assert done.stderr == ""
        assert words != ["status", "--json"] or json.loads(done.stdout)["schema"]


@pytest.mark.parametrize("prefix", ["/usr", "/usr/local"])
def test_uninstalling_leaves_what_others_have(checkout: Path, tmp_path: Path, prefix: str) -> None:
    others = ("share/man/man1/other.1", "lib/systemd/system/other.service", "bin/other")
    for name in others:
        (tmp_path / prefix[1:] / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / prefix[1:] / name).touch()
    installed(checkout, tmp_path, prefix)
    made(checkout, "uninstall", f"DESTDIR={tmp_path}", f"PREFIX={prefix}")
    assert set(files(tmp_path)) == {f"{prefix[1:]}/{name}" for name in others}


def test_unknown_hooks_are_refused_before_anything_is_written(
    checkout: Path, tmp_path: Path
) -> None:
    program = str(checkout / "tools/install-files")
    command = [program, "install", str(tmp_path), "/usr", "pacman apt"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANGS_S)
    assert (done.returncode, done.stderr) == (2, "unknown hooks: apt\n")
    assert files(tmp_path) == {}


@pytest.mark.parametrize("prefix", ["/opt/my app", "usr", ""])
def test_an_odd_prefix_is_refused_before_anything_is_written(
    checkout: Path, tmp_path: Path, prefix: str
) -> None:
    command = [str(checkout / "tools/install-files"), "install", str(tmp_path), prefix]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANGS_S)
    assert done.returncode == 2
    assert f"the prefix '{prefix}'" in done.stderr
    assert files(tmp_path) == {}


def sandbox(name: str) -> list[str]:
    """Return the lines of a unit that keep its process from things."""
    text = (ROOT / f"systemd/{name}.service").read_text()
    kinds = "Capability|Device|IP|Lock|Memory[DW]|No|Private|Protect|Read|Remove|Restrict|System"
    return re.findall(rf"^(?:{kinds})\w*=.*$", text, re.MULTILINE)


def test_whoever_reads_what_a_generator_does_sees_what_lies_beside_the_modules() -> None:
    """A kernel's configuration does, with some systems its images, too."""
    for name in ("initadvisor-measure", "initadvisor-settle"):
        assert "ProtectKernelModules=yes" not in sandbox(name)


def test_whoever_replaces_files_may_do_all_that_takes() -> None:
    """Some of it is only needed after a power cut."""
    settle = sandbox("initadvisor-settle")
    assert sandbox("initadvisor-sleep") == settle
    daemon = sandbox("initadvisord")
    for kind in ("CapabilityBoundingSet", "ReadWritePaths"):
        lines = [line for line in settle if line.startswith(f"{kind}=")]
        assert lines
        assert set(lines) <= set(daemon)


@pytest.mark.parametrize(
    ("script", "shell"),
    [
        ("tools/install-files", "sh"),
        ("tools/setup", "sh"),
        ("completions/initadvisor.bash", "bash"),
        ("packaging/arch/initadvisor.install", "bash"),
    ],
)
def test_scripts_are_clean(script: str, shell: str) -> None:
    shellcheck = shutil.which("shellcheck")
    assert shellcheck is not None, "shellcheck is missing; tools/setup test installs it"
    command = [shellcheck, f"--shell={shell}", str(ROOT / script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANGS_S)
    assert done.returncode == 0, done.stdout
