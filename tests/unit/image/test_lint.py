"""Verdicts follow what is known of the kernel, and say what is not."""

from __future__ import annotations

import dataclasses
import io

import pytest

from initadvisor.core.codecs import Codec
from initadvisor.image.contents import FindingKind, ImageFinding, Lint, Verdict
from initadvisor.image.kernel import KernelConfig
from initadvisor.image.lint import lint
from initadvisor.image.scan import scan
from tests.fixtures import images
from tests.fixtures.images import archive, compress, entry
from tests.fixtures.variants import CONFIG_OPTIONS

COMPRESSED = [codec for codec in Codec if codec is not Codec.CAT]


def config(*without: str, **more: str) -> KernelConfig:
    """Return a configuration with everything but some options."""
    options: dict[str, str | None] = dict.fromkeys(CONFIG_OPTIONS, "y")
    return KernelConfig(
        source="/boot/config", options={**options, **dict.fromkeys(without), **more}
    )


def judged(image: bytes, kernel: KernelConfig | None, release: str | None = "6.1.0") -> Lint:
    return lint(scan(io.BytesIO(image)), kernel, release)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_codec_that_is_not_configured_is_refused(codec: Codec) -> None:
    option = codec.spec.kernel_option
    assert option
    for absent in (config(option), config(**{option: "m"})):
        found = judged(compress(codec, archive()), absent)
        assert found.verdict == Verdict.REFUSED
        assert found.reasons == (f"{option}, needed for {codec}, is not set in /boot/config",)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_the_decompressor_is_what_counts(codec: Codec) -> None:
    option = codec.spec.kernel_option
    assert option
    selected = {option.replace("_RD_", "_DECOMPRESS_"): "y"}
    assert judged(compress(codec, archive()), config(option, **selected)).verdict == Verdict.OK


@pytest.mark.parametrize("codec", Codec)
def test_an_unknown_configuration_is_said_to_be_unknown(codec: Codec) -> None:
    found = judged(compress(codec, archive()), None)
    assert found.verdict == Verdict.UNKNOWN
    assert "CONFIG_BLK_DEV_INITRD" in found.reasons[0]
    assert (codec.spec.kernel_option or "") in found.reasons[0]


@pytest.mark.parametrize("codec", Codec)
def test_a_kernel_without_initramfs_refuses_all(codec: Codec) -> None:
    found = judged(compress(codec, archive()), config("CONFIG_BLK_DEV_INITRD"))
    assert found.verdict == Verdict.REFUSED


def test_a_kernel_that_forces_its_own_initramfs_refuses_all() -> None:
    found = judged(archive(), config(CONFIG_INITRAMFS_FORCE="y"))
    assert found.verdict == Verdict.REFUSED


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_kernel_from_before_the_codec_refuses_it(codec: Codec) -> None:
    major, minor = codec.spec.since
    if (major, minor) > (2, 6):
        before = f"{major}.{minor - 1}.0" if minor else f"{major - 1}.19.0"
        found = judged(compress(codec, archive()), None, before)
        assert found.verdict == Verdict.REFUSED
    assert judged(compress(codec, archive()), config(), f"{major}.{minor}").verdict == Verdict.OK


def test_a_filter_of_xz_takes_an_option() -> None:
    # The filter changes branches of ARM64 code only, of which the archive has none.
    image = images.xz_stream([(b"\x0a\x00" + images.LZMA2_4_MIB, archive())])
    found = scan(io.BytesIO(image))
    assert lint(found, config(), "6.12").verdict == Verdict.REFUSED
    assert lint(found, config(CONFIG_XZ_DEC_ARM64="y"), "6.12").verdict == Verdict.OK
    assert "CONFIG_XZ_DEC_ARM64" in lint(found, None, None).reasons[0]


