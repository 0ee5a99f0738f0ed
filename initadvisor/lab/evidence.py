"""What the lab measured of the contenders, and what lint and kernels say of them.

Times are of this machine's kernel or of another one. Each image is judged once: a verdict depends
on nothing but bytes and a kernel.
"""

from __future__ import annotations

import hashlib
import json
import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from math import hypot
from typing import TYPE_CHECKING

from initadvisor import __version__
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError
from initadvisor.core.estimates import Evidence
from initadvisor.data.tables import calibration
from initadvisor.decide.cost import Quantity
from initadvisor.decide.repeats import pooled
from initadvisor.host.cached import keep, read_cached
from initadvisor.host.files import open_regular, sha256_of
from initadvisor.host.hardware import cpu_model
from initadvisor.image.contents import Lint, Verdict
from initadvisor.image.lint import lint
from initadvisor.image.scan import scan
from initadvisor.records.lab import Engine, Unpacked
from initadvisor.store.store import open_store
from initadvisor.vm.kernel import find_kernel

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from initadvisor.candidates.decompression import Stream
    from initadvisor.candidates.search_space import Candidate
    from initadvisor.host import Host
    from initadvisor.image.contents import ImageContents
    from initadvisor.image.kernel import KernelConfig
    from initadvisor.records.lab import LabKernel, Verification
    from initadvisor.store.store import Store
    from initadvisor.target.source import Source


log = logging.getLogger(__name__)

_LEAST_CERTAINTY = 2.0
"""A difference that is not this many times its standard deviation tells nothing."""

