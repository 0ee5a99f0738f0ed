"""What was built of less content for an image, and the line of the configuration for it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from initadvisor.advise.content_variants import built_variant
from initadvisor.core.errors import UnsafeError
from initadvisor.generators.shell import config_text
from initadvisor.rewrite.files import FileEdit
from initadvisor.rewrite.plan import WRITTEN_BY_APPLY

if TYPE_CHECKING:
    from initadvisor.advise.content_variants import BuiltVariant
    from initadvisor.generators import ContentVariant, Generator, InstalledImage, VariantName
    from initadvisor.host import Host


def known_variant(
    host: Host, generator: Generator, default: InstalledImage, name: VariantName
) -> tuple[ContentVariant, BuiltVariant]:
    """Return a variant of the default image, and what was built of it.

    Raises ``UnsafeError`` where nothing was, or it is another one by now.
    """
    built = built_variant(host, default, name)
    found = generator.content_variants(host, default, built.unused if built else ())
    variant = next((one for one in found if one.name is name), None)
    if built and variant and (built.path, built.line) == (str(variant.path), variant.line):
        return variant, built
    msg = f"not taking content out of {default.path}: {name} was not built for it"
    if built and variant:
        msg = f"not taking content out of {default.path}: {name} was built with {built.line}"
    elif built:
        msg = f"not taking content out of {default.path}: it is configured like that already"
    raise UnsafeError(msg, hint="sudo initadvisor contents --variants builds what there is")


def edit_of(variant: ContentVariant) -> FileEdit:
    """Return the change of the configuration; a new file says who wrote it."""
    before = config_text(variant.path) if os.path.lexists(variant.path) else None
    after = variant.text if before is not None else WRITTEN_BY_APPLY + variant.text
    return FileEdit(path=str(variant.path), before=before, after=after)
