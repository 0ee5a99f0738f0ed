"""Package managers call our hooks at the right moment, and nothing they do is the hooks' fault."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from itertools import product
from pathlib import Path

import pytest

from tests.fixtures.mkinitcpio import mkinitcpio_source
from tests.fixtures.overlay import run_in_overlay
from tests.fixtures.waiting import HANGS_S

pytestmark = pytest.mark.tools

HOOKS = Path(__file__).parents[2] / "hooks"
_READ = {".hook", ".cfg.d"}
SCRIPTS = sorted(
    path
    for path in HOOKS.rglob("*")
    if path.is_file() and not {path.suffix, "".join(path.parent.suffixes)} & _READ
)

INSTALL = """
cd /mnt/hooks
install -D -t /usr/lib/initadvisor queue disarm
install -Dt /usr/lib/kernel/install.d kernel-install/*
install -Dt /etc/initcpio/post mkinitcpio/post/*
install -m 644 -Dt /usr/share/libalpm/hooks pacman/*
install -Dt /etc/kernel/preinst.d debian/kernel/preinst.d/*
install -Dt /etc/kernel/prerm.d debian/kernel/prerm.d/*
install -m 644 -Dt /etc/dpkg/dpkg.cfg.d debian/dpkg/dpkg.cfg.d/*
install -Dt /etc/kernel/postinst.d debian/kernel/postinst.d/*
install -Dt /etc/kernel/postrm.d debian/kernel/postrm.d/*
install -Dt /etc/initramfs/post-update.d debian/initramfs/post-update.d/*
rm -rf /var/lib/initadvisor
queue=/var/lib/initadvisor/queue
noted() { echo "$1:" $(ls $queue 2>/dev/null); rm -rf $queue; }
"""

# A boot is armed, and what takes it back says with which kernel it would boot then.
ARMED = """
mkdir -p /boot /usr/bin
cat >/usr/bin/initadvisor <<'END'
#!/bin/sh
echo "$* while the kernel is $(cat /boot/kernel)"
exit ${WRONG:-0}
END
chmod 755 /usr/bin/initadvisor
armed() { mkdir -p /var/lib/initadvisor; touch /var/lib/initadvisor/trial-entry; }
armed
echo old >/boot/kernel
"""

TAKEN_BACK = "initadvisor: settle --take-back while the kernel is old"

IMAGES_ARE_MADE = """\
[Trigger]
Type = Path
Operation = Install
Operation = Upgrade
Operation = Remove
Target = usr/lib/modules/*/vmlinuz

[Action]
When = PostTransaction
Exec = /bin/sh -c 'echo images are made, noted: $(ls /var/lib/initadvisor/queue)'
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A directory with the hooks, which is at /mnt where they are installed."""
    shutil.copytree(HOOKS, tmp_path / "hooks")
    return tmp_path


def package(work: Path, version: str, *paths: str) -> None:
    """Make a package of pacman's with some files."""
    info = f"pkgname = kernel\npkgver = {version}-1\npkgdesc = a kernel\narch = any\nsize = 0\n"
    with tarfile.open(work / f"kernel-{version}.pkg.tar", "w") as archive:
        for name, content in {".PKGINFO": info, **dict.fromkeys(paths, "content")}.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content.encode()))


def noted(said: str) -> dict[str, set[str]]:
    """Return what was noted, by what was done before."""
    lines = (line.partition(":") for line in said.splitlines())
    return {
        what.removeprefix("= "): set(names.split()) for what, _, names in lines if what[:2] == "= "
    }


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(HOOKS)))
def test_a_hook_is_plain_posix_shell(script: Path) -> None:
    shellcheck = shutil.which("shellcheck")
    assert shellcheck is not None, "shellcheck is missing; tools/setup test installs it"
    subprocess.run([shellcheck, "--shell=sh", str(script)], check=True, timeout=HANGS_S)
    assert script.read_text().startswith("#!/bin/sh\n")


