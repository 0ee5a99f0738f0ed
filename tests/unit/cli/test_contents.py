"""What ``contents`` prints of an image, and its headline in an answer."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from initadvisor import host as host_package
from initadvisor.cli import root
from initadvisor.core.codecs import Codec
from initadvisor.host import Host
from tests.fakes.compressors import fake_compressors
from tests.fixtures.content import mixed_content
from tests.fixtures.images import archive, compress, pe
from tests.fixtures.kernels import bzimage
from tests.fixtures.small_images import early_archive, write_image

if TYPE_CHECKING:
    from pathlib import Path

KERNEL = "usr/lib/modules/6.1.0-1-amd64/kernel"
FILES = {
    "usr/lib/firmware/amdgpu/a.bin": mixed_content(600_000),
    f"{KERNEL}/drivers/nvme/nvme.ko": mixed_content(100_000),
    f"{KERNEL}/drivers/nvme/again.ko": mixed_content(100_000),
    "usr/bin/\x1b[31mred": b"\x7fELF" + mixed_content(9000),
}


@pytest.fixture(autouse=True)
def _own_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))


def said(*words: object) -> str:
    done = CliRunner().invoke(root, [*map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize("codec", [Codec.CAT, Codec.GZIP, Codec.ZSTD])
def test_the_kinds_add_up_to_the_image_and_the_dearest_is_first(
    tmp_path: Path, codec: Codec
) -> None:
    image = write_image(tmp_path / "image", archive(FILES), early=early_archive(), codec=codec)
    found = json.loads(said("contents", image, "--json"))
    assert found["image_bytes"] == image.stat().st_size
    assert sum(kind["stored_bytes"] for kind in found["kinds"]) == image.stat().st_size
    medians = [kind["boot_ms"]["median"] for kind in found["kinds"]]
    assert sum(medians) == pytest.approx(found["boot_ms"]["median"], abs=0.002 * len(medians))
    assert medians == sorted(medians, reverse=True)
    assert found["kinds"][0]["kind"] == "graphics firmware"
    for kind in (*found["kinds"], found):
        assert 0 <= kind["boot_ms"]["low"] <= kind["boot_ms"]["median"] <= kind["boot_ms"]["high"]
    assert found["repeated"]["files"] == 1
    assert 0 < found["repeated"]["boot_ms"]["median"] < found["boot_ms"]["median"] / 5


def test_the_whole_is_what_recommend_has_of_the_image(tmp_path: Path) -> None:
    image = write_image(tmp_path / "image", archive(FILES), codec=Codec.GZIP)
    options = ("--only", "cat", "--only", "gzip", "--json")
    answer = json.loads(said("recommend", "--image", image, *options))
    found = json.loads(said("contents", image, "--json"))
    [today] = [row for row in answer["candidates"] if row["setting"] == answer["baseline"]]
    total_ms = today["read_ms"]["median"] + today["unpack_ms"]["median"]
    assert found["boot_ms"]["median"] == pytest.approx(total_ms, rel=0.03)


def test_the_verdict_is_first_and_the_table_fits(tmp_path: Path) -> None:
    image = write_image(tmp_path / "image", archive(FILES), codec=Codec.ZSTD)
    first, *lines = said("contents", image).splitlines()
    assert re.fullmatch(
        r"Graphics firmware: \d\.\d of \d\.\d MB, about \d+ ms to read and unpack "
        r"\(95 %: \d+\.\.\d+\)",
        first,
    )
    table = [line for line in lines if line != str(image)]
    assert all(len(line) <= 80 for line in table)
    assert len(table) <= 20
    assert any(line.startswith("1 file is there once more") for line in table)
    assert "a.bin" not in "\n".join(lines)


def test_files_are_listed_by_purpose_and_safe_to_print(tmp_path: Path) -> None:
    image = write_image(tmp_path / "image", archive(FILES), codec=Codec.ZSTD)
    lines = said("contents", image, "--files").splitlines()
    start = lines.index("storage, MB unpacked:")
    assert lines[start + 1].split() == ["0.10", f"{KERNEL}/drivers/nvme/again.ko"]
    assert any(line.endswith(r"usr/bin/\x1b[31mred") for line in lines)


def test_recommend_has_the_headline_of_what_is_large(tmp_path: Path) -> None:
    large = write_image(tmp_path / "large", archive(FILES), codec=Codec.ZSTD)
    options = ("--only", "zstd", "--only", "lz4", "--json")
    headline = json.loads(said("recommend", "--image", large, *options))["context"][0]
    assert headline.startswith("Graphics firmware: ")
    assert len(headline) <= 80
    needed = {path: data for path, data in FILES.items() if "firmware" not in path}
    small = write_image(tmp_path / "small", archive(needed), codec=Codec.ZSTD)
    found = json.loads(said("recommend", "--image", small, "--only", "lz4", "--json"))
    assert not any("initadvisor contents" in line for line in found["context"])


@pytest.fixture
def has_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The kernel of ``FILES``, on a machine that has the compressors of ``COMPRESSORS``."""
    machine = Host(root=tmp_path / "machine", runner=fake_compressors())
    boot = machine.path("/boot")
    boot.mkdir(parents=True)
    kernel = bzimage("6.1.0-1-amd64", Codec.ZSTD, mixed_content(300_000))
    (boot / "vmlinuz-6.1.0-1-amd64").write_bytes(kernel)
    monkeypatch.setattr(host_package, "Host", lambda: machine)
    return kernel


