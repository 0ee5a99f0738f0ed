"""Where the program starts: it can be interrupted from its first moment."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line; see ``initadvisor.cli.main``."""
    try:
        from initadvisor.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("initadvisor: interrupted\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
