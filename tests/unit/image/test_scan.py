"""What a scan says is in an image."""

from __future__ import annotations

import io
import random

import pytest

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import BadImageError
from initadvisor.image.contents import ByteRange, FileKind, FindingKind, ImageContents
from initadvisor.image.cpio import S_IFLNK, CpioWriter
from initadvisor.image.scan import scan
from tests.fixtures import images
from tests.fixtures.images import archive, compress, entry, padded, pe

ZSTD_FILE = b"\x28\xb5\x2f\xfd" + bytes(96)
MODULES = "usr/lib/modules/6.1.0-1-amd64/kernel"


def read(image: bytes) -> ImageContents:
    return scan(io.BytesIO(image))


def kinds_found(contents: ImageContents) -> list[FindingKind]:
    return [finding.kind for segment in contents.segments for finding in segment.findings]


@pytest.mark.parametrize("codec", Codec)
def test_a_segment_is_located_and_counted(codec: Codec) -> None:
    early = padded(archive({"kernel/x86/microcode/GenuineIntel.bin": b"u" * 99}))
    plain = archive()
    main = compress(codec, plain)
    contents = read(early + main + bytes(20))
    assert [segment.codec for segment in contents.segments] == [Codec.CAT, codec]
    first, last = contents.segments
    assert (first.offset, first.size_bytes + first.padding_bytes) == (0, len(early))
    assert first.entries == 4
    assert (last.offset, last.size_bytes, last.padding_bytes) == (len(early), len(main), 20)
    assert (last.unpacked_bytes, last.entries) == (len(plain), 3)
    assert contents.main == last
    assert contents.microcode
    assert contents.initrd == ByteRange(offset=0, size_bytes=len(early) + len(main) + 20)
    assert not kinds_found(contents)


def test_any_number_of_segments_is_read() -> None:
    parts = [compress(codec, archive({f"file-{codec}": b"x"})) for codec in Codec]
    contents = read(b"".join(padded(part + bytes(4), 4) for part in parts))
    assert [segment.codec for segment in contents.segments] == list(Codec)


def test_archives_in_one_stream_are_one_segment() -> None:
    contents = read(images.gzip_member(padded(archive()) + archive()))
    assert len(contents.segments) == 1
    assert contents.main.entries == 6


KERNEL = f"{MODULES}/"
PURPOSES = {
    f"{KERNEL}drivers/usb/storage/a.ko": FileKind.STORAGE,
    f"{KERNEL}drivers/usb/a.ko": FileKind.MODULES,
    f"{KERNEL}fs/ext4/a.ko.zst": FileKind.FILE_SYSTEMS,
    f"{KERNEL}arch/x86/crypto/a.ko": FileKind.CRYPTO,
    f"{KERNEL}drivers/gpu/drm/amd/amdgpu/a.ko": FileKind.GRAPHICS,
    f"{MODULES}/../updates/dkms/nvidia-drm.ko": FileKind.GRAPHICS,
    f"{KERNEL}net/core/a.ko": FileKind.NETWORK,
    f"{KERNEL}sound/a.ko": FileKind.SOUND,
    f"{KERNEL}drivers/hid/a.ko": FileKind.INPUT,
    "usr/lib/modules/6.1.0-1-amd64/modules.dep": FileKind.MODULES,
    "lib/firmware/nvidia/ga102/gsp/gsp.bin": FileKind.GRAPHICS_FIRMWARE,
    "lib/firmware/nvidia-unknown/a.bin": FileKind.FIRMWARE,
    "usr/lib/firmware/iwlwifi-7265-17.ucode": FileKind.NETWORK_FIRMWARE,
    "usr/lib/firmware/intel/sof/a.ri": FileKind.SOUND,
    "usr/lib/firmware/intel-ucode/06-9e-0a": FileKind.MICROCODE,
    "usr/lib/firmware/a.bin.xz": FileKind.FIRMWARE,
    "kernel/x86/microcode/GenuineIntel.bin": FileKind.MICROCODE,
    "kernel/firmware/acpi/dsdt.aml": FileKind.FIRMWARE,
    "usr/lib/udev/hwdb.bin": FileKind.HWDB,
    "usr/bin/script": FileKind.PROGRAMS,
    "usr/bin/plymouthd": FileKind.SPLASH,
    "usr/lib/x86_64-linux-gnu/plymouth/text.so": FileKind.SPLASH,
    "usr/share/fonts/a.ttf": FileKind.SPLASH,
    "usr/lib/libc.so.6": FileKind.LIBRARIES,
    "usr/lib/systemd/systemd": FileKind.PROGRAMS,
    "etc/systemd/dbus.socket": FileKind.OTHER,
}


