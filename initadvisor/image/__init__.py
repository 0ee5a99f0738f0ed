"""Initramfs images: cpio, segments, codecs, lint. File objects and bytes in, values out."""
