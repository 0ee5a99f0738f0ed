"""What an armed boot is bound to, and whether that is still as it was.

A boot entry names its kernel and its images by path. Whoever replaces one of them, as a package
manager does under the same name, would have the armed boot start a new kernel with an initramfs
that was made for the old one. So all of it is noted before the boot is armed, and compared before
anything comes of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.bootloaders.detect import loader_named
from initadvisor.bootloaders.places import is_file
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.host.files import open_regular, sha256_of
from initadvisor.transaction.transaction import BootBinding, BoundFile
from initadvisor.trial.beside import require_beside

if TYPE_CHECKING:
    from initadvisor.bootloaders.entry import BootEntry, TrialPlan
    from initadvisor.host import Host
    from initadvisor.transaction.transaction import ArmedBoot


def binding_of(host: Host, plan: TrialPlan) -> BootBinding:
    """Return what a planned boot is bound to; raises ``InitadvisorError`` for unreadable files."""
    paths = dict.fromkeys((*_loaded(plan.default), plan.request.image))
    return BootBinding(
        entry=plan.default.identifier,
        options=plan.default.command_line,
        files=tuple(BoundFile(path=path, sha256=digest_of(host, path)) for path in paths),
        armed_entry=plan.text,
    )


def binding_fault(host: Host, armed: ArmedBoot) -> str:
    """Return what has changed of what was armed, in words; empty where nothing has.

    Raises ``InitadvisorError`` where it cannot be told, as with an ESP that is not mounted.
    """
    bound = armed.bound_to
    if bound is None or not bound.armed_entry:
        return "it was not recorded what it was armed with"
    loader = loader_named(armed.loader)
    try:
        now = loader.default_entry(host)
    except UnsafeError as err:
        return f"what boots by default has changed: {err.message}"
    loaded = tuple(file.path for file in bound.files)[: len(_loaded(now))]
    if (now.identifier, now.command_line, _loaded(now)) != (bound.entry, bound.options, loaded):
        return "the default entry or its command line was changed"
    try:
        if not loader.is_written(host, bound.armed_entry):
            return "the armed entry was changed or removed"
        require_beside(host, armed.image, now, armed.extra_cmdline)
    except UnsafeError as err:
        return f"the armed entry was changed: {err.message}"
    return next(filter(None, (_file_fault(host, file) for file in bound.files)), "")


def _file_fault(host: Host, file: BoundFile) -> str:
    if not is_file(host, file.path):
        return f"{file.path} was removed"
    try:
        return "" if digest_of(host, file.path) == file.sha256 else f"{file.path} was changed"
    except InitadvisorError as err:  # a loader will hardly read it, either
        return err.message


def _loaded(entry: BootEntry) -> tuple[str, ...]:
    return tuple(file.path for file in (entry.kernel, *entry.initrds))


def digest_of(host: Host, path: str) -> str:
    """Return the SHA-256 of a file of this machine; raises ``InitadvisorError``."""
    try:
        with open_regular(host.path(path)) as file:
            return sha256_of(file)
    except OSError as err:
        msg = f"cannot read {path}: {err.strerror}"
        raise InitadvisorError(msg) from err
