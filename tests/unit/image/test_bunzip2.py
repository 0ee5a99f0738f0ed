"""What the end of a bzip2 block is like, held against doing it the slow way."""

from __future__ import annotations

import random

import pytest

from initadvisor.image.decompressors.bunzip2 import RunLengths, ends_with_run


def run_lengths(data: bytes) -> bytes:
    encoded, start = b"", 0
    while start < len(data):
        end = start
        while end < len(data) and data[end] == data[start] and end - start < 255:
            end += 1
        length = end - start
        encoded += data[start : min(start + 4, end)]
        encoded += bytes([length - 4]) if length >= 4 else b""
        start = end
    return encoded


def last_two(block: bytes) -> bytes:
    rotations = sorted(range(len(block)), key=lambda start: block[start:] + block[:start])
    return bytes(block[start - 1] for start in rotations[-2:])


def blocks(seed: int) -> list[bytes]:
    source = random.Random(seed)
    found = []
    for _ in range(300):
        alphabet = source.choice((b"ab", b"\0\1\xff", bytes(range(256))))
        if source.random() < 0.4:
            lengths = source.choices((1, 2, 3, 4, 5, 254, 255, 256, 259, 700), k=5)
            found.append(b"".join(bytes([source.choice(alphabet)]) * n for n in lengths))
        else:
            found.append(bytes(source.choices(alphabet, k=source.randrange(2, 200))))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_runs_are_shortened_whatever_the_pieces(seed: int) -> None:
    source = random.Random(seed)
    encoder = RunLengths()
    for block in blocks(seed):
        start = 0
        while start < len(block):
            length = source.randrange(1, 300)
            encoder.add(block[start : start + length])
            start += length
        assert encoder.finish() == run_lengths(block)


@pytest.mark.parametrize("seed", range(3))
def test_the_last_two_bytes_of_the_transform_are_compared(seed: int) -> None:
    outcomes = set()
    for block in blocks(seed):
        if (block * 2).find(block, 1) == len(block):  # equal rotations have no order
            first, second = last_two(block)
            assert ends_with_run(block) == (first == second)
            outcomes.add(first == second)
    assert outcomes == {True, False}


def test_a_block_that_repeats_itself_is_taken_for_a_run() -> None:
    assert ends_with_run(b"01234" * 20_000)
    assert ends_with_run(bytes(5000))