@pytest.mark.parametrize(
    ("release", "verdict"),
    [("6.1.0", Verdict.OK), ("5.14", Verdict.OK), ("5.13.9", Verdict.UNKNOWN), (None, Verdict.OK)],
)
def test_zeros_behind_lz4_are_a_doubt_before_5_14(release: str | None, verdict: Verdict) -> None:
    image = compress(Codec.LZ4, archive())
    assert judged(image + bytes(4), config(), release).verdict == verdict
    assert judged(image + bytes(3), config(), release).verdict == Verdict.OK


@pytest.mark.parametrize(
    ("stub", "codec", "verdict"),
    [
        ("systemd-stub 257.13-1~deb13u1", Codec.LZ4, Verdict.REFUSED),
        ("systemd-stub 257.13-1~deb13u1", Codec.ZSTD, Verdict.OK),
        ("systemd-stub 256.7", Codec.LZ4, Verdict.OK),
        ("another-stub 300", Codec.LZ4, Verdict.OK),
    ],
)
def test_what_a_stub_adds_ends_lz4(stub: str, codec: Codec, verdict: Verdict) -> None:
    magic = f"#### LoaderInfo: {stub} ####\0".encode()
    image = images.pe([(".sdmagic", magic), (".initrd", compress(codec, archive()))])
    assert judged(image, config()).verdict == verdict


@pytest.mark.parametrize(
    ("release", "verdict"), [("5.19", Verdict.OK), ("5.18.2", Verdict.REFUSED)]
)
def test_the_crc_format_is_known_since_5_19(release: str, verdict: Verdict) -> None:
    assert judged(archive(checksums=True), config(), release).verdict == verdict


@pytest.mark.parametrize(("release", "verdict"), [("5.6", Verdict.OK), ("5.5.0", Verdict.REFUSED)])
def test_boot_configuration_is_known_since_5_6(release: str, verdict: Verdict) -> None:
    assert judged(archive() + images.bootconfig(), config(), release).verdict == verdict


@pytest.mark.parametrize(
    ("image", "word"),
    [
        (entry(b"no/where\0", b"x") + archive(), "directory"),
        (entry(b"/absolute\0", b"x") + archive(), "slash"),
        (entry(b"a/../b\0", b"x") + archive(), "'..'"),
        (entry(b"a\0", b"x"), "trailer"),
        (images.gzip_member(archive(), checksum=7), "checksum"),
        (images.lzop_file(archive(), checksum=7), "checksum"),
        (images.zstd_frame(archive(), window_log=27, known_size=False), "128 MiB"),
        (entry(b"", b"x") + archive(), "without a name"),
    ],
)
def test_what_does_not_stop_the_kernel_is_noted(image: bytes, word: str) -> None:
    found = judged(image, config())
    assert found.verdict == Verdict.OK
    assert not found.reasons
    assert [note for note in found.notes if word in note], found.notes


def test_a_reason_names_its_segment() -> None:
    first = images.gzip_member(archive())
    image = first + images.zstd_frame(archive(), window_log=28, known_size=False)
    (reason,) = judged(image, config()).reasons
    assert f"segment 2 (zstd, offset {len(first)}): a zstd window of 256 MiB" in reason


def test_what_several_segments_have_in_common_is_said_once() -> None:
    image = compress(Codec.GZIP, archive()) * 3
    (reason,) = judged(image, config("CONFIG_RD_GZIP")).reasons
    assert reason.count("CONFIG_RD_GZIP") == 1


@pytest.mark.parametrize("kind", FindingKind)
def test_every_finding_is_judged(kind: FindingKind) -> None:
    for codec in (Codec.CAT, Codec.ZSTD):
        contents = scan(io.BytesIO(compress(codec, archive())))
        finding = ImageFinding(kind=kind, count=2, offset=0, example="name")
        main = dataclasses.replace(contents.main, findings=(finding,))
        found = lint(dataclasses.replace(contents, segments=(main,)), config(), "5.0")
        silent = kind is FindingKind.UNPADDED_END and codec is Codec.CAT
        assert bool(found.reasons or found.notes) != silent
