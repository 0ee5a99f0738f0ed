"""What ``contents --variants`` builds and says of less in an image."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from initadvisor import host as host_package
from initadvisor.advise import content_variants
from initadvisor.advise.loading import LoadingTime
from initadvisor.cli import root
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import ProgramError, UnsafeError
from initadvisor.core.estimates import Estimate
from initadvisor.generators import VariantName
from tests.fakes.compressors import COMPRESSORS
from tests.fakes.generators import FakeGenerators
from tests.fixtures.content import mixed_content
from tests.fixtures.dracut_machine import IMAGE, image, make_appliable, snapshot
from tests.fixtures.images import archive

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fakes.generators import Ordered
    from tests.fixtures.hosts import Machine

SMALL = {"init": b"#!/bin/sh\n", "bin/sh": mixed_content(50_000)}
LARGE = SMALL | {"usr/lib/firmware/amdgpu/a.bin": mixed_content(600_000)}


def made(order: Ordered) -> None:
    """Build what was ordered: hostonly leaves firmware out."""
    small = 'hostonly="yes"' in "".join(order.config.values())
    order.image.write_bytes(COMPRESSORS[Codec.GZIP](archive(SMALL if small else LARGE)))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine that the command takes for the real one."""
    found, _ = make_appliable(tmp_path, monkeypatch)
    found.path(IMAGE).write_bytes(COMPRESSORS[Codec.GZIP](archive(LARGE)))
    assert isinstance(found.runner, FakeGenerators)
    found.runner.make = made
    monkeypatch.setattr(host_package, "Host", lambda: found)
    return found


