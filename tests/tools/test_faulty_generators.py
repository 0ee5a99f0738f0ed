"""Generators that really run and do it wrong: nothing is handed out, nothing is left of it.

Each of the three is a script that takes the generator's own options, reads the configuration that
it is given and compresses with real programs; with any codec but today's it has a fault.
"""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
import subprocess
from typing import TYPE_CHECKING

import psutil
import pytest

from initadvisor.apply import plan as apply_plan
from initadvisor.apply.build import staged_images
from initadvisor.apply.plan import ApplyRequest, plan_apply
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import ProgramError, UnsafeError
from initadvisor.core.settings import Setting
from initadvisor.generators import dracut, initramfs_tools, mkinitcpio, running
from initadvisor.generators.running import NO_HOOKS, REBUILDING
from initadvisor.host import run
from initadvisor.lab.observing import Unseen
from initadvisor.target import target as target_module
from tests.fakes.scripts import ScriptRunner
from tests.fixtures.dracut_machine import make_machine, nothing_weighed, snapshot
from tests.fixtures.hosts import RELEASE, Machine
from tests.fixtures.images import archive
from tests.fixtures.waiting import HANGS_S, time_is_up_once, wait_until

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from initadvisor.apply.plan_values import StagedImage

pytestmark = pytest.mark.tools

ZSTD = Setting(Codec.ZSTD)

SCRIPT = """\
#!/bin/bash
out=${{!#}}
while (($#)); do
    case $1 in
    -o | -g) out=$2 ;;
    -c | -d | --conf | --confdir) config+=("$2") ;;
    esac
    shift
done
cd {root} || exit
codec=$(grep -rhoiE '^compress(ion)?="?[a-z0-9]+' "${{config[@]}}" | tail -n 1)
codec=${{codec##*[=\\"]}}
if [ "$codec" = gzip ]; then
    gzip -n < payload > "$out"
else
    {fault}
fi
"""
HEALTHY = 'COMPRESS < payload > "$out"'
"""``COMPRESS`` stands for what the generator runs for zstd."""

FAULTS = {
    "fails": (
        'COMPRESS < payload | head -c 100 > "$out"; echo "no room" >&2; exit 3',
        ProgramError,
        r"exited with status 3: no room",
    ),
    "is killed": ('COMPRESS < payload > "$out"; kill -9 $$', ProgramError, "killed by signal 9"),
    "hangs": (
        "touch $BEGUN; sleep 3600 & sleep 3600",
        ProgramError,
        r"did not end within 1800 s and was killed",
    ),
    "talks on": ("yes", ProgramError, "would not stop talking"),
    "writes no file": ("true", ProgramError, "wrote no image"),
    "writes an empty file": (': > "$out"', ProgramError, "wrote nothing that is an image"),
    "makes a directory": ('mkdir "$out"', ProgramError, "wrote nothing that is an image"),
    "makes a link": ('ln -s ../payload "$out"', ProgramError, "wrote nothing that is an image"),
    "falls back to cat": ('cat payload > "$out"', UnsafeError, "with cat, not with zstd"),
    "takes another codec": ('gzip -n < payload > "$out"', UnsafeError, "with gzip, not with zstd"),
    "is cut": ('COMPRESS < payload | head -c 60 > "$out"', UnsafeError, "wrote no whole image"),
    "lacks a byte": ('COMPRESS < payload | head -c -1 > "$out"', UnsafeError, "no whole image"),
    "lacks the end of the archive": (
        'head -c -700 payload | COMPRESS > "$out"',
        UnsafeError,
        "wrote no whole image",
    ),
    "writes text": ('echo "no image" > "$out"', UnsafeError, "wrote no whole image"),
    "has more in it": ('COMPRESS < other > "$out"', UnsafeError, "another content than with today"),
}