def test_pacman_calls_ours_after_the_images_are_made(work: Path) -> None:
    package(work, "1", "usr/lib/modules/6.9.1-arch1-1/vmlinuz")
    package(work, "2", "usr/lib/modules/6.9.2-arch1-1/vmlinuz", "usr/lib/initcpio/install/base")
    rebuilding = (
        "usr/bin/cryptsetup",
        "usr/bin/lvm",
        "usr/lib/dracut/modules.d/00bash/module-setup.sh",
        "usr/lib/firmware/a.bin.zst",
        "usr/lib/initcpio/hooks/udev",
        "usr/lib/systemd/systemd",
        "usr/src/zfs-2.3/dkms.conf",
    )
    for number, path in enumerate(rebuilding, 3):
        package(work, str(number), path)
    package(work, "0", "usr/bin/other", "usr/lib/modules/6.9.1-arch1-1/kernel/a.ko")
    (work / "90-mkinitcpio-install.hook").write_text(IMAGES_ARE_MADE)
    said = run_in_overlay(
        INSTALL
        + """
        cp /mnt/90-mkinitcpio-install.hook /usr/share/libalpm/hooks/
        mkdir -p /var/lib/pacman/local
        pacman="pacman --config /dev/null --noconfirm"
        set -f; install="$pacman --overwrite * --upgrade"
        $pacman --upgrade /mnt/kernel-1.pkg.tar; noted "= install"
        $pacman --upgrade /mnt/kernel-2.pkg.tar; noted "= upgrade"
        $pacman --remove kernel; noted "= remove"
        $pacman --upgrade /mnt/kernel-0.pkg.tar; noted "= other files"
        $pacman --remove kernel; noted "= other files removed"
        for number in $(seq 3 9); do
            $install /mnt/kernel-$number.pkg.tar; noted "= $number"
        done
        $pacman --remove kernel; noted "= part removed"
        """,
        work,
    )
    assert noted(said) == {
        "install": {"kernel-added@6.9.1-arch1-1"},
        "upgrade": {
            "kernel-added@6.9.2-arch1-1",
            "kernel-removed@6.9.1-arch1-1",
            "image-rebuilt",
        },
        "remove": {"kernel-removed@6.9.2-arch1-1", "image-rebuilt"},
        "other files": set(),
        "other files removed": set(),
        **{str(number): {"image-rebuilt"} for number in range(3, 3 + len(rebuilding))},
        "part removed": {"image-rebuilt"},
    }
    # Nothing was noted yet when the images were made, each of the three times.
    assert said.count("images are made, noted:\n") == 3, said


def triggers(hook: Path) -> set[tuple[str, str, str]]:
    """Return what a hook of pacman's is run for: type, operation and target."""
    found: set[tuple[str, str, str]] = set()
    for section in hook.read_text().split("[")[1:]:
        name, _, lines = section.partition("]")
        pairs = [line.split(" = ") for line in lines.splitlines() if " = " in line]
        values = {key: [value for word, value in pairs if word == key] for key, _ in pairs}
        if name == "Trigger":
            found |= set(product(values["Type"], values["Operation"], values["Target"]))
    return found


def test_whatever_has_mkinitcpio_rebuild_images_has_ours_note_it() -> None:
    theirs = triggers(mkinitcpio_source() / "libalpm/hooks/90-mkinitcpio-install.hook")
    ours = triggers(HOOKS / "pacman/95-initadvisor-added.hook")
    assert ("Path", "Remove", "usr/lib/firmware/*") in theirs
    assert theirs <= ours
    dracuts = {target for _, _, target in ours - theirs}
    assert dracuts == {"usr/lib/dracut/*"}
    disarming = triggers(HOOKS / "pacman/05-initadvisor-disarm.hook")
    assert {one for one in theirs if one[0] == "Path"} <= disarming


