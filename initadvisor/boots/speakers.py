"""Who printed a message of the kernel's, as far as its words tell.

Most kernels do not say which task prints. But the initcalls that are built in run in an order that
is fixed when the kernel is linked, each in the init task, and what they say is mostly the same from
machine to machine; so are the messages of work queues, threads and interrupts.
"""

from __future__ import annotations

import re
from enum import StrEnum


class Speaker(StrEnum):
    """Who printed a message.

    ``init``: the init task, in an initcall. ``other``: most likely a thread, a work queue or an
    interrupt, or an initcall of a driver whose devices are found by any of these. ``unpacker``:
    whoever unpacks the initramfs. ``unknown``: anybody.
    """

    INIT = "init"
    OTHER = "other"
    UNPACKER = "unpacker"
    UNKNOWN = "unknown"


_UNPACKER = re.compile(
    r"(?:Compressed data magic|decompress(?:ing|or)?\b|rootfs image|Initramfs |INITRD: |initrd|"
    r"Decoding failed|(?:XZ|ZSTD|LZ4|LZMA|LZO|bzip2|gzip|gunzip|zstd|unlz4)\b)",
    re.IGNORECASE,
)
"""Some vendors' kernels have words of their own while they unpack."""

_OTHER = re.compile(
    # devices that are found by work queues
    r"(?:usb|hub|xhci[-_]hcd|[eou]hci[-_](?:pci|hcd|platform)|ahci|scsi|sd|sr|nvme|mmc_host|mmcblk"
    r"|sdhci\S*|dwc[23]|musb-hdrc|hid-\S+|i2c_hid\S*|phy|psmouse|atkbd|virtio_blk"
    r"|firewire_\S+|thunderbolt|usb[-_]storage|r8169|e1000e|igb|tg3|macb|dwmac\S*) "
    r"|(?:ata|mmc|mmcblk|eth|wlan|phy|serio|md|nvme)\d"
    r"| *(?:sd[a-z]+|nvme\d+n\d+|mmcblk\d+|vd[a-z]|sr\d):"
    # sensors, keyboards and their like, which answer late
    r"|input: |hid-generic |ACPI: battery|battery: |ACPI: AC: |power_supply |ACPI: EC: event"
    r"|thermal thermal_zone\d+: |ACPI Warning|EDAC |mce: "
    # clocks and random numbers
    r"|random: |tsc: |[Cc]locksource[: ]|Switched to |Switching to |Refined TSC|hrtimer: "
    r"|perf: interrupt took|NOHZ|rcu: |INFO: |watchdog|NMI watchdog"
    # threads that end, that log, or that test an algorithm
    r"|\S+ (?:\(\d+\) )?used greatest stack depth|alg: (?!self-tests )|audit: type|type=\d+ audit"
    r"|systemd|workqueue: |Bluetooth: hci"
)
"""How messages begin that work queues, interrupts and threads print while the init task is busy or
waits."""

