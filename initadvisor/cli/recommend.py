"""``initadvisor recommend``: which compression suits this machine, and how sure that is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from initadvisor.cli.options import FileName, Single
from initadvisor.core.config import Objective

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@click.option(
    "--image",
    type=FileName(),
    help="Weigh this image, of any machine, instead of this machine's own.",
)
@click.option(
    "--sample",
    is_flag=True,
    help="Make an image of this machine's modules and programs, where it has no initramfs.",
)
@click.option(
    "--kernel-config",
    type=FileName(),
    help="The configuration of the kernel that is to unpack the image (plain or .gz).",
)
@click.option(
    "--read-speed",
    type=Single(min=0.01, max=1e6),
    metavar="MB/S",
    help="How fast the boot loader reads, if you know it.",
)
@click.option(
    "--shadow",
    type=Single(min=0, max=1e6),
    metavar="MS",
    help="For how long the kernel does not wait for the initramfs, if you know it.",
)
@click.option(
    "--objective",
    type=click.Choice([str(objective) for objective in Objective]),
    help="What is to be small: the time of a boot, the image, or boot and build together.",
)
@click.option("--only", multiple=True, metavar="SETTING", help="Weigh only this; may be repeated.")
@click.option("--all", "everything", is_flag=True, help="Weigh the hopeless settings, too.")
@click.option(
    "--build", is_flag=True, help="Build the candidates that may be the best, and weigh them again."
)
@click.option(
    "--lab",
    is_flag=True,
    help="Build them, and let kernels unpack them in virtual machines before they are weighed.",
)
@click.option("--explain", is_flag=True, help="Say why: what decides, and what was assumed.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def recommend(
    *,
    image: Path | None,
    sample: bool,
    kernel_config: Path | None,
    read_speed: float | None,
    shadow: float | None,
    objective: str | None,
    only: tuple[str, ...],
    everything: bool,
    build: bool,
    lab: bool,
    explain: bool,
    as_json: bool,
) -> None:
    """Say which initramfs compression suits this machine, and how sure that is.

    What a candidate would be is estimated from a sample of the image's content, in seconds, until
    it is built (--build), which is done beside the image in use and at idle priority; nothing of
    the machine is changed. Without a reboot it stays open how fast the boot loader reads, so "keep
    what you have" is a frequent answer.
    """
    from initadvisor.advise.evaluation import Request
    from initadvisor.advise.recommend import recommend as ask
    from initadvisor.cli.recommend_json import as_document
    from initadvisor.cli.recommend_text import print_recommendation
    from initadvisor.cli.rendering.progress import Progress
    from initadvisor.core.settings import Setting
    from initadvisor.host import Host

    if image is not None and sample:
        msg = "--image and --sample exclude each other"
        raise click.UsageError(msg)
    request = Request(
        image=image,
        sample=sample,
        kernel_config=kernel_config,
        read_speed_mb_s=read_speed,
        shadow_ms=shadow,
        objective=Objective(objective) if objective else None,
        only=tuple(Setting.parse(text) for text in only),
        everything=everything,
        build=build or lab,
        lab=lab,
        explain=explain,
    )
    with Progress() as progress:
        answer = ask(Host(), request, observer=progress)
    if as_json:
        import json

        click.echo(json.dumps(as_document(answer), indent=2, allow_nan=False))
    else:
        print_recommendation(answer)
