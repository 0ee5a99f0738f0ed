"""An image is built beside what is installed: with which words and texts, and what is left."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import InitadvisorError, NeedsRootError, ProgramError, UnsafeError
from initadvisor.generators import (
    InstalledImage,
    dracut,
    initramfs_tools,
    mkinitcpio,
    running,
    unknown,
)
from initadvisor.host import run
from initadvisor.host.run import SystemRunner
from initadvisor.rewrite.files import FileEdit
from tests.fakes.generators import FakeGenerators, Ordered
from tests.fakes.scripts import programs_in
from tests.fixtures.hosts import RELEASE, Machine
from tests.fixtures.small_images import archive, signed, uki
from tests.fixtures.trees import GLOBAL, write_variable
from tests.fixtures.waiting import HANGS_S, alive, time_is_up_once, wait_until

if TYPE_CHECKING:
    from initadvisor.generators import Generator
    from tests.fixtures.hosts import Install, Write

_GENERATORS: tuple[Generator, ...] = (mkinitcpio, dracut, initramfs_tools)
_CONFIG = {
    "mkinitcpio": "/etc/mkinitcpio.conf",
    "dracut": "/etc/dracut.conf.d/own.conf",
    "initramfs-tools": "/etc/initramfs-tools/initramfs.conf",
}
_OLDER = "5.4.1-lts"


def written(order: Ordered) -> None:
    """Write an image, as a generator does."""
    order.image.write_bytes(b"image")


@pytest.fixture
def runner() -> FakeGenerators:
    """Return generators that do their work."""
    return FakeGenerators(make=written)


@pytest.fixture
def machine(
    tmp_path: Path,
    runner: FakeGenerators,
    write: Write,
    install: Install,
    monkeypatch: pytest.MonkeyPatch,
) -> Machine:
    """Return a machine with all generators' configurations, on which they may be run."""
    monkeypatch.setattr(running, "require_installed_system", lambda _host, _name: None)
    write("/usr/bin/mkinitcpio", "declare -r version='41'\n").chmod(0o755)
    write("/usr/lib/dracut/dracut-version.sh", "DRACUT_VERSION=106\n")
    write(_CONFIG["mkinitcpio"], "COMPRESSION=gzip\nHOOKS=(base)\n")
    write(_CONFIG["dracut"], "compress=gzip\n")
    write(_CONFIG["initramfs-tools"], "COMPRESS=gzip\n")
    install("gzip", "zstd")
    (tmp_path / "staging").mkdir()
    return Machine(root=tmp_path, runner=runner)


@pytest.fixture
def target(machine: Machine) -> Path:
    """Return where the image is to be."""
    return machine.root / "staging/new"


def image(machine: Machine, path: str = "/boot/image", *, uki: bool = False) -> InstalledImage:
    """Return an installed image."""
    return InstalledImage(path=machine.path(path), kernel_release=RELEASE, uki=uki)


@pytest.mark.parametrize("generator", _GENERATORS, ids=lambda g: g.NAME)
def test_the_new_text_is_read_and_the_installed_one_stays(
    generator: Generator, machine: Machine, runner: FakeGenerators, target: Path
) -> None:
    path = machine.path(_CONFIG[generator.NAME])
    before = path.read_text()
    generator.build(machine, image(machine), target, {path: "NEW=\udcff\n"})
    assert target.read_bytes() == b"image"
    assert path.read_text() == before
    assert [p.name for p in target.parent.iterdir()] == ["new"]
    (order,) = runner.orders
    assert "NEW=\udcff\n" in order.config.values()
    assert before not in order.config.values()
    assert Path(order.env["TMPDIR"]).parent == target.parent


@pytest.mark.parametrize("generator", _GENERATORS, ids=lambda g: g.NAME)
def test_control_and_new_build_differ_in_the_configuration_only(
    generator: Generator, machine: Machine, runner: FakeGenerators, target: Path
) -> None:
    path = machine.path(_CONFIG[generator.NAME])
    generator.build(machine, image(machine), target, {})
    generator.build(machine, image(machine), target.with_name("other"), {path: "NEW\n"})
    control, new = runner.orders
    assert control.argv == new.argv
    assert control.env == new.env
    assert control.config.keys() == new.config.keys()
    assert path.read_text() in control.config.values()


