"""``initadvisord``: where the daemon starts; see initadvisord(8)."""

from __future__ import annotations

import argparse
import atexit
import faulthandler
import gc
import logging
import sys
from typing import NoReturn

from initadvisor import __version__
from initadvisor.core.errors import LOADING_FAILURES, InitadvisorError, library_error
from initadvisor.core.text import shown
from initadvisor.daemon.loop import Daemon
from initadvisor.daemon.manager import set_up_logging
from initadvisor.daemon.work import work
from initadvisor.host import Host
from initadvisor.target.packages import what_to_do

_log = logging.getLogger(__name__)


def main() -> NoReturn:
    """Work off the queue and exit, with the codes that initadvisor(1) documents."""
    # Without garbage left to look for, the interpreter is gone 15 ms earlier.
    atexit.register(gc.freeze)
    arguments = _parser().parse_args()
    faulthandler.enable()  # what hangs is told when systemd's watchdog ends it
    set_up_logging(verbose=arguments.verbose)
    host = Host()
    try:
        host.require_root("work off the queue")
        Daemon(host=host, work=work).run()
    except (InitadvisorError, *LOADING_FAILURES) as err:
        error = err if isinstance(err, InitadvisorError) else library_error(err)
        if error is None:
            raise
        hint = what_to_do(host, error)
        _log.error("%s", shown(error.message + (f" ({hint})" if hint else "")))
        sys.exit(error.exit_code)
    sys.exit(0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="initadvisord",
        description="Works off what hooks have noted, and ends. systemd starts it; see "
        "initadvisord(8).",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="Log every program.")
    parser.add_argument("--version", action="version", version=f"initadvisord {__version__}")
    return parser


if __name__ == "__main__":
    main()
