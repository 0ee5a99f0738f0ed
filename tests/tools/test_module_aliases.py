"""Devices ask for the same modules as with modprobe, by what depmod wrote of real kernels."""

from __future__ import annotations

import random
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from initadvisor.host import Host
from initadvisor.image.modules import module_name
from initadvisor.target.module_index import read_module_index
from tests.fixtures.debian import RELEASED, Kernel, Suite, debian, program

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

pytestmark = pytest.mark.tools

_RANDOM = 150
_BRACKETS = re.compile(r"\[([^\]])[^\]]*\]")
OWN = {
    "alias set:[!0-9x]-[a-c-]* sets": ("set:y_b", "set:y-bbb", "set:5-b", "set:y-d", "set:--q"),
    r"alias set:*[^q]z\*[\q]?[!9-1] escapes": ("set:az*qqq", "set:qz*qqq", "set:azzqqq"),
    "alias set:*[]]z unbalanced": ("set:]z", "set:z"),
    r"alias set:[a\-c]\?* question": ("set:a?", "set:-?1", "set:b?", "set:ab"),
    "alias set:[z-a]* none": ("set:z", "set:a", "set:b"),
    r"alias set:a\b literal": (r"set:a\b", "set:ab"),
}


def fitting(pattern: str, chance: random.Random) -> str:
    """Return a name that a pattern is for."""
    name = _BRACKETS.sub(lambda found: found[1], pattern)
    for part in ("*", "?"):
        name = name.replace(part, chance.choice(("0", "A")))
    return name


def asked_of_modprobe(
    names: Sequence[str], root: Path, release: str, *options: str
) -> Iterator[set[str]]:
    """Yield the modules that modprobe finds for each name."""
    for name in names:
        done = subprocess.run(
            [program("modprobe"), "-R", "-d", root, "-S", release, *options, name],
            check=False,
            capture_output=True,
            text=True,
        )
        yield {module_name(found) for found in done.stdout.split()}


@pytest.mark.parametrize("suite", RELEASED)
def test_the_aliases_of_a_real_kernel_fit_the_same_devices(suite: Suite) -> None:
    tree = debian(suite, Kernel.FULL)
    chance = random.Random(1)
    lines = (tree.root / f"usr/lib/modules/{tree.release}/modules.alias").read_text().splitlines()
    patterns = [line.split()[1] for line in lines if line.startswith("alias ")]
    devices = [pattern for pattern in patterns if ":" in pattern]
    some = [
        *chance.sample(devices, _RANDOM),
        *chance.sample([one for one in devices if "[" in one], 5),
    ]
    names = [fitting(pattern, chance) for pattern in some]
    names += [name[:-1] for name in names[:20]]
    index = read_module_index(Host(root=tree.root), tree.release)
    found = [set(index.asked_for(name)) - {module_name(name)} for name in names]
    assert found == list(asked_of_modprobe(names, tree.root, tree.release))
    assert sum(map(bool, found)) >= _RANDOM


def test_brackets_and_backslashes_mean_the_same(tmp_path: Path) -> None:
    """As aliases of parts of the kernel itself: depmod takes these from a text."""
    directory = tmp_path / "usr/lib/modules/1.0"
    directory.mkdir(parents=True)
    (tmp_path / "lib").symlink_to("usr/lib")
    fields, modules = [], []
    for line in OWN:
        _, pattern, name = line.split()
        fields += [f"{name}.file=own/{name}", f"{name}.alias={pattern}", ""]
        modules.append(f"kernel/own/{name}.ko\n")
    (directory / "modules.builtin.modinfo").write_text("\0".join(filter(None, fields)) + "\0")
    (directory / "modules.builtin").write_text("".join(modules))
    (directory / "modules.order").touch()
    subprocess.run([program("depmod"), "-b", tmp_path, "1.0"], check=True, capture_output=True)
    index = read_module_index(Host(root=tmp_path), "1.0")
    names = [name for each in OWN.values() for name in each]
    found = [set(index.asked_for(name)) - {module_name(name)} for name in names]
    assert found == list(asked_of_modprobe(names, tmp_path, "1.0"))
    assert sum(map(bool, found)) == 5


def test_a_backslash_in_modprobes_configuration_is_left_out(tmp_path: Path) -> None:
    tree = debian(Suite.TRIXIE)
    configuration = tmp_path / "etc/modprobe.d/own.conf"
    configuration.parent.mkdir(parents=True)
    configuration.write_text("alias own:\\?[a\\-c] any\nalias own:b\\\nb other\n")
    (tmp_path / "usr").symlink_to(tree.root / "usr")
    index = read_module_index(Host(root=tmp_path), tree.release)
    names = ("own:?a", "own:xb", "own:x-", "own:bb")
    found = [set(index.asked_for(name)) - {module_name(name)} for name in names]
    real = asked_of_modprobe(names, tmp_path, tree.release, "-C", str(configuration))
    assert found == list(real) == [{"any"}, {"any"}, set(), {"other", "any"}]
