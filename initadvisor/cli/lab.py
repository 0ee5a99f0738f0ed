"""``initadvisor lab``: let a kernel in a virtual machine unpack the images."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from initadvisor.cli.options import FileName, Whole, refuse_if, settings_beginning_with
from initadvisor.cli.rendering.output import print_json
from initadvisor.cli.rendering.progress import LAB_TAKES, Progress
from initadvisor.core.text import shown
from initadvisor.records.lab import Engine

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.lab.verify import Verified


_FILE = FileName()


@click.command()
@click.option("--image", type=_FILE, help="Time this image's candidates, not this machine's.")
@click.option(
    "--only",
    multiple=True,
    metavar="SETTING",
    shell_complete=settings_beginning_with,
    help="Time only this; may be repeated.",
)
@click.option("--all", "everything", is_flag=True, help="Time slow codecs, too, such as bzip2.")
@click.option(
    "--rounds",
    type=Whole(1, 1000),
    help="Boot each image so often, whether the order is settled or not.",
)
@click.option("--verify", type=_FILE, metavar="IMAGE", help="Does this machine's kernel unpack it?")
@click.option("--engines", is_flag=True, help="Try KVM anew, and say which engines are there.")
@click.option(
    "--engine",
    type=click.Choice([str(engine) for engine in Engine]),
    help="Use this engine, not the best that works.",
)
@click.option("--kernel", type=_FILE, help="The kernel's file (a bzImage or a UKI).")
@click.option("--uml", type=_FILE, help="The user-mode Linux to use instead of linux.uml.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def lab(
    *,
    image: Path | None,
    only: tuple[str, ...],
    everything: bool,
    rounds: int | None,
    verify: Path | None,
    engines: bool,
    engine: str | None,
    kernel: Path | None,
    uml: Path | None,
    as_json: bool,
) -> None:
    """Time how long a kernel takes to unpack each candidate, in a virtual machine.

    No reboot is needed and nothing of this machine is changed. With KVM it is this machine's own
    kernel on its own processor; user-mode Linux is another kernel, and says what decompression
    costs, not what this machine's boots do. Without KVM, QEMU proves that an image unpacks.
    """
    from initadvisor.host import Host

    host = Host()
    chosen = Engine(engine) if engine else None
    asked = [bool(verify), engines, bool(image or only or everything)]
    refuse_if(sum(asked) > 1, "--verify, --engines and the images to time exclude each other")
    if verify:
        _verify(host, verify, kernel, chosen, as_json=as_json)
    elif engines:
        _engines(host, kernel, uml, as_json=as_json)
    else:
        _time(
            host, image, only, chosen, kernel, uml, rounds, everything=everything, as_json=as_json
        )


def _time(
    host: Host,
    image: Path | None,
    only: tuple[str, ...],
    engine: Engine | None,
    kernel: Path | None,
    uml: Path | None,
    rounds: int | None,
    *,
    everything: bool,
    as_json: bool,
) -> None:
    from initadvisor.cli.history import print_run, run_document
    from initadvisor.core.settings import Setting
    from initadvisor.lab.timing import LabRequest, run_lab

    request = LabRequest(
        image=image,
        only=tuple(Setting.parse(text) for text in only),
        everything=everything,
        engine=engine,
        kernel=kernel,
        uml=uml,
        rounds=rounds,
    )
    try:
        with Progress(elsewhere=LAB_TAKES) as progress:
            result = run_lab(host, request, observer=progress)
    except KeyboardInterrupt:
        click.echo("initadvisor: what was measured so far is in initadvisor history", err=True)
        raise
    if as_json:
        skipped = [{"setting": str(gap.setting), "reason": gap.reason} for gap in result.skipped]
        print_json({**run_document(result.recorded), "skipped": skipped})
        return
    print_run(result.recorded)
    for gap in result.skipped:
        click.echo(f"{gap.setting}: not built: {gap.reason}")


def _verify(
    host: Host, image: Path, kernel: Path | None, engine: Engine | None, *, as_json: bool
) -> None:
    from initadvisor.cli.history import verification_document
    from initadvisor.core.errors import UnsafeError
    from initadvisor.lab.verify import verify

    with Progress() as progress:
        progress.doing(f"reading {shown(str(image))}, and booting a kernel with it")
        verified = verify(host, image, kernel=kernel, engine=engine)
    if as_json:
        print_json(
            {
                "image": str(image),
                "verified": not verified.problems,
                "problems": list(verified.problems),
                "notes": list(verified.notes),
                "boot_s": round(verified.boot_s, 2),
                **verification_document(verified.verification),
            }
        )
    elif not verified.problems:
        _print_verified(verified)
    if verified.problems:
        msg = f"{image} must not be booted: {'; '.join(verified.problems)}"
        raise UnsafeError(msg)


def _print_verified(verified: Verified) -> None:
    found = verified.verification
    click.echo(
        shown(
            f"{verified.path}: Linux {found.kernel.release} ({found.kernel.path}) unpacks it "
            f"({found.engine}, {verified.boot_s:.1f} s)"
        )
    )
    click.echo(f"sha256 of the initramfs on the disk: {found.image_sha256}")
    click.echo(f"sha256 of its unpacked content:      {found.content_sha256}")
    for note in verified.notes:
        click.echo(f"Note: {note}.")


def _engines(host: Host, kernel: Path | None, uml: Path | None, *, as_json: bool) -> None:
    from initadvisor.store.store import open_store
    from initadvisor.vm.engines import Wanted, engine_states

    wanted = Wanted(release=host.kernel_release(), kernel=kernel, uml=uml, anew=True)
    with open_store(host) as store:
        states = engine_states(host, store, wanted)
    if as_json:
        rows = [
            {
                "engine": state.engine,
                "works": state.problem is None,
                "version": state.version,
                "problem": state.problem,
            }
            for state in states
        ]
        print_json({"engines": rows})
        return
    for state in states:
        click.echo(f"{state.engine}: {state.engine.description}")
        click.echo(
            f"     {state.version}" if state.problem is None else f"     no: {state.problem}"
        )
