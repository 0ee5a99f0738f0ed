"""systemd-boot."""
