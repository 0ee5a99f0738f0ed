"""Where the program starts: it can be interrupted from its first moment."""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn

_GARBAGE = 50_000
"""Objects between two searches for garbage: imports make many objects, and hardly any garbage."""


def main() -> NoReturn:
    """Run the command line; see ``initadvisor.cli.main``."""
    # The arrays are small: numpy's threads would take longer to start than they ever save.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(_GARBAGE)
    try:
        from initadvisor.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("initadvisor: interrupted\n")
        sys.exit(130)
    except (ImportError, OSError, RuntimeError, SystemError) as err:
        from initadvisor.core.errors import LibraryError
        from initadvisor.host import Host
        from initadvisor.target.packages import what_to_do

        lack = LibraryError(err)
        advice = what_to_do(Host(), lack)
        sys.stderr.write(f"initadvisor: {lack}" + (f" ({advice})\n" if advice else "\n"))
        sys.exit(lack.exit_code)
    run()


if __name__ == "__main__":
    main()
