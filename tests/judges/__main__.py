"""See the package."""

from __future__ import annotations

import argparse

from tests.judges.judge import Judge
from tests.judges.page import write_page
from tests.judges.record import record
from tests.judges.tool_images import make


def main() -> None:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(prog="python -m tests.judges")
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="show kernels what they have not judged yet")
    recording.add_argument("--engine", type=Judge, choices=Judge, default=[*Judge], nargs="+")
    recording.add_argument("--only", default="*", metavar="PATTERN", help="of names of images")
    recording.add_argument("--again", action="store_true", help="what they have judged, too")
    commands.add_parser("make", help="make the images of command line tools anew")
    commands.add_parser("page", help="write docs/lint-against-the-kernel.md anew")
    arguments = parser.parse_args()
    if arguments.command == "make":
        make()
    elif arguments.command == "page":
        write_page()
    else:
        for judge in arguments.engine:
            record(judge, only=arguments.only, again=arguments.again)


if __name__ == "__main__":
    main()