def test_kernel_install_calls_ours_after_the_generator_and_the_entry(work: Path) -> None:
    said = run_in_overlay(
        INSTALL
        + """
        cd /usr/lib/kernel/install.d
        plugin() { printf '#!/bin/sh\\n%s\\n' "$2" >"$1"; chmod 755 "$1"; }
        plugin 50-dracut.install 'echo the image is made, noted: $(ls /var/lib/initadvisor/queue)'
        plugin 99-after.install 'echo ours is over'
        mkdir -p /boot/loader/entries /usr/lib/modules/6.9.1-fedora
        echo kernel >/usr/lib/modules/6.9.1-fedora/vmlinuz
        export KERNEL_INSTALL_MACHINE_ID=0123456789abcdef0123456789abcdef
        export KERNEL_INSTALL_CONF_ROOT=/mnt/conf
        mkdir /mnt/conf; echo root=/dev/sda1 >/mnt/conf/cmdline
        for layout in bls other; do
            printf 'layout=%s\\ninitrd_generator=dracut\\n' $layout >/mnt/conf/install.conf
            kernel-install --verbose add 6.9.1-fedora /usr/lib/modules/6.9.1-fedora/vmlinuz
            noted "= $layout add"
            kernel-install remove 6.9.1-fedora; noted "= $layout remove"
        done
        echo initrd_generator=mkosi-initrd >/mnt/conf/install.conf
        kernel-install add 6.9.1-fedora /usr/lib/modules/6.9.1-fedora/vmlinuz
        noted "= not a generator of ours"
        """,
        work,
    )
    assert noted(said) == {
        "bls add": {"kernel-added@6.9.1-fedora"},
        "bls remove": {"kernel-removed@6.9.1-fedora"},
        "other add": {"kernel-added@6.9.1-fedora"},
        "other remove": {"kernel-removed@6.9.1-fedora"},
        "not a generator of ours": set(),
    }
    first = said.partition("= bls add")[0]
    assert "the image is made, noted:\n" in first
    assert first.index("the image is made") < first.index("Noting 6.9.1-fedora")
    assert first.index("Noting 6.9.1-fedora") < first.index("ours is over")


def test_a_unified_image_that_brings_its_initramfs_is_none_of_ours(work: Path) -> None:
    said = run_in_overlay(
        INSTALL
        + """
        plugin=/usr/lib/kernel/install.d/95-initadvisor.install
        KERNEL_INSTALL_IMAGE_TYPE=uki $plugin add 6.9.1 /entry /vmlinuz; noted "= uki"
        KERNEL_INSTALL_IMAGE_TYPE=pe $plugin add 6.9.1 /entry /vmlinuz; noted "= kernel"
        KERNEL_INSTALL_IMAGE_TYPE=uki $plugin remove 6.9.1 /entry; noted "= removed"
        """,
        work,
    )
    assert noted(said) == {
        "uki": set(),
        "kernel": {"kernel-added@6.9.1"},
        "removed": {"kernel-removed@6.9.1"},
    }


def test_debian_s_kernel_packages_and_update_initramfs_call_ours(work: Path) -> None:
    """As linux-image's postinst and postrm, and update-initramfs, call them."""
    said = run_in_overlay(
        INSTALL
        + """
        rm /etc/kernel/*/zz-update-grub 2>/dev/null || true
        v=6.1.0-44-amd64
        call() { run-parts --report --exit-on-error --arg=$v --arg=$1 $2; }
        DEB_MAINT_PARAMS="'configure' ''" call /boot/vmlinuz-$v /etc/kernel/postinst.d
        noted "= postinst"
        DEB_MAINT_PARAMS="'remove'" call /boot/vmlinuz-$v /etc/kernel/postrm.d; noted "= postrm"
        call /boot/initrd.img-$v /etc/initramfs/post-update.d; noted "= update"
        export INITADVISOR_REBUILDING=1
        call /boot/initrd.img-$v /etc/initramfs/post-update.d; noted "= our own"
        unset INITADVISOR_REBUILDING
        rm /usr/lib/initadvisor/queue
        call /boot/initrd.img-$v /etc/initramfs/post-update.d; noted "= removed, not purged"
        """,
        work,
    )
    assert noted(said) == {
        "postinst": {"kernel-added@6.1.0-44-amd64"},
        "postrm": {"kernel-removed@6.1.0-44-amd64"},
        "update": {"image-rebuilt@6.1.0-44-amd64"},
        "our own": set(),
        "removed, not purged": set(),
    }


