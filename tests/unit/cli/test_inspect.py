"""What ``inspect`` prints, and with which status it ends."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.codecs import Codec
from tests.fixtures import images
from tests.fixtures.images import archive, compress, entry, padded, pe
from tests.fixtures.variants import CONFIG_OPTIONS
from tests.fixtures.waiting import HANGS_S

if TYPE_CHECKING:
    from pathlib import Path

RELEASE = "9.9.9-nowhere"
FILES = {
    f"usr/lib/modules/{RELEASE}/kernel/a.ko": b"module" * 1000,
    f"usr/lib/modules/{RELEASE}/kernel/{'long-' * 20}name.ko": b"m",
    "usr/bin/sh": b"\x7fELF" + bytes(2000),
}
EARLY = padded(archive({"kernel/x86/microcode/GenuineIntel.bin": b"u" * 500}))


def inspect(*arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    code = "from initadvisor.cli import main; main()"
    command = [sys.executable, "-c", code, "inspect", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=HANGS_S, input=stdin
    )


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return a configuration with everything an image may need."""
    text = "".join(f"{option}=y\n" for option in CONFIG_OPTIONS)
    return written(tmp_path / "config", text.encode())


@pytest.mark.parametrize("codec", Codec)
def test_the_document_has_the_fields_that_are_promised(codec: Codec, tmp_path: Path) -> None:
    main = compress(codec, archive(FILES))
    done = inspect(written(tmp_path / "image", EARLY + main), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert document["schema"] == 3
    assert document["kernel"] == RELEASE
    assert document["lint"]["verdict"] == "unknown"
    assert document["lint"]["reasons"]
    promised = ("offset", "size_bytes", "codec", "unpacked_bytes", "entries")
    early, found = ({name: segment[name] for name in promised} for segment in document["segments"])
    assert early["codec"] == "cat"
    assert found == {
        "offset": len(EARLY),
        "size_bytes": len(main),
        "codec": codec.value,
        "unpacked_bytes": len(archive(FILES)),
        "entries": 9,
    }
    assert document["largest"][0]["size_bytes"] == 6000
    assert sum(kind["size_bytes"] for kind in document["kinds"]) == 6000 + 1 + 2004 + 500
    assert document["microcode"] is True


def test_a_configuration_settles_the_verdict(tmp_path: Path, config: Path) -> None:
    good = written(tmp_path / "good", compress(Codec.ZSTD, archive(FILES)))
    bad = written(tmp_path / "bad", compress(Codec.XZ, archive(FILES)) + b"junk")
    for image, verdict in ((good, "ok"), (bad, "refused")):
        done = inspect(image, "--kernel-config", config, "--json")
        document = json.loads(done.stdout)
        assert done.returncode == 0
        assert document["lint"]["verdict"] == verdict
        assert document["kernel_config"] == str(config)


def test_the_tables_say_what_is_in_the_image(tmp_path: Path, config: Path) -> None:
    data = EARLY + compress(Codec.LZ4, entry(b"no/where\0", b"x") + archive(FILES))
    done = inspect(written(tmp_path / "image", data), "--kernel-config", config)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert f"initramfs for kernel {RELEASE}, made by an unknown generator" in lines[0]
    assert any(line.split()[:2] == ["2", str(len(EARLY))] for line in lines)
    assert any(line.startswith("other kernel modules") for line in lines)
    assert any(line.endswith("usr/bin/sh") for line in lines)
    assert "Verdict: ok" in done.stdout
    assert "whose directory is not in the archive" in done.stdout
    assert "\x1b" not in done.stdout


def test_a_terminal_of_80_columns_holds_it(tmp_path: Path) -> None:
    image = written(tmp_path / "image", EARLY + compress(Codec.ZSTD, archive(FILES)))
    code = (
        "import os, pty, sys;"
        "os.environ.update(COLUMNS='80', TERM='xterm');"
        "sys.exit(os.waitstatus_to_exitcode(pty.spawn([sys.executable, '-c',"
        "'from initadvisor.cli import main; main()', 'inspect', sys.argv[1]])))"
    )
    command = [sys.executable, "-c", code, str(image)]
    done = subprocess.run(
        command, capture_output=True, check=True, timeout=HANGS_S, stdin=subprocess.DEVNULL
    )
    lines = re.sub(r"\x1b\[\d*m", "", done.stdout.decode()).splitlines()
    assert max(len(line) for line in lines[1:]) <= 80
    assert "name.ko" in "".join(line.strip() for line in lines)


def test_a_unified_kernel_image_is_read(tmp_path: Path) -> None:
    sections = [(".uname", b"6.6.6"), (".initrd", compress(Codec.ZSTD, archive()))]
    document = json.loads(inspect(written(tmp_path / "uki", pe(sections)), "--json").stdout)
    assert (document["uki"], document["kernel"]) == (True, "6.6.6")
    assert document["segments"][0]["offset"] == document["initrd"]["offset"]


def test_names_do_not_command_the_terminal(tmp_path: Path) -> None:
    image = written(tmp_path / "image", entry(b"\x1b]0;evil\x07\n\0", b"x" * 99) + archive())
    for option in ((), ("--json",)):
        done = inspect(image, *option)
        assert done.returncode == 0
        assert "\x1b" not in done.stdout
        assert "\x07" not in done.stdout


def test_what_is_no_image_is_one_line_with_an_offset(tmp_path: Path) -> None:
    for name, data in (
        ("empty", b""),
        ("text", b"hello\n" * 99),
        ("zeros", bytes(4096)),
        ("cut", compress(Codec.GZIP, archive(FILES))[:200]),
    ):
        path = written(tmp_path / name, data)
        done = inspect(path)
        assert done.returncode == 1
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1
        assert "at offset " in done.stderr
        assert str(path) in done.stderr


def test_what_is_no_ordinary_file_is_one_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", "/dev/null", tmp_path, tmp_path / "pipe", tmp_path / "missing"):
        done = inspect(path)
        assert done.returncode == 1
        assert done.stderr.startswith(f"initadvisor: cannot read {path}: ")
        assert done.stderr.count("\n") == 1


def test_an_unreadable_configuration_is_an_error(tmp_path: Path) -> None:
    image = written(tmp_path / "image", compress(Codec.ZSTD, archive()))
    done = inspect(image, "--kernel-config", tmp_path / "missing")
    assert done.returncode == 1
    assert done.stderr.startswith(f"initadvisor: cannot read {tmp_path / 'missing'}: ")


def test_a_hostile_image_is_one_line(tmp_path: Path) -> None:
    bomb = images.zstd_frame(entry(b"a\0") * 600_000)
    done = inspect(written(tmp_path / "bomb", bomb))
    assert done.returncode == 1
    assert "500000 cpio headers" in done.stderr
    assert done.stderr.count("\n") == 1
