"""Signatures are told from bytes that look like some, and belong to the very file."""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import BadImageError
from initadvisor.image.authenticode import Signature, read_signatures
from tests.fixtures.signing import Signer, make_signer
from tests.fixtures.small_images import archive, signed, uki

if TYPE_CHECKING:
    from pathlib import Path


def read(image: bytes) -> tuple[Signature, ...]:
    """Return what is found in a file."""
    return read_signatures(io.BytesIO(image), len(image))


@pytest.fixture(scope="module")
def signer(tmp_path_factory: pytest.TempPathFactory) -> Signer:
    """Somebody with a key."""
    return make_signer(tmp_path_factory.mktemp("signer"), "signer")


def test_a_file_without_signatures_has_none() -> None:
    assert read(uki(archive())) == ()
    assert read(signed(uki(archive()), slots=4)) == ()


def test_every_signature_is_found(signer: Signer, tmp_path: Path) -> None:
    once = signer.signed(signed(uki(archive())))
    [first] = read(once)
    assert signer.certificate in first.pkcs7
    other = make_signer(tmp_path, "other")
    twice = other.signed(once)
    assert [
        own.certificate in one.pkcs7 for own, one in zip((signer, other), read(twice), strict=True)
    ] == [
        True,
        True,
    ]


def test_whatever_bit_is_changed_it_is_not_the_signed_file_any_more(signer: Signer) -> None:
    image = signer.signed(signed(uki(archive())))
    table = struct.unpack_from("<I", image, 0x58 + 112 + 32)[0]
    checksum = range(0x58 + 64, 0x58 + 68)
    for position in (*range(0, 0x400, 3), *range(0x400, table, 97)):
        if position in checksum:
            continue  # which is not signed, as whoever signs changes it
        changed = bytearray(image)
        changed[position] ^= 1
        try:
            found = read(bytes(changed))
        except BadImageError:
            continue
        assert found == (), position


@pytest.mark.parametrize("cut", [1, 7, 8, 100, 2000])
def test_a_cut_table_is_no_signature(signer: Signer, cut: int) -> None:
    image = signer.signed(signed(uki(archive())))
    with pytest.raises(BadImageError):
        read(image[:-cut])


def test_what_lies_behind_the_signatures_is_not_taken_for_signed(signer: Signer) -> None:
    with pytest.raises(BadImageError, match="behind everything else"):
        read(signer.signed(signed(uki(archive()))) + bytes(512))
