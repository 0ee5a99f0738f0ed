"""``initadvisor contents``: what an image holds, and what that costs each boot."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from initadvisor.cli.options import FileName
from initadvisor.cli.rendering.output import print_json, rounded
from initadvisor.cli.rendering.text import (
    Table,
    figure,
    interval,
    print_item,
    print_paragraph,
    print_table,
    short,
)
from initadvisor.core.text import shown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from initadvisor.advise.contents import (
        ContentsCost,
        ContentVariantCosts,
        EstimatedVariant,
        UnusedCost,
        VariantCost,
    )
    from initadvisor.advise.kernel_cost import KernelCost, OtherCodec
    from initadvisor.advise.loading import LoadingTime
    from initadvisor.core.estimates import Estimate
    from initadvisor.generators import ContentVariant, VariantName


_LARGE_BYTES = 10_000_000


@click.command()
@click.argument("image", type=FileName(), required=False)
@click.option("--files", is_flag=True, help="List the largest files of each purpose, too.")
@click.option(
    "--unused", is_flag=True, help="Show which modules and firmware no recorded boot used."
)
@click.option(
    "--kernel-codecs",
    is_flag=True,
    help="Predict what other codecs would cost for the kernel, too. Takes minutes, once.",
)
@click.option(
    "--estimate", is_flag=True, help="Estimate what less in the image saves; nothing is built."
)
@click.option(
    "--variants",
    is_flag=True,
    help="Have the generator build the image with less in it, and show what that saves.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def contents(
    *,
    image: Path | None,
    files: bool,
    unused: bool,
    kernel_codecs: bool,
    estimate: bool,
    variants: bool,
    as_json: bool,
) -> None:
    """Show what IMAGE holds by purpose, and what that costs each boot of this machine.

    IMAGE is an initramfs or a unified kernel image; without it, what this machine boots. The times
    are those that recommend has of the image as it is, to read and to unpack it.
    """
    from initadvisor.advise.recommend import price_contents
    from initadvisor.cli.rendering.progress import Progress
    from initadvisor.host import Host

    with Progress() as progress:
        cost = price_contents(
            Host(),
            image,
            other_kernels=kernel_codecs,
            unused=unused,
            variants=variants,
            estimate=estimate,
            observer=progress,
        )
    if as_json:
        print_json(_document(cost))
    else:
        _print(cost, files=files)


def _print(cost: ContentsCost, *, files: bool) -> None:
    first = cost.kinds[0]
    name, digits = str(first.use.kind), 0 if cost.image_bytes >= _LARGE_BYTES else 1
    print_paragraph(
        f"{name[0].upper()}{name[1:]}: {_mb(first.use.stored_bytes, digits)} of "
        f"{_mb(cost.image_bytes, digits)} MB, about {short(first.boot_ms.middle)} ms to "
        f"read and unpack (95 %: {interval(first.boot_ms)})"
    )
    click.echo(f"\n{shown(str(cost.image))}\n")
    again = cost.contents.repeated
    rows = [
        _row(one.use.kind, one.use.files, one.use.unpacked_bytes, one.use.stored_bytes, one.boot_ms)
        for one in cost.kinds
    ]
    unpacked_bytes = sum(one.use.unpacked_bytes for one in cost.kinds)
    count = sum(one.use.files for one in cost.kinds)
    rows.append(_row("all", count, unpacked_bytes, cost.image_bytes, cost.boot_ms))
    if kernel := cost.kernel:
        name = f"its kernel ({kernel.file.codec}, predicted)"
        file = kernel.file
        rows.append(_row(name, 1, file.unpacked_bytes, file.size_bytes, kernel.boot_ms))
    print_table(
        Table(
            titles=("purpose", "files", "unpacked MB", "in image MB", "ms a boot (95 %)"),
            rows=tuple(rows),
            text=0,
        )
    )
    if again.files:
        what = "file is" if again.files == 1 else "files are"
        print_paragraph(
            f"{again.files} {what} there once more, counted above: {_mb(again.size_bytes)} MB "
            f"unpacked, {_mb(again.stored_bytes)} in the image, {figure(cost.repeated_ms)} ms."
        )
    if files:
        _print_files(cost)
    if cost.unused:
        _print_unused(cost.unused, files=files)
    if cost.variants:
        _print_variants(cost.variants, files=files)
    elif cost.estimates is not None:
        _print_estimates(cost.estimates)
    if cost.kernel and cost.kernel.others is not None:
        _print_kernel(cost.kernel, cost.kernel.others)
    for warning in cost.warnings:
        print_item(warning)


def _row(
    kind: str, files: int, unpacked_bytes: int, stored_bytes: int, boot_ms: Estimate
) -> tuple[str, ...]:
    return (str(kind), str(files), _mb(unpacked_bytes), _mb(stored_bytes), figure(boot_ms))


def _print_files(cost: ContentsCost) -> None:
    for one in cost.kinds:
        largest = [file for file in cost.contents.largest if file.kind is one.use.kind]
        if largest:
            click.echo(f"{one.use.kind}, MB unpacked:")
        for file in largest:
            click.echo(f"{file.size_bytes / 1e6:8.2f}  {file.path}")
        if largest:
            click.echo()


def _print_unused(unused: UnusedCost, *, files: bool) -> None:
    if unused.since is None:
        print_paragraph(
            "What is not used is not known: no boot of this kernel has its modules recorded. "
            "Next: sudo initadvisor measure (once for each boot; the timer does it)"
        )
        return
    since = f"{_counted(unused.boots, 'boot')} since {unused.since:%Y-%m-%d}"
    if not unused.files:
        print_paragraph(f"Every module was used, or is kept for what is plugged in, in {since}.")
    else:
        firmware = len(unused.files) - unused.modules
        what = [
            _counted(number, name)
            for number, name in ((unused.modules, "module"), (firmware, "firmware file"))
            if number
        ]
        print_paragraph(
            f"Not used in {since}: {' and '.join(what)}, {_mb(unused.stored_bytes)} MB of the "
            f"image, {figure(unused.boot_ms)} ms a boot."
        )
        click.echo()
        rows = [
            (
                str(one.kind),
                str(one.files),
                _mb(one.size_bytes),
                _mb(one.stored_bytes),
                figure(one.boot_ms),
            )
            for one in unused.kinds
        ]
        titles = ("not used", "files", "unpacked MB", "in image MB", "ms a boot (95 %)")
        print_table(Table(titles=titles, rows=tuple(rows), text=0))
    if unused.kept:
        kept = ", ".join(f"{count} {why}" for why, count in unused.kept.items())
        print_item(
            f"kept, though not used either: {_counted(sum(unused.kept.values()), 'module')} "
            f"({kept}); see initadvisor-contents(1)"
        )
    if files and unused.files:
        click.echo("\nnot used, MB unpacked:")
        for file in unused.files:
            click.echo(f"{file.size_bytes / 1e6:8.2f}  {file.path}")


def _print_estimates(found: Sequence[EstimatedVariant]) -> None:
    if not found:
        print_paragraph("No line of the generator's configuration is known to put less in it.")
        return
    click.echo("With less in it (estimated; --variants builds it):\n")
    rows = [
        (one.variant.name.description, _mb(one.size_bytes), figure(one.saving_ms)) for one in found
    ]
    titles = ("the image", "about MB", "sooner, ms (95 %)")
    print_table(Table(titles=titles, rows=tuple(rows), text=0))


def _print_variants(found: ContentVariantCosts, *, files: bool) -> None:
    for name, reason in found.skipped:
        print_item(f"{name.description}: {shown(reason)}")
    if not found.variants:
        if not found.skipped:
            print_paragraph("No line of the generator's configuration is known to put less in it.")
        return
    click.echo("With less in it (built, not booted):\n")
    rows = [("as it is", _mb(found.today_bytes), "", "")]
    rows += [
        (
            one.variant.name.description,
            _mb(one.size_bytes),
            str(max(0, len(one.differs.removed_files) - len(one.differs.added))),
            figure(one.saving_ms) + (" *" if one.loading and not one.loading.saved_ms else ""),
        )
        for one in found.variants
    ]
    titles = ("the image", "MB", "files less", "sooner, ms (95 %)")
    print_table(Table(titles=titles, rows=tuple(rows), text=0))
    for one in found.variants:
        variant = one.variant
        if one.loading and not one.advised:
            print_item(_not_advised(variant.name, one.loading))
            continue
        line = variant.line
        where = "at the end of " if variant.text.count("\n") > 1 else "into the new file "
        if not files:
            line = line if len(line) <= _LINE else f"{line[:_LINE]}... (whole: --files)"
        print_item(
            f"{variant.name.description}: sudo initadvisor apply --variant {variant.name}; or by "
            f"hand write {shown(line)} {where}{shown(str(variant.path))}, then {found.rebuild}. "
            f"But {variant.loses}. {_net(found, one)}"
            + (f" In what it saves, {one.loading.words}." if one.loading else "")
        )
        for path in one.differs.removed_files if files and not one.loading else ():
            click.echo(f"  {path}")


_LINE = 60


def _not_advised(name: VariantName, loading: LoadingTime) -> str:
    """Say why a variant is no advice; of one that was not measured, how a boot measures it."""
    if loading.saved_ms:
        return f"{name.description}: not advised; {loading.words}"
    words = f"{name.description}: not advised; * is without loading, since {loading.words}"
    if loading.boots or not loading.boots_tell:
        return words
    boots_it = f"sudo initadvisor apply --variant {name} --confirm"
    return f"{words}. {boots_it} has it booted, sudo initadvisor rollback --confirm goes back"


def _net(found: ContentVariantCosts, one: VariantCost) -> str:
    """Say what boots the machine when the image does not."""
    if found.fallback and one.variant.in_fallback:
        return f"The fallback image {shown(str(found.fallback))} keeps it."
    return "No fallback image keeps it: have another way to boot before you do it by hand."


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _print_kernel(kernel: KernelCost, others: Sequence[OtherCodec]) -> None:
    if not others and not kernel.skipped:
        print_paragraph(f"A kernel that is {kernel.file.format} is not built with other codecs.")
        return
    click.echo("The kernel, were it built otherwise (predicted):\n")
    today = (
        str(kernel.file.codec),
        _mb(kernel.file.size_bytes),
        figure(kernel.boot_ms),
        "today",
        f"{kernel.file.codec.self_extraction_option}=y",
    )
    rows = [
        (
            str(one.codec),
            _mb(one.size_bytes),
            figure(one.boot_ms),
            figure(one.saving_ms),
            f"{one.codec.self_extraction_option}=y",
        )
        for one in others
    ]
    titles = ("codec", "MB", "ms a boot (95 %)", "sooner, ms (95 %)", "configuration")
    print_table(Table(titles=titles, rows=(today, *rows), text=0))
    for one in kernel.skipped:
        print_item(f"{one.setting}: {one.reason}")


def _mb(size_bytes: int, digits: int = 1) -> str:
    return f"{size_bytes / 1e6:.{digits}f}"


def _document(cost: ContentsCost) -> dict[str, Any]:
    return {
        "image": str(cost.image),
        "image_bytes": cost.image_bytes,
        "boot_ms": _estimate(cost.boot_ms),
        "kinds": [{**asdict(one.use), "boot_ms": _estimate(one.boot_ms)} for one in cost.kinds],
        "repeated": {**asdict(cost.contents.repeated), "boot_ms": _estimate(cost.repeated_ms)},
        "largest": [asdict(file) for file in cost.contents.largest],
        "unused": cost.unused and _unused(cost.unused),
        "variants": cost.variants and _variants(cost.variants),
        "estimates": None
        if cost.estimates is None
        else [
            {
                **_variant(one.variant),
                "size_bytes": one.size_bytes,
                "saving_ms": _estimate(one.saving_ms),
            }
            for one in cost.estimates
        ],
        "kernel": cost.kernel and _kernel(cost.kernel),
        "warnings": list(cost.warnings),
    }


def _unused(unused: UnusedCost) -> dict[str, Any]:
    return {
        "boots": unused.boots,
        "since": unused.since and unused.since.isoformat(),
        "boot_ms": _estimate(unused.boot_ms),
        "kinds": [{**asdict(one), "boot_ms": _estimate(one.boot_ms)} for one in unused.kinds],
        "files": [
            {"path": one.path, "size_bytes": one.size_bytes, "kind": one.kind}
            for one in unused.files
        ],
        "kept": [{"reason": why, "modules": count} for why, count in unused.kept.items()],
    }


def _variant(variant: ContentVariant) -> dict[str, Any]:
    return {
        "name": variant.name,
        "description": variant.name.description,
        "path": str(variant.path),
        "line": variant.line,
        "loses": variant.loses,
    }


def _variants(found: ContentVariantCosts) -> dict[str, Any]:
    return {
        "today_bytes": found.today_bytes,
        "fallback": found.fallback and str(found.fallback),
        "rebuild": found.rebuild,
        "variants": [
            {
                **_variant(one.variant),
                "in_fallback": one.variant.in_fallback and found.fallback is not None,
                "size_bytes": one.size_bytes,
                "saving_ms": _estimate(one.saving_ms),
                "advised": one.advised,
                "loading": one.loading and _loading(one.loading),
                "removed": one.differs.removed,
                "added": one.differs.added,
            }
            for one in found.variants
        ],
        "skipped": [{"name": name, "reason": reason} for name, reason in found.skipped],
    }


def _loading(loading: LoadingTime) -> dict[str, Any]:
    return {
        "boots": loading.boots,
        "others": loading.others,
        "disturbed": loading.disturbed,
        "saved_ms": loading.saved_ms and _estimate(loading.saved_ms),
        "words": loading.words,
    }


def _kernel(kernel: KernelCost) -> dict[str, Any]:
    file = kernel.file
    others = None
    if kernel.others is not None:
        others = [
            {
                "codec": one.codec,
                "option": f"{one.codec.self_extraction_option}=y",
                "size_bytes": one.size_bytes,
                "boot_ms": _estimate(one.boot_ms),
                "saving_ms": _estimate(one.saving_ms),
            }
            for one in kernel.others
        ]
    return {
        "path": str(kernel.path),
        "format": file.format,
        "codec": file.codec,
        "size_bytes": file.size_bytes,
        "unpacked_bytes": file.unpacked_bytes,
        "boot_ms": _estimate(kernel.boot_ms),
        "others": others,
        "skipped": [{"codec": one.setting.codec, "reason": one.reason} for one in kernel.skipped],
    }


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return {
        name: rounded(value) if isinstance(value, float) else value
        for name, value in asdict(estimate).items()
    }