def test_mkinitcpio_calls_ours_for_images_that_are_made_by_hand(work: Path) -> None:
    """As run_post_hooks of mkinitcpio 41 does."""
    script = (mkinitcpio_source() / "mkinitcpio").read_text()
    begin = script.index("\nrun_post_hooks() {")
    end = script.index("\n}\n", begin) + len("\n}\n")
    (work / "run_post_hooks").write_text(script[begin:end])
    said = run_in_overlay(
        INSTALL
        + """
        cat >/mnt/mkinitcpio <<'END'
        . /mnt/run_post_hooks
        msg() { :; }; msg2() { echo "$@"; }; in_array() { return 1; }
        _d_post=/etc/initcpio/post:/usr/lib/initcpio/post
        KERNELIMAGE=/boot/vmlinuz-linux
        run_post_hooks /boot/initramfs-linux.img || echo failed
END
        KERNELVERSION=6.9.1-arch1-1 bash /mnt/mkinitcpio; noted "= by hand"
        export INITADVISOR_REBUILDING=1
        KERNELVERSION=6.9.1-arch1-1 bash /mnt/mkinitcpio; noted "= our own"
        unset INITADVISOR_REBUILDING; rm /usr/lib/initadvisor/queue
        KERNELVERSION=6.9.1-arch1-1 bash /mnt/mkinitcpio; noted "= removed"
        """,
        work,
    )
    assert noted(said) == {
        "by hand": {"image-rebuilt@6.9.1-arch1-1"},
        "our own": set(),
        "removed": set(),
    }
    assert "failed" not in said