_INIT = re.compile(
    r"Initialise system trusted|Key type |Asymmetric key parser |workingset: |z(?:bud|3fold): "
    r"|zswap: |squashfs: |fuse: init|fuse init|SGI XFS |9p: |NFS: |nfs4\w+: |Installing knfsd"
    r"|ntfs3?: |NTFS |jffs2: |JFS: |romfs: |QNX4|qnx6|efs: |orangefs|ocfs2|OCFS2|gfs2: |ceph: "
    r"|NILFS|befs: "
    r"|cifs|FS-Cache|CacheFiles|DLM |Btrfs loaded|EFI Variables|pstore: |VFS: |Dquot-cache|dquot"
    r"|integrity: |ima: |evm: |AppArmor: |SELinux: |LoadPin|Yama|TOMOYO|Landlock"
    r"|Block layer SCSI|io scheduler |bounce: |async_tx: |xor: |raid6: |cryptd: |crc\w*: "
    r"|(?:CRC|AVX|AES|sm3|sha)\S* |atomic64_test|glob: |test_|jitterentropy: "
    r"|NET: Registered |Segment Routing|RPL Segment|In-situ OAM|mip6: |sit: |IPv6: |8021q: "
    r"|TCP[: ]|tcp_|MPTCP |UDP|IP[: ]|IPv4|IPsec|Initializing XFRM|drop_monitor: |mpls_gso|Bridge "
    r"|bridge: |openvswitch: |RPC: |rds: |X25: |can: |l2tp_\w+: |libceph: |DCCP|sctp: |tipc: "
    r"|Loading compiled-in|Loaded X\.509|blacklist: |Running certificate|alg: self-tests "
    r"|Serial: |serial8250|\d\d:\d\d: ttyS|\S+\.(?:serial|uart): tty|printk: |Console: |console \["
    r"|Non-volatile memory|Linux agpgart|agpgart|loop: |brd: |nbd: |zram: |tun: |PPP |SLIP|VFIO "
    r"|libphy: |Fixed MDIO|mdio|CAN device|bonding|dummy|e100: |e1000: |sky2: |igbvf: |ixgbe: "
    r"|shpchp: |pcieport |pciehp: |pci_hotplug: |pci 0|pci_bus |PCI: |PCI-DMA: |PCI CLS|vgaarb: "
    r"|ERST|GHES: |APEI|HEST|ACPI: (?:button|thermal|bus type|\\_|video|processor|Power)|acpiphp"
    r"|thermal LNXTHERM|Monitor-Mwait|intel_idle|intel_pstate|amd_pstate|cpuidle|cpufreq|ledtrig"
    r"|hpet|Hangcheck|tpm_tis |tpm tpm|i8042: |serio: |mousedev: |PNP: |rtc_cmos |rtc-\S+ |rtc_"
    r"|i2c_dev: |i2c /dev|device-mapper: |md: |raid|mei|pps_core|PTP clock|hwmon|gpio|pinctrl"
    r"|platform |efifb: |simple-framebuffer|vesafb: |fbcon: |fb\d: |\[drm\]|vga16fb|hid: raw"
    r"|usbcore: |usbhid: |usbserial|uhci_hcd: |ohci_hcd: |ehci_hcd: |ehci-pci: |ehci-platform: "
    r"|ohci-pci: |ohci-platform: |microcode: |IPI shorthand|sched_clock: Marking|Using IPI"
    r"|registered taskstats|PM: |RAS: |Freeing unused|Write protecting|x86/mm: |clk: |ALSA device"
    r"|  Magic number|Magic number|BIOS EDD|EDD information|Demotion targets|page_owner|debug_vm"
    r"|software IO TLB|DMAR|dmar|AMD-Vi|iommu: |amd_uncore|RAPL |hw unit of|perf[:/]|LVT offset"
    r"|resctrl: |kvm[: _]|hw perfevents|armv\d|sgx: |check: Scanning|Scanning for low|audit: init"
    r"|HugeTLB|hugetlb|EISA bus|NetLabel|SCSI subsystem|Simple Boot Flag|msgmni|fuse |NTFS|futex "
    r"|highmem bounce|crypto|MCE|mtrr|Thumb|Registering SWP|SWP|simple-pm|dma-pl330 |imx-sdma"
    r"|calling  ?\S+ @ 1\b|initcall \S+ returned"
)
"""How messages begin that initcalls print, on most machines alike."""


def speaker(text: str) -> Speaker:
    """Return who printed a message, as far as its words tell."""
    if _OTHER.match(text):
        return Speaker.OTHER
    if _INIT.match(text):
        return Speaker.INIT
    if _UNPACKER.match(text):
        return Speaker.UNPACKER
    return Speaker.UNKNOWN


_TRACE_BEGINS = re.compile(
    r"-+\[ cut here \]-+|WARNING: |BUG: |Oops|Unable to handle|Internal error|general protection"
    r"|INFO: |rcu: INFO|rcu_|watchdog: |NMI |Call [Tt]race:|CPU: \d+ PID: |Modules linked in"
    r"|={10,}|\*{10,}"
)
_TRACE_ENDS = re.compile(r"-+\[ end trace")
_MOST_OF_A_TRACE = 200


class Traces:
    """Knows the lines of a warning, with its registers and its calls, which anybody may cause."""

    def __init__(self) -> None:
        self._left = 0

    def covers(self, text: str) -> bool:
        """Take note of a message; tell whether it is of a trace.

        A trace without an end is taken for one as long as its lines look like one's.
        """
        if _TRACE_ENDS.match(text):
            self._left = 0
            return True
        if _TRACE_BEGINS.match(text):
            self._left = _MOST_OF_A_TRACE
            return True
        if self._left:
            self._left -= 1
            if _OF_TRACE.match(text):
                return True
            self._left = 0
        return False


_OF_TRACE = re.compile(
    r"[ \t]|$|\[<|\(|</?(?:TASK|IRQ|NMI|EOI)>|(?:CPU|Hardware name|Workqueue|RIP|RSP|EIP|RAX|RDX"
    r"|RBP|R\d\d|FS|CS|CR2|DR\d|PKRU|Code|Call [Tt]race|Modules|task|Tainted|Stack|pstate|pc|lr|sp"
    r"|ps|x\d+|ra|epc|gp|t\d|s\d+|a\d|status|Exception|Process|Backtrace|irq event|hardirqs"
    r"|softirqs"
    r"|Register|Trace|Dumping|Mem abort|Data abort|swapper|page|flags|raw|Comm)\b|[0-9a-f]{8,16}\b"
    r"|\S+\+0x[0-9a-f]+/0x[0-9a-f]+|[xr]\d+ *:|---"
)