def test_the_path_tells_what_a_file_is_for() -> None:
    files = {path: b"\x7fELF" + bytes(100) for path in PURPOSES}
    files["etc/systemd/dbus.socket"] = b"p" * 5
    for path, data in files.items():
        contents = read(archive({path: data}))
        [use] = [kind for kind in contents.kinds if kind.files]
        assert (use.kind, use.files, use.size_bytes) == (PURPOSES[path], 1, len(data)), path
        assert [file.kind for file in contents.largest] == [use.kind]


def noise(size_bytes: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(size_bytes)


@pytest.mark.parametrize("codec", Codec)
def test_every_byte_of_the_image_is_of_one_kind(codec: Codec) -> None:
    early = padded(archive({"kernel/x86/microcode/GenuineIntel.bin": b"u" * 9999}))
    main = archive(
        {
            f"{MODULES}/drivers/gpu/a.ko": bytes(1 << 20),
            f"{MODULES}/fs/b.ko": noise(1 << 20, 1),
            f"{MODULES}/net/c.ko.zst": ZSTD_FILE[:4] + noise(1 << 20, 2),
        }
    )
    config = images.bootconfig()
    image = early + compress(codec, main) + bytes(40) + config
    contents = read(image)
    found = {use.kind: use for use in contents.kinds}
    assert sum(use.stored_bytes for use in contents.kinds) == len(image)
    assert sum(use.unpacked_bytes for use in contents.kinds) == contents.unpacked_bytes
    assert found[FileKind.MICROCODE].decompressed_bytes == 0
    assert found[FileKind.MICROCODE].stored_bytes == found[FileKind.MICROCODE].unpacked_bytes
    assert found[FileKind.OTHER].stored_bytes >= 40 + len(config)
    for kind in (FileKind.GRAPHICS, FileKind.FILE_SYSTEMS, FileKind.NETWORK):
        use = found[kind]
        assert (1 << 20) <= use.unpacked_bytes < (1 << 20) + 300
        assert use.decompressed_bytes == (0 if codec is Codec.CAT else use.unpacked_bytes)
    # What was compressed before keeps its length, whatever the others become.
    assert found[FileKind.NETWORK].stored_bytes == pytest.approx(1 << 20, rel=0.02)
    assert found[FileKind.FILE_SYSTEMS].stored_bytes <= (1 << 20) * 1.02


def test_what_belongs_to_no_file_is_other() -> None:
    main = archive({"usr/bin/a": b"a"}) + bytes(1 << 20) + archive({"usr/bin/b": b"b"})
    for image in (images.gzip_member(main), images.gzip_member(main) + bytes(1 << 16) + b"junk"):
        contents = read(image)
        found = {use.kind: use for use in contents.kinds}
        assert sum(use.stored_bytes for use in contents.kinds) == len(image)
        assert found[FileKind.OTHER].unpacked_bytes > 1 << 20
        assert found[FileKind.PROGRAMS].unpacked_bytes < 1000


def test_what_is_there_twice_is_counted_once_more() -> None:
    files = {"a": noise(5000, 1), "b": noise(5000, 2), "c": noise(5000, 1), "d": noise(5000, 1)}
    small = {"e": b"same", "f": b"same"}
    for codec in (Codec.CAT, Codec.GZIP):
        found = read(compress(codec, archive({**files, **small}))).repeated
        assert (found.files, found.size_bytes) == (2, 10_000)
        assert found.decompressed_bytes == (0 if codec is Codec.CAT else 10_000)
        assert 0 < found.stored_bytes <= 10_000
    once = archive({"x": files["a"]})
    assert read(once + once).repeated.files == 1
    linked = io.BytesIO()
    with CpioWriter(linked) as writer:
        writer.entry("x", FILE, files["a"], links=2, inode=7)
        writer.entry("y", FILE, files["a"], links=2, inode=7)
    assert read(once + linked.getvalue()).repeated.files == 0


def test_compressed_files_in_plain_segments_are_told_apart() -> None:
    early = archive({f"{MODULES}/b.ko.zst": ZSTD_FILE})
    contents = read(early + images.gzip_member(archive({f"{MODULES}/c.ko.zst": ZSTD_FILE})))
    modules = next(kind for kind in contents.kinds if kind.kind is FileKind.MODULES)
    assert (modules.compressed_bytes, modules.early_compressed_bytes) == (200, 100)


def test_the_ten_largest_files_come_largest_first() -> None:
    sizes = [5, 17, 3, 11, 2, 13, 7, 19, 1, 23, 29, 31]
    contents = read(archive({f"f{size:02}": bytes(size) for size in sizes}))
    expected = sorted(sizes, reverse=True)[:10]
    assert [file.size_bytes for file in contents.largest] == expected
    assert contents.largest[0].path == "f31"


def test_names_are_made_safe_to_print() -> None:
    name = b"\x1b[31mred\n\xff\xe2\x80\xae\0"
    contents = read(entry(name, b"x" * 9) + archive())
    shown = next(file.path for file in contents.largest if file.size_bytes == 9)
    assert shown.isprintable()
    assert shown == r"\x1b[31mred\n\xff\u202e"


@pytest.mark.parametrize(
    ("files", "generator"),
    [
        ({"buildconfig": b"", "config": b"", "init": b""}, "mkinitcpio"),
        ({"usr/lib/dracut/hooks/cmdline/x.sh": b""}, "dracut"),
        ({"lib/dracut/dracut-034": b""}, "dracut"),
        ({"conf/initramfs.conf": b"", "scripts/init-top/ORDER": b""}, "initramfs-tools"),
        ({"init": b""}, None),
    ],
)
def test_the_generator_is_known_by_its_marks(files: dict[str, bytes], generator: str) -> None:
    assert read(images.gzip_member(archive(files))).generator == generator


def test_the_kernel_is_that_of_most_modules() -> None:
    files = {f"lib/modules/6.1.0/{name}.ko": b"" for name in "abc"}
    files |= {"lib/modules/6.12.0/a.ko": b""}
    contents = read(archive(files))
    assert contents.kernel_release == "6.1.0"
    assert kinds_found(contents) == [FindingKind.SEVERAL_KERNELS]
    assert read(archive()).kernel_release is None


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"squash-root.img": b"hsqs" + bytes(90)}, "squashfs"),
        ({"erofs-root.img": bytes(2000)}, "erofs"),
        ({"root.img": b"x"}, None),
    ],
)
def test_file_systems_inside_are_found(files: dict[str, bytes], expected: str | None) -> None:
    assert read(archive(files)).file_system == expected