def test_package_managers_show_one_line_where_the_daemon_is_enabled(work: Path) -> None:
    package(work, "1", "usr/lib/modules/6.9.1/vmlinuz", "usr/lib/initcpio/a", "usr/lib/initcpio/b")
    said = run_in_overlay(
        INSTALL
        + """
        rm /etc/kernel/*/zz-update-grub 2>/dev/null || true
        mkdir -p /var/lib/pacman/local /etc/systemd/system/paths.target.wants
        link=/etc/systemd/system/paths.target.wants/initadvisord.path
        cat >/etc/kernel/postinst.d/initramfs-tools <<'END'
#!/bin/sh
/etc/initramfs/post-update.d/initadvisor "$1"
END
        cat >/etc/kernel/postinst.d/zz-systemd-boot <<'END'
#!/bin/sh
/usr/lib/kernel/install.d/95-initadvisor.install add "$1" /entry
END
        chmod 755 /etc/kernel/postinst.d/*
        each() {
            pacman="pacman --config /dev/null --noconfirm"
            echo "= pacman $1"; $pacman --upgrade /mnt/kernel-1.pkg.tar
            echo "= pacman removes $1"; $pacman --remove kernel
            echo "= kernel package $1"
            DEB_MAINT_PARAMS="'configure' ''" run-parts --arg=6.9.1 /etc/kernel/postinst.d
            echo "= update-initramfs $1"; /etc/initramfs/post-update.d/initadvisor 6.9.1
            echo "= kernel-install $1"
            /usr/lib/kernel/install.d/95-initadvisor.install add 6.9.1 /entry
            echo "= mkinitcpio $1"; KERNELVERSION=6.9.1 /etc/initcpio/post/initadvisor none
        }
        each disabled
        ln -s /usr/lib/systemd/system/initadvisord.path $link
        each enabled
        mkdir -p /var/lib/initadvisor
        follows() { echo "= follows $1"; /usr/lib/initadvisor/queue kernel-added 6.9.1; }
        configured() { printf "$2" >/etc/initadvisor.toml; follows "$1"; }
        rm -f /etc/initadvisor.toml; follows "no file"
        configured advise '[daemon]\n# policy = "try"\npolicy="advise"\n'
        configured try '[daemon]\n\tpolicy = "try" # or "apply"\n'
        configured apply "[daemon]\nmotd = true\npolicy='apply'"
        configured "another way" 'daemon = { policy = "try" }\n'
        configured "no policy of ours" '[daemon]\npolicy = "trying"\n'
        rm /etc/initadvisor.toml; mkfifo /etc/initadvisor.toml; follows "no file but a pipe"
        rm /etc/initadvisor.toml; touch /var/lib/initadvisor/campaign-active
        configured "campaign" '[daemon]\npolicy = "advise"\n'
        """,
        work,
    )
    shown: dict[str, list[str]] = {}
    for part in said.split("= ")[1:]:
        what, *lines = part.splitlines()
        shown[what] = [line for line in lines if "initadvisor: noted" in line]
    assert not any(lines for what, lines in shown.items() if what.endswith("disabled"))
    counted = {what: len(lines) for what, lines in shown.items() if what.endswith("enabled")}
    assert counted == {
        "pacman enabled": 1,
        "pacman removes enabled": 1,  # its other files are part of every image
        "kernel package enabled": 1,
        "update-initramfs enabled": 1,
        "kernel-install enabled": 1,
        "mkinitcpio enabled": 0,
    }
    (line,) = shown["pacman enabled"]
    assert line.startswith("initadvisor: noted Linux 6.9.1, new images; ")
    nothing, tries = ", nothing is booted on trial or changed", ", reboots may try them"
    follows = {
        **dict.fromkeys(("no file", "advise"), nothing),
        "try": tries,
        "apply": f"{tries}, a better setting may be applied",
        **dict.fromkeys(("another way", "no policy of ours", "no file but a pipe", "campaign"), ""),
    }
    begin = "initadvisor: noted Linux 6.9.1; candidates are built when the machine is idle"
    for name, words in follows.items():
        assert shown[f"follows {name}"] == [f"{begin}{words}: initadvisor status"]


def test_pacman_has_nothing_armed_before_it_changes_a_kernel(work: Path) -> None:
    documentation = "usr/share/doc/kernel"
    package(work, "1", "boot/kernel")
    package(work, "2", "usr/lib/initcpio/install/base")
    package(work, "3", documentation)  # which removes the generator's file
    package(work, "4", documentation)
    said = run_in_overlay(
        INSTALL
        + ARMED
        + """
        mkdir -p /var/lib/pacman/local
        upgrade() { pacman --config /dev/null --noconfirm --overwrite '*' --upgrade "$@"; }
        for each in 1 2 3 4; do
            echo "= package"; upgrade /mnt/kernel-$each.pkg.tar; echo old >/boot/kernel
        done
        """,
        work,
    )
    *kernels, last = said.split("= package")[1:]
    assert len(kernels) == 3
    for part in kernels:
        assert TAKEN_BACK in part
        assert part.index(TAKEN_BACK) < part.index("Processing package changes")
    assert "settle" not in last


def test_dpkg_has_nothing_armed_before_it_changes_packages(work: Path) -> None:
    tree = work / "kernel"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(
        "Package: a-kernel\nVersion: 1\nArchitecture: all\nMaintainer: a test <a@test>\n"
        "Description: a kernel\n"
    )
    (tree / "boot").mkdir()
    (tree / "boot/kernel").write_text("new\n")
    said = run_in_overlay(
        INSTALL
        + ARMED
        + """
        dpkg-deb --build /mnt/kernel /mnt/kernel.deb
        dpkg --install /mnt/kernel.deb; echo "= installed: $(cat /boot/kernel)"
        rm /var/lib/initadvisor/trial-entry; dpkg --remove a-kernel; echo "= nothing armed"
        rm /usr/lib/initadvisor/disarm; dpkg --install /mnt/kernel.deb; echo "= we are gone: $?"
        """,
        work,
    )
    before, _, after = said.partition("= installed: new")
    assert TAKEN_BACK in before
    assert before.index(TAKEN_BACK) < before.index("Unpacking a-kernel")
    assert "settle" not in after
    assert "= we are gone: 0" in said