_BUFFER_LOG_SD = 0.5
"""How far user-mode Linux' time to map a page is from the calibrated one: its host decides it, and
took from 5 to 9 us on different days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabEvidence:
    """What the lab knows, by the digest of the image.

    ``unpack_ms``: U in this machine's own kernel on this processor. ``decompress_ms``: D in another
    kernel on this processor; its source says which. ``warnings``: why there may be more that could
    not be used.
    """

    unpack_ms: Mapping[str, Quantity] = field(default_factory=dict)
    decompress_ms: Mapping[str, Quantity] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def evidence(self, digest: str) -> Evidence:
        """Return what the time to unpack this image rests on."""
        return Evidence.LAB if digest in self.unpack_ms else Evidence.BENCH

    def source(self, digest: str) -> str:
        """Return the same in words, with the other kernel where one was measured."""
        evidence = str(self.evidence(digest))
        if digest in self.unpack_ms or digest not in self.decompress_ms:
            return evidence
        return f"{evidence}: {self.decompress_ms[digest].source}"


def lab_evidence(
    host: Host, candidates: Sequence[Candidate], kernel_release: str | None
) -> LabEvidence:
    """Look up what the lab measured of these very images.

    A data base that cannot be read is a warning: the advice then rests on less.
    """
    try:
        with open_store(host, readonly=True) as store:
            return LabEvidence(
                unpack_ms=_unpack_ms(host, store, candidates, kernel_release),
                decompress_ms=_decompress_ms(host, store, candidates),
            )
    except InitadvisorError as err:
        return LabEvidence(warnings=(f"nothing of the lab is used: {err.message}",))


def refused_by_kernel(
    host: Host, images: Iterable[str], kernel_release: str | None
) -> dict[str, str]:
    """Return, by the digest, the words with which this machine's kernel refused an image.

    What it made of an image last counts. A data base that cannot be read has no words.
    """
    try:
        with open_store(host, readonly=True) as store:
            latest = {image: _latest(store, image, kernel_release) for image in images}
    except InitadvisorError as err:
        log.warning("what kernels refused is not known: %s", err.message)
        return {}
    return {
        image: f"Linux {kernel_release} refused it in a virtual machine: {found.reason}"
        for image, found in latest.items()
        if found and found.unpacked is Unpacked.REFUSED
    }


def _latest(store: Store, image: str, release: str | None) -> Verification | None:
    found = store.verifications(image)
    return next((verified for verified in found if verified.kernel.release == release), None)


def _unpack_ms(
    host: Host, store: Store, candidates: Sequence[Candidate], release: str | None
) -> dict[str, Quantity]:
    """Return U of those that this machine's kernel unpacked in a VM; software emulation never does.

    The kernel's file is read only where there is something to hold it against.
    """
    if release is None or not store.lab_runs(engine=Engine.KVM, limit=1):
        return {}
    try:
        with open_regular(find_kernel(host, release)) as file:
            kernel_sha256 = sha256_of(file)
    except InitadvisorError as err:
        log.info("no kernel to find lab results of: %s", err.message)
        return {}
    samples = store.unpack_samples(
        [candidate.digest for candidate in candidates],
        engine=Engine.KVM,
        kernel_sha256=kernel_sha256,
        cpu_model=cpu_model(host),
    )
    return pooled(_in_ms(samples), source=str(Evidence.LAB))


def _decompress_ms(
    host: Host, store: Store, candidates: Sequence[Candidate]
) -> dict[str, Quantity]:
    """Return D of those that user-mode Linux unpacked: what they took longer than uncompressed.

    All contenders have the same content, so that creating the files takes them the same time. What
    mapping buffers takes in user-mode Linux only is not in it.
    """
    plain = next((c.digest for c in candidates if c.codec is Codec.CAT), None)
    kernel = _latest_kernel(host, store, plain) if plain else None
    if plain is None or kernel is None:
        return {}
    samples = store.unpack_samples(
        [candidate.digest for candidate in candidates],
        engine=Engine.UML,
        kernel_sha256=kernel.sha256,
        cpu_model=cpu_model(host),
    )
    source = f"user-mode Linux {kernel.release}, another kernel"
    unpack = pooled(_in_ms(samples), source=source)
    populate = unpack.pop(plain, None)
    if populate is None:
        return {}
    table = calibration(host)
    per_mb = max(0.0, table.uml_buffer_ms_per_mb - table.buffer_ms_per_mb)
    buffers_ms = {c.digest: per_mb * c.buffer_bytes / 1e6 for c in candidates}
    differences = {
        digest: difference(
            whole, populate, Quantity(median=buffers_ms[digest], log_sd=_BUFFER_LOG_SD)
        )
        for digest, whole in unpack.items()
    }
    return {digest: found for digest, found in differences.items() if found}


def difference(whole: Quantity, *parts: Quantity) -> Quantity | None:
    """Return ``whole`` without its ``parts``, None where nothing is clearly left.

    As wide as all errors together make it, and as a lognormal, which the positive rest is.
    """
    rest = whole.median - sum(part.median for part in parts)
    error = hypot(*(one.median * one.log_sd for one in (whole, *parts)))
    if rest <= _LEAST_CERTAINTY * error:
        return None
    return Quantity(median=rest, log_sd=error / rest, source=whole.source)


def _latest_kernel(host: Host, store: Store, image_sha256: str) -> LabKernel | None:
    """Return the kernel of the latest run of user-mode Linux that has a time of this image."""
    processor = cpu_model(host)
    return next(
        (
            recorded.run.kernel
            for recorded in store.lab_runs(engine=Engine.UML)
            if recorded.run.cpu_model == processor
            and any(sample.image_sha256 == image_sha256 for sample in recorded.samples)
        ),
        None,
    )


def _in_ms(
    samples_us: Mapping[str, Sequence[Sequence[int]]],
) -> dict[str, tuple[tuple[float, ...], ...]]:
    """Return the samples in ms; a coarse clock's 0 tells nothing of how long it took."""
    return {
        digest: tuple(
            kept for run in runs if (kept := tuple(sample / 1000 for sample in run if sample > 0))
        )
        for digest, runs in samples_us.items()
    }


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
        path = _file(host, stream, config, release, followed=source.contents.followed)
        if kept := read_cached(path, Lint):
            return kept
        with stream.path.open("rb") as file:
            contents = replace(scan(file), followed=source.contents.followed)
        found = lint(contents, config, release)
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


def _file(
    host: Host,
    stream: Stream,
    config: KernelConfig | None,
    release: str | None,
    *,
    followed: bool,
) -> Path:
    options = sorted(config.options.items()) if config else None
    source = config.source if config else None
    key = json.dumps([__version__, stream.sha256, release, source, options, followed])
    return host.cache_dir() / "verdicts" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"
