"""Which image a boot used: what each witness says, alone and against the others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.boots.attribute import attribute
from initadvisor.core.estimates import Certainty
from initadvisor.records.attribution import AttributionSource, ImageEvidence, KnownImage

ZSTD = KnownImage(
    path="/boot/initramfs-linux.img", size_bytes=22_716_001, sha256="a" * 64, entries=("arch.conf",)
)
LZ4 = KnownImage(
    path="/boot/initadvisor/lz4.img",
    size_bytes=31_000_002,
    sha256="b" * 64,
    candidate=True,
    trial="7",
    entries=("trial.conf",),
)
UKI = KnownImage(
    path="/efi/EFI/Linux/arch.efi", size_bytes=22_716_001, sha256="c" * 64, is_uki=True
)
BOTH = (ZSTD, LZ4)
NOT_UKI = ImageEvidence(from_uki=False)


def freed(size_bytes: int, page_bytes: int = 4096) -> int:
    """Return what x86 says it freed: whole pages, the last one counted."""
    return -(-size_bytes // page_bytes) * page_bytes // 1024


@pytest.mark.parametrize(
    ("traces", "image", "certainty", "witnesses"),
    [
        (
            ImageEvidence(loaded_sha256="a" * 64),
            ZSTD,
            Certainty.CERTAIN,
            (AttributionSource.DIGEST,),
        ),
        (
            ImageEvidence(loaded_bytes=22_716_001),
            ZSTD,
            Certainty.CERTAIN,
            (AttributionSource.LOADED_SIZE,),
        ),
        (ImageEvidence(trial="7"), LZ4, Certainty.LIKELY, (AttributionSource.TAG,)),
        (
            ImageEvidence(freed_kib=freed(22_716_001)),
            ZSTD,
            Certainty.LIKELY,
            (AttributionSource.FREED_SIZE,),
        ),
        (ImageEvidence(entry="trial.conf"), LZ4, Certainty.LIKELY, (AttributionSource.ENTRY,)),
        (
            ImageEvidence(trial="7", freed_kib=freed(31_000_002)),
            LZ4,
            Certainty.CERTAIN,
            (AttributionSource.TAG, AttributionSource.FREED_SIZE),
        ),
        (
            ImageEvidence(freed_kib=freed(22_716_001), entry="arch.conf"),
            ZSTD,
            Certainty.LIKELY,
            (AttributionSource.FREED_SIZE, AttributionSource.ENTRY),
        ),
        (
            ImageEvidence(
                loaded_bytes=31_000_002,
                loaded_sha256="b" * 64,
                freed_kib=freed(31_000_002),
                trial="7",
                entry="trial.conf",
            ),
            LZ4,
            Certainty.CERTAIN,
            (
                AttributionSource.DIGEST,
                AttributionSource.LOADED_SIZE,
                AttributionSource.TAG,
                AttributionSource.ENTRY,
            ),
        ),
    ],
)
def test_witnesses_tell_the_image_and_how_certain_it_is(
    traces: ImageEvidence,
    image: KnownImage,
    certainty: Certainty,
    witnesses: tuple[AttributionSource, ...],
) -> None:
    found = attribute(traces, BOTH)
    assert (found.image, found.certainty, found.sources) == (image, certainty, witnesses)
    assert image.path in found.reason


@pytest.mark.parametrize(
    ("traces", "words"),
    [
        (ImageEvidence(), "nothing tells"),
        (NOT_UKI, "nothing tells"),
        (ImageEvidence(loaded_bytes=0), "no initramfs"),
        (ImageEvidence(loaded_bytes=22_716_000), "no known image fits the size"),
        (ImageEvidence(loaded_bytes=22_716_005), "no known image fits the size"),
        (ImageEvidence(freed_kib=freed(22_716_001) + 4), "no known image fits the memory"),
        (ImageEvidence(freed_kib=freed(22_716_001) - 8), "no known image fits the memory"),
        (ImageEvidence(trial="8"), "no known image fits the trial's tag"),
        (ImageEvidence(loaded_sha256="f" * 64), "no known image fits the digest"),
        # the trial's entry was booted, but not with the file that was built for it
        (ImageEvidence(trial="7", loaded_bytes=22_716_001), "fits the size"),
        (ImageEvidence(loaded_bytes=22_716_001, entry="trial.conf"), "and the boot loader's entry"),
        (ImageEvidence(loaded_bytes=22_716_001, freed_kib=23_000), "freed more than"),
        (ImageEvidence(from_uki=True, loaded_bytes=22_716_001), "no known image"),
    ],
)
def test_what_fits_nothing_is_unknown_and_says_why(traces: ImageEvidence, words: str) -> None:
    found = attribute(traces, BOTH)
    assert (found.certainty, found.images, found.image) == (Certainty.UNKNOWN, (), None)
    assert words in found.reason


TWIN = replace(LZ4, path="/boot/twin.img", size_bytes=ZSTD.size_bytes, sha256="d" * 64)


@pytest.mark.parametrize(
    "traces",
    [ImageEvidence(loaded_bytes=22_716_001), ImageEvidence(freed_kib=freed(22_716_001))],
)
def test_several_of_one_size_are_ambiguous(traces: ImageEvidence) -> None:
    found = attribute(traces, (ZSTD, TWIN))
    assert (found.certainty, found.image) == (Certainty.AMBIGUOUS, None)
    assert found.images == (ZSTD, TWIN)


@pytest.mark.parametrize(
    ("told_by", "image", "certainty"),
    [
        (ImageEvidence(loaded_sha256="d" * 64), TWIN, Certainty.CERTAIN),
        (ImageEvidence(trial="7"), TWIN, Certainty.CERTAIN),
        (ImageEvidence(entry="arch.conf"), ZSTD, Certainty.LIKELY),
    ],
)
def test_of_one_size_another_witness_tells_them_apart(
    told_by: ImageEvidence, image: KnownImage, certainty: Certainty
) -> None:
    found = attribute(replace(told_by, loaded_bytes=22_716_001), (ZSTD, TWIN))
    assert (found.image, found.certainty) == (image, certainty)


def test_the_same_content_in_two_files_is_one_image() -> None:
    copy = replace(ZSTD, path="/boot/copy.img", entries=())
    found = attribute(ImageEvidence(loaded_bytes=22_716_001), (ZSTD, copy))
    assert (found.certainty, found.image) == (Certainty.CERTAIN, ZSTD)
    assert found.images == (ZSTD, copy)


def test_a_digest_is_believed_against_tag_and_entry() -> None:
    traces = ImageEvidence(loaded_sha256="a" * 64, trial="7", entry="trial.conf")
    found = attribute(traces, BOTH)
    assert (found.image, found.certainty) == (ZSTD, Certainty.CERTAIN)


def test_an_entry_says_nothing_of_an_image_whose_entries_are_not_known() -> None:
    unlisted = replace(ZSTD, entries=())
    found = attribute(ImageEvidence(loaded_bytes=22_716_001, entry="arch.conf"), (unlisted, LZ4))
    assert (found.image, found.sources) == (unlisted, (AttributionSource.LOADED_SIZE,))


@pytest.mark.parametrize(
    ("loaded", "fits"),
    [
        (8_000_003 + 22_716_001, True),  # one behind the other, as the EFI stub does it
        (8_000_004 + 22_716_001, True),  # each begins at a multiple of 4
        (8_000_004 + 22_716_004, True),  # the last is padded, too
        (8_000_004 + 22_716_005, False),
        (8_000_003 + 22_716_000, False),
        (22_716_001, False),
    ],
)
def test_microcode_that_is_loaded_beside_counts(loaded: int, *, fits: bool) -> None:
    image = replace(ZSTD, beside_bytes=(8_000_003,))
    found = attribute(ImageEvidence(loaded_bytes=loaded), (image, LZ4))
    assert (found.certainty is Certainty.CERTAIN) is fits
    assert (found.image is not None) is fits


@pytest.mark.parametrize(
    ("image", "loaded_bytes"),
    [
        (replace(ZSTD, beside_bytes=(8_000_000,)), 30_716_001),  # microcode is in the digest
        (ZSTD, 22_716_004),  # so is padding
        (ZSTD, None),  # which may be there
    ],
)
def test_a_digest_of_more_than_the_file_does_not_speak_against_it(
    image: KnownImage, loaded_bytes: int | None
) -> None:
    traces = ImageEvidence(loaded_bytes=loaded_bytes, loaded_sha256="e" * 64, entry="arch.conf")
    assert attribute(traces, (image,)).image == image


@pytest.mark.parametrize("size_bytes", [22_716_000, 22_716_001])
def test_a_digest_of_just_the_file_speaks_against_it(size_bytes: int) -> None:
    image = replace(ZSTD, size_bytes=size_bytes)
    traces = ImageEvidence(loaded_bytes=size_bytes, loaded_sha256="e" * 64)
    assert attribute(traces, (image,)).certainty is Certainty.UNKNOWN


@pytest.mark.parametrize(
    ("loaded", "certainty"),
    [
        (22_716_000, Certainty.UNKNOWN),
        (22_716_001, Certainty.LIKELY),
        (22_716_004 + 512, Certainty.LIKELY),
        (22_716_004 + 65_536, Certainty.LIKELY),
        (22_716_004 + 65_537, Certainty.UNKNOWN),  # a system extension, or another image
    ],
)
def test_the_size_of_a_uki_includes_what_its_stub_adds(loaded: int, certainty: Certainty) -> None:
    found = attribute(ImageEvidence(from_uki=True, loaded_bytes=loaded), (UKI, ZSTD, LZ4))
    assert found.certainty is certainty
    assert found.image == (None if certainty is Certainty.UNKNOWN else UKI)


def test_two_ukis_of_nearly_one_size_are_ambiguous() -> None:
    other = replace(UKI, path="/efi/EFI/Linux/b.efi", size_bytes=22_720_000, sha256="d" * 64)
    traces = ImageEvidence(from_uki=True, loaded_bytes=22_721_000)
    assert attribute(traces, (UKI, other)).certainty is Certainty.AMBIGUOUS
    told = attribute(replace(traces, section_sha256="d" * 64), (UKI, other))
    assert (told.image, told.certainty) == (other, Certainty.CERTAIN)


def test_the_digest_of_a_uki_is_that_of_its_section() -> None:
    traces = ImageEvidence(from_uki=True, loaded_sha256="e" * 64, section_sha256="c" * 64)
    assert attribute(traces, (UKI,)).certainty is Certainty.CERTAIN
    assert attribute(replace(traces, section_sha256="e" * 64), (UKI,)).image is None


def test_less_may_be_freed_than_was_loaded() -> None:
    traces = ImageEvidence(loaded_bytes=22_716_001, freed_kib=12_000)  # a crash kernel's memory
    assert attribute(traces, BOTH).certainty is Certainty.CERTAIN


@pytest.mark.parametrize("page_bytes", [4096, 16_384, 65_536])
@pytest.mark.parametrize("rounding", ["up", "down"])
def test_pages_are_of_any_size_and_rounded_up_or_down(page_bytes: int, rounding: str) -> None:
    up = freed(22_716_001, page_bytes)
    traces = ImageEvidence(
        freed_kib=up if rounding == "up" else up - page_bytes // 1024, page_bytes=page_bytes
    )
    assert attribute(traces, BOTH).image == ZSTD


def test_no_images_are_none_that_fits() -> None:
    assert attribute(ImageEvidence(loaded_bytes=5), ()).certainty is Certainty.UNKNOWN


SIZES = st.integers(0, 40_000)
SHAS = st.sampled_from(["a" * 64, "b" * 64, "c" * 64])
IMAGES = st.builds(
    KnownImage,
    path=st.just("/boot/x"),
    size_bytes=st.integers(1, 20_000),
    sha256=SHAS,
    is_uki=st.booleans(),
    beside_bytes=st.lists(SIZES, max_size=2).map(tuple),
    trial=st.sampled_from([None, "7"]),
    entries=st.sampled_from([(), ("a",), ("a", "b")]),
)
TRACES = st.builds(
    ImageEvidence,
    from_uki=st.none() | st.booleans(),
    loaded_bytes=st.none() | SIZES,
    loaded_sha256=st.none() | SHAS,
    section_sha256=st.none() | SHAS,
    freed_kib=st.none() | st.integers(0, 40),
    trial=st.sampled_from([None, "7", "8"]),
    entry=st.sampled_from([None, "a", "b", "z"]),
)


@given(traces=TRACES, images=st.lists(IMAGES, max_size=5).map(tuple))
def test_a_verdict_never_contradicts_itself(
    traces: ImageEvidence, images: tuple[KnownImage, ...]
) -> None:
    found = attribute(traces, images)
    contents = {image.sha256 for image in found.images}
    assert set(found.images) <= set(images)
    match found.certainty:
        case Certainty.UNKNOWN:
            assert not contents
            assert not found.sources
        case Certainty.AMBIGUOUS:
            assert len(contents) > 1
        case Certainty.CERTAIN | Certainty.LIKELY:
            assert len(contents) == 1
            assert found.sources
    assert attribute(traces, images[::-1]).certainty is found.certainty