def test_every_other_hook_has_nothing_armed_either(work: Path) -> None:
    said = run_in_overlay(
        INSTALL
        + ARMED
        + """
        unset SYSTEMD_LOG_LEVEL
        for each in preinst.d prerm.d; do
            echo "= $each"; run-parts --report --arg=6.1.0 --arg=/boot/kernel /etc/kernel/$each
        done
        for each in add remove; do
            echo "= $each"; /usr/lib/kernel/install.d/05-initadvisor.install $each 6.1.0 /entry
        done
        for each in kernel-added image-rebuilt; do
            echo "= $each"; /usr/lib/initadvisor/queue $each 6.1.0
        done
        echo "= withdrawn"; /usr/lib/initadvisor/disarm --withdraw
        echo "= ours"; INITADVISOR_REBUILDING=1 /usr/lib/initadvisor/disarm
        echo "= wrong"; WRONG=1 /usr/lib/initadvisor/disarm 2>&1; echo "exit $?"
        """,
        work,
    )
    parts = dict(part.split("\n", 1) for part in said.split("= ")[1:])
    for name in ("preinst.d", "prerm.d", "add", "remove", "kernel-added", "image-rebuilt"):
        assert TAKEN_BACK in parts[name], name
    assert "settle --withdraw" in parts["withdrawn"]
    assert parts["ours"].strip() == ""
    assert "do not reboot" in parts["wrong"]
    assert "exit 0" in parts["wrong"]


def test_whatever_is_wrong_the_transaction_goes_on(work: Path) -> None:
    said = run_in_overlay(
        INSTALL
        + """
        tell() { note=/usr/lib/initadvisor/queue; "$note" "$@" </dev/null; }
        printf '#!/bin/sh\\necho "logged: $*"\\n' >/usr/local/bin/logger
        chmod 755 /usr/local/bin/logger
        PATH=/usr/local/bin:$PATH
        tell kernel-added 6.1.0; tell kernel-added 6.1.0; noted "= twice"
        for odd in ../../etc/passwd '6.1 0' -6.1 .hidden "$(printf '6.1\\n0')" "" "6.1'"; do
            tell kernel-added "$odd"
        done
        noted "= odd releases"
        tell kernel-added "$(printf %065d 6)"; noted "= too long"
        tell kernel-added "$(printf %064d 6)"; noted "= long"
        tell; tell nonsense 6.1.0; noted "= no such reason"
        printf '%s\\n' usr/lib/modules/../../x/vmlinuz '' | /usr/lib/initadvisor/queue \
            kernel-added -
        noted "= odd paths"
        touch $queue; tell kernel-added 6.1.0; echo "= a file in the way: $?"; rm $queue
        mount -t tmpfs -o ro,size=4k tmpfs /var/lib/initadvisor
        tell kernel-added 6.1.0; echo "= read-only: $?"
        """,
        work,
    )
    assert noted(said) == {
        "twice": {"kernel-added@6.1.0"},
        "odd releases": {"kernel-added"},
        "too long": {"kernel-added"},
        "long": {f"kernel-added@{6:064d}"},
        "no such reason": set(),
        "odd paths": {"kernel-added"},
        "a file in the way": {"0"},
        "read-only": {"0"},
    }
    assert said.count("logged: -t initadvisor -p user.warning -- cannot note") == 2
    assert said.count("nothing is known of the reason") == 2
    assert "annot create" not in said, "the shell complained by itself"