CONFIG = {
    dracut: {"/etc/dracut.conf.d/own.conf": "compress=gzip\n"},
    initramfs_tools: {
        "/usr/sbin/update-initramfs": "#!/bin/sh\n",
        "/etc/initramfs-tools/initramfs.conf": "MODULES=most\nCOMPRESS=gzip\n",
    },
    mkinitcpio: {
        "/etc/mkinitcpio.conf": "HOOKS=(base)\nCOMPRESSION=gzip\n",
        "/etc/mkinitcpio.d/linux.preset": (
            f"PRESETS=(default)\nALL_kver={RELEASE}\ndefault_image=/boot/linux.img\n"
        ),
    },
}
PROGRAMS = {
    dracut: ("/usr/bin/dracut", f"/boot/initramfs-{RELEASE}.img"),
    initramfs_tools: ("/usr/sbin/mkinitramfs", f"/boot/initrd.img-{RELEASE}"),
    mkinitcpio: ("/usr/bin/mkinitcpio", "/boot/linux.img"),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class System:
    """A machine with one of the generators, which is a script."""

    machine: Machine
    generator: ModuleType
    script: Path
    begun: Path
    """Where this is, the generator hangs: its time is up."""

    def fault(self, commands: str) -> None:
        """Have the generator do this with any codec but today's."""
        compress = shlex.join(self.generator.compressor(self.machine, ZSTD))
        commands = commands.replace("$BEGUN", str(self.begun)).replace("COMPRESS", compress)
        text = SCRIPT.format(root=self.machine.root, fault=commands)
        if self.generator is mkinitcpio:
            text += "declare -r version='41'\n"
        self.script.write_text(text)
        self.script.chmod(0o755)

    def staged(self) -> tuple[StagedImage, ...]:
        """Plan and build; whatever comes of it, nothing has changed and nothing is left."""
        before = snapshot(self.machine)
        plan = plan_apply(self.machine, ApplyRequest(setting=ZSTD), observer=Unseen())
        try:
            with staged_images(self.machine, self.generator, plan, observer=Unseen()) as found:
                return found
        finally:
            assert snapshot(self.machine) == before
            assert {path.name for path in self.machine.cache_dir().iterdir()} <= {"locks", "runs"}


@pytest.fixture(params=list(CONFIG), ids=lambda generator: str(generator.NAME))
def system(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> System:
    """A machine whose generator works, so far."""
    generator: ModuleType = request.param
    made = make_machine(tmp_path, monkeypatch)
    machine = Machine(root=tmp_path, runner=ScriptRunner(root=tmp_path))
    for name, text in CONFIG[generator].items():
        path = made.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    zstd = machine.path("/usr/bin/zstd")
    zstd.write_text('#!/bin/sh\nexec /usr/bin/zstd "$@"\n')
    zstd.chmod(0o755)
    (tmp_path / "payload").write_bytes(archive({"init": b"the same line\n" * 900}))
    (tmp_path / "other").write_bytes(archive({"init": b"the same line\n" * 900, "etc": b""}))
    script, image = PROGRAMS[generator]
    with made.path(image).open("wb") as file, (tmp_path / "payload").open("rb") as payload:
        subprocess.run(["gzip", "-n"], stdin=payload, stdout=file, check=True)  # noqa: S607
    monkeypatch.setattr(target_module, "detect_generator", lambda _host: generator)
    monkeypatch.setattr(apply_plan, "recommend", nothing_weighed)
    monkeypatch.setattr(apply_plan, "_of_the_boot_loader", lambda _host, _images: ())
    monkeypatch.setattr(running, "_TIMEOUT_S", HANGS_S)
    begun = tmp_path.with_name(f"{tmp_path.name}-begun")
    time_is_up_once(monkeypatch, run, begun.exists)
    found = System(machine=machine, generator=generator, script=made.path(script), begun=begun)
    found.fault(HEALTHY)
    return found


def test_without_a_fault_it_builds(system: System) -> None:
    (one,) = system.staged()
    assert one.codec is Codec.ZSTD
    assert one.updates is not None
    assert one.updates.count == 0
    assert isinstance(system.machine.runner, ScriptRunner)
    environments = [env for name, env in system.machine.runner.ran if name == system.script.name]
    assert [(env[REBUILDING], env[NO_HOOKS]) for env in environments] == [("1", "1")] * 2


@pytest.mark.parametrize("fault", FAULTS)
def test_with_a_fault_nothing_is_handed_out(system: System, fault: str) -> None:
    commands, error, words = FAULTS[fault]
    system.fault(commands)
    with pytest.raises(error, match=words):
        system.staged()
    assert wait_until(lambda: not processes_in(system.machine.root))
    system.begun.unlink(missing_ok=True)
    system.fault(HEALTHY)
    assert len(system.staged()) == 1


def processes_in(directory: Path) -> list[str]:
    """Return the programs that still run in a directory."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and process.cwd() == str(directory):
                found.append(process.name())
    return found


def test_a_compressor_that_is_missing_is_known_before_anything_is_built(system: System) -> None:
    system.machine.path("/usr/bin/zstd").unlink()
    with pytest.raises(UnsafeError, match=r"not configuring .* for zstd"):
        system.staged()
    assert isinstance(system.machine.runner, ScriptRunner)
    assert system.script.name not in [name for name, _ in system.machine.runner.ran]


def test_a_compressor_that_goes_away_meanwhile_is_found_out(system: System) -> None:
    """Each generator then falls back in its own way, with exit status 0."""
    fall_back = "cat" if system.generator is mkinitcpio else "gzip"
    system.fault(f'rm usr/bin/zstd; {fall_back} < payload > "$out"')
    with pytest.raises(UnsafeError, match=f"with {fall_back}, not with zstd"):
        system.staged()