@pytest.mark.parametrize(
    "failure",
    [
        ProgramError("mkinitcpio exited with status 1"),
        ProgramError("it did not end within 3600 s and was killed"),
        KeyboardInterrupt(),
    ],
    ids=["fails", "hangs", "interrupted"],
)
@pytest.mark.parametrize("generator", _GENERATORS, ids=lambda g: g.NAME)
def test_a_build_that_ends_early_leaves_nothing(
    generator: Generator,
    machine: Machine,
    runner: FakeGenerators,
    target: Path,
    failure: BaseException,
) -> None:
    def fail(order: Ordered) -> None:
        order.image.write_bytes(b"half an im")
        raise failure

    runner.make = fail
    with pytest.raises(type(failure)):
        generator.build(machine, image(machine), target, {})
    assert list(target.parent.iterdir()) == []


_HANGING = """#!/bin/sh
for word; do image=$word; done
printf half > "$image"
mkdir "$TMPDIR/dracut.tmp"
sleep 3600 &
echo $$ $! > "$PIDS.part"
mv "$PIDS.part" "$PIDS"
wait
"""


def test_a_generator_that_hangs_is_killed_with_all_it_has_started(
    machine: Machine, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = tmp_path / "pids"
    script = tmp_path / "programs/dracut"
    script.parent.mkdir()
    script.write_text(_HANGING.replace("$PIDS", str(pids)))
    script.chmod(0o755)
    programs_in(monkeypatch, script.parent)
    monkeypatch.setattr(running, "_TIMEOUT_S", HANGS_S)
    time_is_up_once(monkeypatch, run, pids.exists)
    real = Machine(root=machine.root, runner=SystemRunner())
    with pytest.raises(ProgramError, match="did not end within 1800 s"):
        dracut.build(real, image(real), target, {})
    assert list(target.parent.iterdir()) == []
    numbers = [int(word) for word in pids.read_text().split()]
    assert len(numbers) == 2
    assert wait_until(lambda: not any(alive(number) for number in numbers))


@pytest.mark.parametrize(
    "make",
    [
        lambda _order: None,
        lambda order: order.image.touch(),
        lambda order: order.image.symlink_to("/etc/passwd"),
        lambda order: order.image.mkdir(),
    ],
    ids=["nothing", "empty", "link", "directory"],
)
def test_a_generator_that_claims_success_without_an_image_has_failed(
    machine: Machine, runner: FakeGenerators, target: Path, make: object
) -> None:
    assert callable(make)
    runner.make = make
    with pytest.raises(ProgramError, match="dracut ended without an error"):
        dracut.build(machine, image(machine), target, {})
    assert list(target.parent.iterdir()) == []


def test_what_a_killed_run_left_is_removed(machine: Machine, target: Path) -> None:
    litter = target.parent / ".partial-build/dracut.abc/initramfs"
    litter.mkdir(parents=True)
    (litter / "init").write_text("old")
    dracut.build(machine, image(machine), target, {})
    assert [p.name for p in target.parent.iterdir()] == ["new"]


def test_a_full_disk_is_an_error_that_names_the_generator(machine: Machine) -> None:
    with pytest.raises(InitadvisorError, match="cannot have dracut build"):
        dracut.build(machine, image(machine), machine.root / "missing/new", {})


@pytest.mark.parametrize("generator", _GENERATORS, ids=lambda g: g.NAME)
def test_nothing_runs_in_a_container_or_without_root(
    generator: Generator, tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("/usr/bin/mkinitcpio", "declare -r version='41'\n")
    write(_CONFIG["mkinitcpio"], "")
    runner = FakeGenerators()
    host = Machine(root=tmp_path, runner=runner)
    write("/run/.containerenv", "")
    target = tmp_path / "new"
    monkeypatch.setattr(Machine, "is_root", True)
    with pytest.raises(UnsafeError, match="a container"):
        generator.build(host, image(host), target, {})
    monkeypatch.setattr(Machine, "is_root", False)
    with pytest.raises(NeedsRootError):
        generator.build(host, image(host), target, {})
    assert runner.orders == []


def test_without_a_generator_nothing_is_built_or_affected(machine: Machine, target: Path) -> None:
    with pytest.raises(UnsafeError):
        unknown.build(machine, image(machine), target, {})
    edit = FileEdit(path=str(machine.path("/etc/x")), before=None, after="")
    assert unknown.affected(machine, [edit]) == ()
    assert unknown.noted_inside(machine, {}) == ()


class TestMkinitcpio:
    """Presets, and one text made of all files."""

    @pytest.fixture
    def preset(self, write: Write) -> None:
        """Make a preset with everything in it, and another without anything special."""
        write(
            "/etc/mkinitcpio.d/linux.preset",
            f"PRESETS=(default fallback own)\nALL_kver={RELEASE}\nALL_cmdline=/etc/cmdline\n"
            "default_image=/boot/d.img\ndefault_uki=/efi/d.efi\ndefault_splash=/etc/s.bmp\n"
            "default_options='-S autodetect -c /etc/mkinitcpio.conf'\n"
            "fallback_image=/boot/f.img\n"
            "own_image=/boot/o.img\nown_config=/etc/own.conf\n",
        )
        write("/etc/own.conf", "HOOKS=(udev)\n")
        for name in ("boot/d.img", "efi/d.efi", "boot/f.img", "boot/o.img"):
            write(f"/{name}", "")

    @pytest.mark.usefixtures("preset")
    def test_a_preset_s_image_and_uki_are_built_with_its_options(
        self, machine: Machine, runner: FakeGenerators, target: Path
    ) -> None:
        for path in ("/boot/d.img", "/efi/d.efi"):
            uki = path.endswith(".efi")
            mkinitcpio.build(machine, image(machine, path, uki=uki), target, {})
        plain, unified = runner.orders
        own = ("-S", "autodetect", "-c", "@/mkinitcpio.conf")
        assert plain.words == ("mkinitcpio", "-k", RELEASE, *own, "-g", "@/image", "--nopost")
        assert unified.words == (
            *("mkinitcpio", "-k", RELEASE, "--cmdline", "/etc/cmdline", "--splash", "/etc/s.bmp"),
            *(*own, "-U", "@/image", "--nopost"),
        )
        assert unified.env["MKINITCPIO_PROCESS_PRESET"] == "linux-default"

    @pytest.mark.usefixtures("preset")
    def test_post_hooks_sign_a_uki_that_could_not_be_started_otherwise(
        self, machine: Machine, runner: FakeGenerators, target: Path
    ) -> None:
        write_variable(machine.root, "SecureBoot", b"\1", GLOBAL)
        write_variable(machine.root, "SetupMode", b"\0", GLOBAL)
        for path in ("/boot/d.img", "/efi/d.efi"):
            mkinitcpio.build(machine, image(machine, path, uki=path.endswith(".efi")), target, {})
        assert ["--nopost" in order.argv for order in runner.orders] == [True, False]

    @pytest.mark.usefixtures("preset")
    def test_post_hooks_sign_a_uki_that_takes_the_place_of_a_signed_one(
        self, machine: Machine, runner: FakeGenerators, target: Path
    ) -> None:
        installed = machine.path("/efi/d.efi")
        for content in (uki(archive()), signed(uki(archive()))):
            installed.parent.mkdir(exist_ok=True)
            installed.write_bytes(content)
            mkinitcpio.build(machine, image(machine, "/efi/d.efi", uki=True), target, {})
        assert ["--nopost" in order.argv for order in runner.orders] == [True, False]

    @pytest.mark.usefixtures("preset")
    def test_only_images_whose_preset_reads_the_file_are_affected(
        self, machine: Machine, write: Write
    ) -> None:
        main = FileEdit(path=str(machine.path(_CONFIG["mkinitcpio"])), before="", after="x")
        own = FileEdit(path=str(machine.path("/etc/own.conf")), before="", after="x")
        new = machine.path("/etc/mkinitcpio.conf.d/new.conf")
        drop_in = FileEdit(path=str(new), before=None, after="x")
        # The default preset names its file, so that drop-ins are not read for it.
        assert [
            (found.path.name, found.fallback) for found in mkinitcpio.affected(machine, [main])
        ] == [("d.img", False), ("d.efi", False), ("f.img", True)]
        assert [found.path.name for found in mkinitcpio.affected(machine, [own])] == ["o.img"]
        assert [found.path.name for found in mkinitcpio.affected(machine, [drop_in])] == ["f.img"]
        assert mkinitcpio.affected(machine, []) == ()
        write("/etc/mkinitcpio.d/linux.preset", "PRESETS=()\n")
        assert mkinitcpio.affected(machine, [main]) == ()

    def test_files_are_put_together_as_they_are(
        self, machine: Machine, runner: FakeGenerators, write: Write, target: Path
    ) -> None:
        write(_CONFIG["mkinitcpio"], "ONE=1")
        new = machine.path("/etc/mkinitcpio.conf.d/b.conf")
        write("/etc/mkinitcpio.conf.d/a.conf", "\nTWO=2")
        mkinitcpio.build(machine, image(machine), target, {new: "\nTHREE=3\n"})
        assert runner.orders[0].config == {"mkinitcpio.conf": "ONE=1\nTWO=2\nTHREE=3\n"}

    def test_a_uki_of_no_preset_is_another_programs(self, machine: Machine, target: Path) -> None:
        with pytest.raises(UnsafeError, match="no preset"):
            mkinitcpio.build(machine, image(machine, "/efi/x.efi", uki=True), target, {})


class TestDracut:
    """A main file and drop-ins of its own."""

    def test_both_are_given(
        self, machine: Machine, runner: FakeGenerators, write: Write, target: Path
    ) -> None:
        write("/usr/lib/dracut/dracut.conf.d/shipped.conf", "shipped\n")
        write("/etc/dracut.conf.d/README", "none\n")
        hidden = machine.path("/etc/dracut.conf.d/hidden.conf")
        hidden.symlink_to(os.devnull)
        dracut.build(machine, image(machine), target, {})
        (order,) = runner.orders
        assert order.words == (
            *("dracut", "--force", "--conf", "@/dracut.conf", "--confdir", "@/dracut.conf.d"),
            *("--tmpdir", "@", "--no-uefi", "--kver", RELEASE, "@/image"),
        )
        assert order.config == {
            "dracut.conf": "",
            "dracut.conf.d/own.conf": "compress=gzip\n",
            "dracut.conf.d/hidden.conf": "",
        }

    def test_a_uki_is_built_where_dracut_makes_them(
        self, machine: Machine, runner: FakeGenerators, write: Write, target: Path
    ) -> None:
        unified = image(machine, "/efi/EFI/Linux/x.efi", uki=True)
        with pytest.raises(UnsafeError, match="unified kernel images"):
            dracut.build(machine, unified, target, {})
        write("/etc/dracut.conf", "uefi=yes\n")
        dracut.build(machine, unified, target, {})
        assert "--uefi" in runner.orders[0].argv

    def test_all_kernels_are_affected(self, machine: Machine, write: Write) -> None:
        for name in (RELEASE, _OLDER, "0-rescue-abc"):
            write(f"/boot/initramfs-{name}.img", "")
        edit = FileEdit(path=str(machine.path(_CONFIG["dracut"])), before="", after="x")
        found = dracut.affected(machine, [edit])
        assert [one.kernel_release for one in found] == [RELEASE, _OLDER, "0-rescue-abc"]
        assert [one.fallback for one in found] == [False, False, True]
        assert dracut.affected(machine, []) == ()


class TestInitramfsTools:
    """A configuration directory of its own."""

    def test_files_are_copied_and_hooks_are_those_installed(
        self, machine: Machine, runner: FakeGenerators, write: Write, target: Path
    ) -> None:
        etc = "/etc/initramfs-tools"
        write(f"{etc}/conf.d/resume", "RESUME=none\n").chmod(0o600)
        machine.path(f"{etc}/conf.d/link").symlink_to("../elsewhere")
        write(f"{etc}/hooks/own", "#!/bin/sh\n")
        new = machine.path(f"{etc}/conf.d/zz-new")
        seen: dict[str, object] = {}

        def look(order: Ordered) -> None:
            conf = order.image.parent / "conf"
            seen["mode"] = (conf / "conf.d/resume").stat().st_mode & 0o777
            seen["link"] = str((conf / "conf.d/link").readlink())
            seen["hooks"] = str((conf / "hooks").readlink())
            written(order)

        runner.make = look
        initramfs_tools.build(machine, image(machine), target, {new: "COMPRESS=zstd\n"})
        (order,) = runner.orders
        assert order.words == ("mkinitramfs", "-d", "@/conf", "-o", "@/image", RELEASE)
        assert order.config == {
            "conf/initramfs.conf": "COMPRESS=gzip\n",
            "conf/conf.d/resume": "RESUME=none\n",
            "conf/conf.d/zz-new": "COMPRESS=zstd\n",
        }
        assert seen == {
            "mode": 0o600,
            "link": f"{etc}/conf.d/../elsewhere",
            "hooks": f"{etc}/hooks",
        }

    def test_a_dsdt_that_would_move_is_refused(
        self, machine: Machine, write: Write, target: Path
    ) -> None:
        write("/etc/initramfs-tools/DSDT.aml", "")
        with pytest.raises(UnsafeError, match="DSDT"):
            initramfs_tools.build(machine, image(machine), target, {})

    def test_only_copies_of_what_is_changed_may_differ(self, machine: Machine) -> None:
        texts = {
            machine.path("/etc/initramfs-tools/conf.d/zz"): "",
            machine.path("/etc/initramfs-tools/initramfs.conf"): "",
        }
        noted = initramfs_tools.noted_inside(machine, texts)
        assert noted == ("conf/conf.d/zz", "conf/initramfs.conf")