def said(machine: Machine, *words: str) -> str:
    """Call the command; nothing installed is touched and nothing that was built is left."""
    before = snapshot(machine)
    done = CliRunner().invoke(root, ["contents", "--variants", *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert snapshot(machine) == before
    assert not (machine.cache_dir() / "apply").exists()
    return done.stdout


def variants(machine: Machine) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(said(machine, "--json"))["variants"]
    return found


def test_a_variant_is_built_and_priced_against_what_is_built_without_it(machine: Machine) -> None:
    large = len(COMPRESSORS[Codec.GZIP](archive(LARGE)))
    # What is installed was made of something else.
    machine.path(IMAGE).write_bytes(image(Codec.GZIP, parameters="--kver"))
    found = variants(machine)
    [one] = found["variants"]
    assert found["today_bytes"] == large
    assert one["size_bytes"] == len(COMPRESSORS[Codec.GZIP](archive(SMALL)))
    assert one["removed"][-1] == "usr/lib/firmware/amdgpu/a.bin"
    assert one["added"] == []
    assert one["line"] == 'hostonly="yes"'
    assert one["path"] == str(machine.path("/etc/dracut.conf.d/zz-content.conf"))
    assert not one["in_fallback"]
    assert 0 < one["saving_ms"]["low"] < one["saving_ms"]["median"] < one["saving_ms"]["high"]


def test_it_says_what_to_write_and_what_is_lost(machine: Machine) -> None:
    told = " ".join(said(machine).split())
    assert "built, not booted" in told
    assert "sudo initadvisor apply --variant this-machine; or by hand write" in told
    assert 'hostonly="yes" into the new file' in told
    assert "then sudo dracut --force --regenerate-all" in told
    assert "in another machine, it may not find its root file system" in told
    assert "No fallback image keeps it" in told
    assert "a.bin" not in told
    assert "usr/lib/firmware/amdgpu/a.bin" in said(machine, "--files")


def test_one_that_cannot_be_built_is_named_with_the_reason(machine: Machine) -> None:
    def fails(order: Ordered) -> None:
        if "hostonly" in "".join(order.config.values()):
            msg = "dracut failed: no root device"
            raise ProgramError(msg)
        made(order)

    assert isinstance(machine.runner, FakeGenerators)
    machine.runner.make = fails
    found = variants(machine)
    assert found["variants"] == []
    assert found["skipped"] == [{"name": "this-machine", "reason": "dracut failed: no root device"}]
    told = " ".join(said(machine).split())
    assert "this machine's modules only: dracut failed: no root device" in told


def test_one_that_makes_it_no_smaller_is_no_advice(machine: Machine) -> None:
    machine.path("/etc/dracut.conf.d/own.conf").write_text('compress=gzip\nhostonly="yes"\n')
    found = variants(machine)
    assert found["variants"] == []
    [skipped] = found["skipped"]
    assert skipped["reason"] == 'hostonly_mode="strict" saves nothing'


def test_one_that_stores_modules_otherwise_is_advice_once_boots_have_shown_what_loading_takes(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variant stands for it: it saves a little, read and unpacked."""
    unknown = LoadingTime(
        variant=VariantName.MODULES_DECOMPRESSED, missing="no boot with them counts yet"
    )

    def with_loading(found: LoadingTime) -> tuple[dict[str, Any], str]:
        monkeypatch.setattr(content_variants, "loading_time", lambda _host, _name: found)
        [one] = variants(machine)["variants"]
        return one, " ".join(said(machine).split())

    def saved_ms(low: float, middle: float, high: float) -> Estimate:
        return Estimate(mean=middle, low=low, high=high, source="boots")

    one, told = with_loading(unknown)
    price_ms = one["saving_ms"]["median"]
    assert (one["advised"], one["loading"]["saved_ms"], one["loading"]["boots"]) == (False, None, 0)
    assert (
        "not advised; * is without loading, since what loading takes then is not measured: no boot "
        "with them counts yet. sudo initadvisor apply --variant this-machine --confirm has "
        "it booted, sudo initadvisor rollback --confirm goes back"
    ) in told
    assert "by hand write" not in told
    assert re.search(r"only [\d. ]+\(\d+\.\.\d+\) \* - ", told)

    one, told = with_loading(replace(unknown, boots=1, missing="one more boot is needed"))
    assert not one["advised"]
    assert "is not measured: one more boot is needed" in told
    assert "has it booted" not in told
    assert "has it booted" not in with_loading(replace(unknown, boots_tell=False))[1]

    slower = replace(unknown, boots=3, others=2, saved_ms=saved_ms(-50, -40, -30))
    one, told = with_loading(slower)
    assert not one["advised"]
    assert one["saving_ms"]["median"] == pytest.approx(price_ms - 40, abs=0.01)
    assert "not advised; loading took 40 ms more (95 %: 30..50), by 3 boots and 2 boots" in told
    planned = CliRunner().invoke(root, ["apply", "--variant", "this-machine"]).stdout
    assert re.search(r"Expected to cost \d+ \(-?\d+\.\.\d+\) ms per boot", planned)

    one, _ = with_loading(replace(slower, saved_ms=saved_ms(-10, 40, 90)))
    assert not one["advised"]

    one, told = with_loading(replace(slower, saved_ms=saved_ms(30, 40, 50)))
    assert one["advised"]
    assert one["saving_ms"]["low"] == pytest.approx(price_ms + 30, abs=1)
    assert "or by hand write" in told
    assert "In what it saves, loading took 40 ms less (95 %: 30..50), by 3 boots" in told
    assert "*" not in told


def test_of_an_image_that_is_not_made_here_there_is_none(machine: Machine) -> None:
    other = machine.root / "other"
    other.write_bytes(COMPRESSORS[Codec.GZIP](archive(SMALL)))
    done = CliRunner().invoke(root, ["contents", "--variants", str(other)])
    assert isinstance(done.exception, UnsafeError)
    assert "it is not made on this machine" in str(done.exception)
    args = ["contents", "--estimate", "--kernel-codecs", str(other)]
    told = CliRunner().invoke(root, args, catch_exceptions=False).stdout
    told = " ".join(told.split())
    assert f"less in it would save is not known: {other} is not made on this machine" in told
    assert "No line of the generator" not in told
    assert "other codecs of its kernel cost is not known: it has none here" in told


def test_what_was_built_can_be_applied_and_nothing_else(machine: Machine) -> None:
    def call(*words: str) -> tuple[str, BaseException | None]:
        done = CliRunner().invoke(root, ["apply", "--variant", *words])
        return " ".join(done.stdout.split()), done.exception

    for words in (("this-machine", "zstd"), ("this-machine", "--all"), ("unheard-of",)):
        assert call(*words)[1] is not None
    assert "was not built for it" in str(call("this-machine")[1])
    said(machine)
    told, error = call("this-machine")
    assert "nothing was changed" in str(error)
    assert "To apply: this-machine (this machine's modules only)" in told
    assert "- gone: usr/lib/firmware/amdgpu/a.bin" in told
    assert '+hostonly="yes"' in told
    variant = json.loads(call("this-machine", "--json")[0])["variant"]
    assert variant["removed"][-1] == "usr/lib/firmware/amdgpu/a.bin"
    assert (variant["name"], variant["line"]) == ("this-machine", 'hostonly="yes"')
    told, error = call("this-machine", "--confirm")
    assert error is None
    assert "files missing: 1, all of them expected" in told
    assert "The next boot is a rehearsal" in told
    assert "the boot after it uses this-machine" in told
