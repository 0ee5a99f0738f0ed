"""What ukify's configuration says of keys, whatever is in it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.generators.ukify import can_sign, no_key
from initadvisor.host import Host
from tests.fakes.runner import FakeRunner
from tests.fixtures.trees import write

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """Return a machine with nothing on it."""
    return Host(root=tmp_path, runner=FakeRunner())


@pytest.mark.parametrize(
    ("texts", "signs"),
    [
        ({}, False),
        ({"kernel/uki.conf": "[UKI]\nSecureBootPrivateKey=/%(key)s\n"}, True),
        ({"kernel/uki.conf": "[UKI]\nSecureBootPrivateKey=\n"}, False),
        ({"kernel/uki.conf": "[UKI]\n[UKI]\nSecureBootCertificateName=own\n"}, True),
        ({"systemd/ukify.conf": "[UKI]\nSecureBootPrivateKey=/key\n"}, True),
        (
            {
                "kernel/uki.conf": "[UKI]\nCmdline=quiet\n",
                "systemd/ukify.conf": "[UKI]\nSecureBootPrivateKey=/key\n",
            },
            False,
        ),
    ],
)
def test_a_key_is_found_where_ukify_would_find_it(
    host: Host, texts: dict[str, str], signs: bool
) -> None:
    for name, text in texts.items():
        write(host.root, f"/etc/{name}", text)
    assert can_sign(host) is signs


@pytest.mark.parametrize("content", [b"\x7fELF\0\xff", b"[UKI]\n" + b"#\n" * (1 << 19)])
def test_what_is_no_configuration_is_refused(host: Host, content: bytes) -> None:
    write(host.root, "/etc/kernel/uki.conf", content)
    with pytest.raises(UnsafeError, match="cannot read"):
        can_sign(host)


def test_a_pipe_is_not_waited_for(host: Host) -> None:
    write(host.root, "/etc/kernel/install.conf", "")
    os.mkfifo(host.path("/etc/kernel/uki.conf"))
    with pytest.raises(InitadvisorError, match="not an ordinary file"):
        can_sign(host)


def test_sbctl_s_keys_are_named_to_who_has_them(host: Host) -> None:
    assert "sbctl" not in (no_key(host).hint or "")
    write(host.root, "/var/lib/sbctl/keys/db/db.key", "")
    assert "sbctl's are /var/lib/sbctl/keys/db/db.key and .pem" in (no_key(host).hint or "")
