"""``initadvisor inspect``: what is in an initramfs, and would this kernel unpack it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from initadvisor.cli.options import FileName

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@click.argument("image", type=FileName())
@click.option(
    "--kernel-config",
    type=FileName(),
    metavar="FILE",
    help="The configuration of the kernel that is to unpack the image (plain or .gz).",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def inspect(*, image: Path, kernel_config: Path | None, as_json: bool) -> None:
    """Show what is in IMAGE, and whether its kernel would unpack it.

    IMAGE is an initramfs or a unified kernel image. The verdict needs the configuration of the
    kernel: --kernel-config, else that of the installed kernel the image is for. An image that the
    kernel would refuse is a result, too: the exit status is 0 wherever the image can be read.
    """
    from initadvisor.cli.reading import read_image

    # Reading starts before what is needed to show the result is imported.
    with read_image(image) as reading:
        if as_json:
            from initadvisor.cli.rendering.inspect_text import print_document as show
        else:
            from initadvisor.cli.rendering.inspect_text import print_result as show
        from initadvisor.host import Host
        from initadvisor.image.lint import lint
        from initadvisor.target.kernel_config import find_kernel_config, read_kernel_config

        host = Host()
        config = read_kernel_config(kernel_config) if kernel_config else None
        contents = reading.contents()
        release = contents.kernel_release
        if config is None and release:
            config = find_kernel_config(host, release)
        verdict = lint(contents, config, release)
    show(str(image), contents, verdict, config)
