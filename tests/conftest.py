"""What all tests rely on."""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Whoever runs the tests in the background of a shell has SIGINT ignored, and every program that
    # a test starts and interrupts would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