def test_the_kernel_has_a_row_beside_the_sum(tmp_path: Path, has_kernel: bytes) -> None:
    image = write_image(tmp_path / "image", archive(FILES), codec=Codec.ZSTD)
    lines = said("contents", image).splitlines()
    sizes = ["0.3", f"{len(has_kernel) / 1e6:.1f}"]
    [row] = [line for line in lines if line.startswith("its kernel (zstd, predicted) ")]
    assert row.split()[5:7] == sizes
    assert lines.index(row) == 1 + next(n for n, line in enumerate(lines) if line[:4] == "all ")
    document = json.loads(said("contents", image, "--json"))
    assert document["image_bytes"] == image.stat().st_size
    assert document["kernel"]["size_bytes"] == len(has_kernel)
    assert document["kernel"]["others"] is None


@pytest.mark.usefixtures("has_kernel")
def test_other_codecs_of_the_kernel_are_priced(tmp_path: Path) -> None:
    image = write_image(tmp_path / "image", archive(FILES), codec=Codec.ZSTD)
    first = said("contents", image, "--kernel-codecs")
    start = first.splitlines().index("The kernel, were it built otherwise (predicted):")
    table = first.splitlines()[start:]
    assert all(len(line) <= 80 for line in table)
    for codec in ("zstd", "lz4", "xz"):
        [row] = [line for line in table if line.startswith(f"{codec} ")]
        assert row.split()[-1] == f"CONFIG_KERNEL_{codec.upper()}=y"
    assert "lzop is not installed" in first
    kernel = json.loads(said("contents", image, "--kernel-codecs", "--json"))["kernel"]
    savings = [one["saving_ms"]["median"] for one in kernel["others"]]
    assert savings == sorted(savings, reverse=True)
    assert {one["codec"] for one in kernel["others"]} == {"lz4", "gzip", "bzip2", "xz", "lzma"}
    payloads = {one["codec"]: one["size_bytes"] for one in kernel["others"]}
    content = mixed_content(300_000)
    for codec, size_bytes in payloads.items():
        whole = len(bzimage("6.1.0-1-amd64", Codec(codec), content))
        assert size_bytes == pytest.approx(whole, rel=0.01)


def test_a_damaged_kernel_is_said_to_be_one(tmp_path: Path, has_kernel: bytes) -> None:
    place = tmp_path / "machine/boot/vmlinuz-6.1.0-1-amd64"
    image = write_image(tmp_path / "image", archive(FILES), codec=Codec.ZSTD)
    place.write_bytes(has_kernel[:9000])
    found = said("contents", image)
    assert "what the kernel costs is not known: truncated" in " ".join(found.split())
    assert "its kernel" not in found


def test_a_unified_kernel_image_has_its_kernel_in_it(tmp_path: Path) -> None:
    kernel = bzimage("6.1.0-1-amd64", Codec.LZ4, mixed_content(300_000))
    initrd = compress(Codec.ZSTD, archive(FILES))
    image = tmp_path / "uki"
    image.write_bytes(pe([(".linux", kernel), (".initrd", initrd)]))
    found = json.loads(said("contents", image, "--json"))["kernel"]
    assert (found["path"], found["codec"], found["size_bytes"]) == (str(image), "lz4", len(kernel))
