"""Which settings are tried, and what each takes to build."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

from initadvisor.candidates.schedule import expected_cpu_s
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import ProgramError
from initadvisor.core.settings import Setting
from initadvisor.image.decompressors.decompress import missing_library
from initadvisor.records.built_image import SkippedSetting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from initadvisor.core.config import Config
    from initadvisor.generators import Generator
    from initadvisor.host import Host


_VERSION_TIMEOUT_S = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildCommand:
    """How a setting is built: the compressor's command line, and the version it tells of itself.

    ``key`` names the result: it is made of the digest of the image, the command line and the
    version, so that two candidates with the same key have the same bytes.
    """

    setting: Setting
    argv: tuple[str, ...]
    key: str


def plan_settings(
    host: Host,
    generator: Generator,
    config: Config,
    *,
    only: Sequence[Setting] = (),
    also: Sequence[Setting] = (),
    everything: bool = False,
) -> tuple[Setting, ...]:
    """Return the settings to build: contenders first, cheap before costly, slow ones last.

    ``only`` is built as it stands. Otherwise it is what the configuration lists, or each codec as
    the generator would run it and the levels worth trying; of that default set the slow ones
    only if ``everything`` is asked for. ``also`` (today's setting) is added in any case. Of several
    settings that lead to the same command line the first is kept.
    """
    wanted = list(only or config.settings or _default_settings(host, generator))
    if not (only or config.settings or everything):
        wanted = [setting for setting in wanted if setting.codec not in config.slow_codecs]
    return tuple(
        sorted(
            _distinct(host, generator, (*also, *wanted)),
            key=lambda setting: (
                setting.codec in config.slow_codecs,
                expected_cpu_s(setting.codec, generator.default_level(host, setting), 1),
            ),
        )
    )


def build_commands(
    host: Host, generator: Generator, settings: Sequence[Setting], *, image_sha256: str
) -> tuple[tuple[BuildCommand, ...], tuple[SkippedSetting, ...]]:
    """Return how each setting is built from the image with this digest; gaps where it cannot be."""
    version = cache(partial(program_version, host))
    planned = [_planned(host, generator, setting, image_sha256, version) for setting in settings]
    return (
        tuple(one for one in planned if isinstance(one, BuildCommand)),
        tuple(one for one in planned if isinstance(one, SkippedSetting)),
    )


def _planned(
    host: Host,
    generator: Generator,
    setting: Setting,
    image_sha256: str,
    version: Callable[[str], str],
) -> BuildCommand | SkippedSetting:
    argv = generator.compressor(host, setting)
    if host.runner.which(argv[0]) is None:
        reason = f"{argv[0]} is not installed"
    elif lack := missing_library(setting.codec):
        reason = lack.message
    else:
        try:
            key = _key(image_sha256, argv, version(argv[0]))
            return BuildCommand(setting=setting, argv=argv, key=key)
        except ProgramError as err:
            reason = err.message
    return SkippedSetting(setting=setting, reason=reason)


def own_uncompressed_key(host: Host, generator: Generator, *, image_sha256: str) -> str:
    """Return the key of the uncompressed image that the generator itself builds."""
    return _key(image_sha256, generator.NAME, generator.version(host))


def program_version(host: Host, program: str) -> str:
    """Return all that a compressor says of its version (xz: also of its library's).

    It is asked with an empty stdin: bzip2, having told, goes on to compress.
    """
    completed = host.runner.run([program, "--version"], timeout_s=_VERSION_TIMEOUT_S, check=False)
    return (completed.stdout + completed.stderr).decode(errors="replace")


def _key(*parts: str | tuple[str, ...] | None) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _default_settings(host: Host, generator: Generator) -> Iterator[Setting]:
    for codec in Codec:
        plain = Setting(codec)
        yield plain
        default = generator.default_level(host, plain)
        yield from (Setting.at_level(codec, n) for n in codec.spec.worth_trying if n != default)


def _distinct(host: Host, generator: Generator, settings: Iterable[Setting]) -> tuple[Setting, ...]:
    by_command: dict[tuple[str, ...], Setting] = {}
    for setting in settings:
        by_command.setdefault(generator.compressor(host, setting), setting)
    return tuple(by_command.values())
