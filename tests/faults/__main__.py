"""Tries a share of all points on real file systems, and says what was bad in JSON.

Arguments: what is to be tried (``points`` or ``room``), a directory of one file system with
another one mounted on its ``boot``, the type of that, a seed and a share. It needs nothing but
Python and the program, so that it runs in guests, too.
"""

from __future__ import annotations

import json
import logging
import os
import random
import sys
from pathlib import Path

from tests.faults.machine import Machine
from tests.faults.points import Tried, try_share
from tests.faults.room import filled_meanwhile, little_room, read_only
from tests.faults.runs import Run


def _points(machine: Machine, seed: int, share: float) -> Tried:
    """Every run: a share of its points as exceptions, and as many as processes really killed."""
    chooser, tried = random.Random(seed), Tried()
    for run in Run:
        tried.add(try_share(machine, run, chooser, share))
    return tried


def _room(machine: Machine) -> Tried:
    tried = Tried()
    for check in (little_room, filled_meanwhile, read_only):
        machine.install()
        tried.add_check(check.__name__, check(machine))
    return tried


def main() -> None:
    """Try what is asked for."""
    what, root, boot_type, seed, share = sys.argv[1:]
    machine = Machine(root=Path(root), esp=boot_type == "vfat", real=True)
    os.environ["STATE_DIRECTORY"] = str(machine.root / "state")
    logging.disable()  # that it could not be undone yet is what is tried
    tried = Tried()
    match what:
        case "points":
            tried.add(_points(machine, int(seed), float(share)))
        case "room":
            tried.add(_room(machine))
        case _:
            sys.exit(f"what is {what}?")
    sys.stdout.write(json.dumps({"tried": sum(tried.points.values()), "bad": tried.bad}) + "\n")


if __name__ == "__main__":
    main()