def test_microcode_behind_a_compressed_segment_is_noted() -> None:
    microcode = archive({"kernel/x86/microcode/GenuineIntel.bin": b"x"})
    for image in (
        images.gzip_member(microcode),
        padded(images.gzip_member(archive()), 4) + microcode,
    ):
        contents = read(image)
        assert not contents.microcode
        assert FindingKind.LATE_MICROCODE in kinds_found(contents)


def test_microcode_needs_no_directories() -> None:
    microcode = entry(b"kernel/x86/microcode/GenuineIntel.bin\0", b"x")
    contents = read(microcode + archive())
    assert contents.microcode
    assert not kinds_found(contents)


def test_a_uki_is_read_in_the_order_it_is_loaded() -> None:
    microcode = archive({"kernel/x86/microcode/AuthenticAMD.bin": b"x"})
    main = compress(Codec.ZSTD, archive())
    sections = [(".linux", b"MZ"), (".uname", b"6.6.6-uki\n\0"), (".initrd", main)]
    image = pe([*sections, (".ucode", microcode)])
    contents = read(image)
    assert contents.uki
    assert contents.microcode
    assert contents.kernel_release == "6.6.6-uki"
    assert [segment.codec for segment in contents.segments] == [Codec.CAT, Codec.ZSTD]
    assert image[contents.main.offset :].startswith(main)
    assert contents.initrd == ByteRange(offset=contents.main.offset, size_bytes=len(main))


def test_of_several_profiles_the_first_is_read() -> None:
    first, second = archive({"first": b"x"}), archive({"second": b"xx"})
    sections = [(".initrd", first), (".profile", b"ID=a"), (".profile", b"ID=b")]
    contents = read(pe([*sections, (".initrd", second)]))
    assert [file.path for file in contents.largest] == ["first"]


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        (pe([(".linux", b"MZ")]), "without an .initrd section"),
        (b"MZ" + bytes(200), "no PE header"),
        (b"MZ" + bytes(0x3A) + b"\xff\xff\xff\xff", "truncated"),
        (b"", "empty"),
        (bytes(5000), "only zero bytes"),
        (b"text", "neither a cpio archive"),
        (b"\0\0text", "offset 2"),
    ],
)
def test_what_is_no_initramfs_is_said_to_be_none(image: bytes, reason: str) -> None:
    with pytest.raises(BadImageError, match=reason):
        read(image)


def test_junk_behind_an_image_is_located() -> None:
    main = compress(Codec.ZSTD, archive())
    contents = read(main + bytes(3) + b"signature")
    assert contents.junk == ByteRange(offset=len(main) + 3, size_bytes=9)


