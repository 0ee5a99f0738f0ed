"""Starting another kernel from the running one."""

from __future__ import annotations

KEXEC = """
if [ $(($(cat /proc/sys/kernel/bootloader_type) >> 4)) != 13 ]; then
    python3 - <<'END'
import ctypes, glob, os

kernel, image = (os.open(glob.glob(f"/boot/debian/*/{name}*")[0], 0) for name in ("linux", "init"))
line = open("/proc/cmdline", "rb").read().strip() + b"\\0"
kexec_file_load = 320
assert ctypes.CDLL(None).syscall(kexec_file_load, kernel, image, len(line), line, 0) == 0
END
    systemctl kexec
    sleep infinity
fi
"""
"""Debian's guests have no kexec-tools, so the system call is made by hand (x86-64's number)."""
