"""Lint of many images, each judged once: a verdict depends on nothing but bytes and a kernel."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from initadvisor import __version__
from initadvisor.host.cached import keep, read_cached
from initadvisor.image.contents import Lint, Verdict
from initadvisor.image.lint import lint
from initadvisor.image.scan import scan
from initadvisor.lab.evidence import refused_by_kernel

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from initadvisor.candidates.candidate import Candidate
    from initadvisor.candidates.decompression import Stream
    from initadvisor.host import Host
    from initadvisor.image.contents import ImageContents
    from initadvisor.image.kernel import KernelConfig
    from initadvisor.target.source import Source


def lint_all(
    host: Host,
    source: Source,
    candidates: Sequence[Candidate],
    *,
    config: KernelConfig | None,
    release: str | None,
) -> dict[str, Lint]:
    """Return the verdict on each contender by its digest.

    Of one that was not built it is that on the same content in a stream like the sample's. Verdicts
    are kept on disk, so that an image is unpacked for this once per kernel.
    """

    def verdict(stream: Stream) -> Lint:
        if stream.sha256 == source.initrd_sha256:
            return lint(source.contents, config, release)
        path = _file(host, stream, config, release)
        if kept := read_cached(path, Lint):
            return kept
        with stream.path.open("rb") as file:
            found = lint(scan(file), config, release)
        keep(path, found, what="a verdict")
        return found

    with ThreadPoolExecutor(host.cores) as pool:
        built = [candidate.stream for candidate in candidates if candidate.stream]
        found = dict(zip([s.sha256 for s in built], pool.map(verdict, built), strict=True))
    for candidate in candidates:
        if candidate.stream is None:
            contents = _as_it_would_be(source.contents, candidate)
            found[candidate.digest] = lint(contents, config, release)
    return found


def verdicts_on(
    host: Host,
    source: Source,
    candidates: Sequence[Candidate],
    *,
    config: KernelConfig | None,
    release: str | None,
) -> dict[str, Lint]:
    """Return the same, overruled where this machine's kernel refused what lint would pass."""
    verdicts = lint_all(host, source, candidates, config=config, release=release)
    refusals = refused_by_kernel(host, verdicts, release)
    return {
        digest: replace(found, verdict=Verdict.REFUSED, reasons=(*found.reasons, refusals[digest]))
        if digest in refusals
        else found
        for digest, found in verdicts.items()
    }


def _as_it_would_be(contents: ImageContents, candidate: Candidate) -> ImageContents:
    """Return the contents of an image whose main segment was compressed anew."""
    facts = candidate.sampled.facts if candidate.sampled else ()
    main = replace(contents.main, codec=candidate.codec, streams=1, facts=facts)
    return replace(contents, segments=(*contents.segments[:-1], main))


def _file(host: Host, stream: Stream, config: KernelConfig | None, release: str | None) -> Path:
    options = sorted(config.options.items()) if config else None
    source = config.source if config else None
    key = json.dumps([__version__, stream.sha256, release, source, options])
    return host.cache_dir() / "verdicts" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"