def test_boot_configuration_is_no_junk() -> None:
    main, config = compress(Codec.ZSTD, archive()), images.bootconfig()
    contents = read(main + config)
    assert contents.junk is None
    assert contents.bootconfig == ByteRange(offset=len(main), size_bytes=len(config))


@pytest.mark.parametrize(
    "damage",
    [
        lambda config: config.replace(b"quiet", b"QUIET"),
        lambda config: b"\xff\xff" + config[2:],
        lambda config: config[:-1],
        lambda config: config[:-20] + b"\xff\xff\xff\x7f" + config[-16:],
    ],
)
def test_damaged_boot_configuration_is_junk(damage: object) -> None:
    assert callable(damage)
    contents = read(compress(Codec.ZSTD, archive()) + damage(images.bootconfig()))
    assert contents.bootconfig is None
    assert contents.junk


def written(*entries: tuple[str, int, dict[str, int]]) -> bytes:
    """Return an archive of entries with a mode and further fields each."""
    file = io.BytesIO()
    with CpioWriter(file) as writer:
        for path, mode, fields in entries:
            data = b"t" if mode == 0o100644 else b""
            writer.entry(path, mode, data, links=fields.get("links", 1), inode=fields.get("inode"))
    return file.getvalue()


FILE, DIRECTORY = 0o100644, 0o040755


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (written(("a/b", FILE, {})), [FindingKind.MISSING_PARENT]),
        (written(("a/b", DIRECTORY, {}), ("a/b/c", FILE, {})), [FindingKind.MISSING_PARENT]),
        (written(("a", DIRECTORY, {}), ("a/b", FILE, {})), []),
        (written(("a", FILE, {}), ("a/b", FILE, {})), [FindingKind.MISSING_PARENT]),
        (written(("dev/console", 0o020600, {})), []),
        (written(("./a/", DIRECTORY, {}), ("a//b", FILE, {})), []),
        (written(("/a", DIRECTORY, {}), ("a/b", FILE, {})), [FindingKind.ABSOLUTE]),
        (written(("../../a", DIRECTORY, {}), ("a/b", FILE, {})), [FindingKind.DOT_DOT]),
        (written((".", DIRECTORY, {}), ("a", DIRECTORY, {})), []),
    ],
)
def test_entries_without_a_directory_are_noted(image: bytes, expected: list[FindingKind]) -> None:
    assert kinds_found(read(image)) == expected


def test_directories_stay_from_one_segment_to_the_next() -> None:
    first = written(("a", DIRECTORY, {}))
    second = written(("a/b", FILE, {}))
    assert not kinds_found(read(first + images.gzip_member(second)))


@pytest.mark.parametrize(
    ("links", "path", "found"),
    [
        ({"lib": "usr/lib"}, "lib/x", True),
        ({"lib": "/usr/lib"}, "lib/x", True),
        ({"lib": "usr/./lib/../lib"}, "lib/x", True),
        ({"usr/lib/up": "../lib"}, "usr/lib/up/x", True),
        ({"lib": "usr/nowhere"}, "lib/x", False),
        ({"lib": "other", "other": "lib"}, "lib/x", False),
        ({"a": "b", "b": "c", "c": "usr"}, "a/lib/x", True),
        ({"lib": ""}, "lib/x", False),
    ],
)
def test_directories_may_be_symbolic_links(
    links: dict[str, str], path: str, *, found: bool
) -> None:
    file = io.BytesIO()
    with CpioWriter(file) as writer:
        writer.directory("usr")
        writer.directory("usr/lib")
        for name, target in links.items():
            writer.entry(name, S_IFLNK | 0o777, target.encode())
        writer.file(path, b"x")
    assert (FindingKind.MISSING_PARENT in kinds_found(read(file.getvalue()))) != found


def test_links_to_a_dropped_file_are_dropped() -> None:
    linked = {"links": 2, "inode": 7}
    image = written(("no/where", FILE, linked), ("b", FILE, linked))
    assert kinds_found(read(image)) == [FindingKind.MISSING_PARENT, FindingKind.DROPPED_LINK]


def test_a_trailer_ends_what_is_known_of_links() -> None:
    linked = {"links": 2, "inode": 7}
    first, second = written(("no/where", FILE, linked)), written(("b", FILE, linked))
    contents = read(images.gzip_member(first + second))
    assert kinds_found(contents) == [FindingKind.MISSING_PARENT]


def test_findings_are_counted_and_the_first_is_kept() -> None:
    contents = read(written(("no/a", FILE, {}), ("no/b", FILE, {}), ("no/c", FILE, {})))
    (finding,) = contents.main.findings
    assert (finding.count, finding.offset, finding.example) == (3, 0, "no/a")
