"""The verdict on every image that was once shown to a real kernel is that kernel's."""

from __future__ import annotations

import io

import pytest

from initadvisor.core.errors import BadImageError
from initadvisor.image.contents import Verdict
from initadvisor.image.kernel import KernelConfig
from initadvisor.image.lint import lint
from initadvisor.image.scan import scan
from tests.fixtures.variants import CONFIG_OPTIONS, KERNEL_RELEASE, Variant, all_variants

VARIANTS = all_variants()
CONFIG = KernelConfig(source="a test", options=dict.fromkeys(CONFIG_OPTIONS, "y"))


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_the_verdict_is_the_kernels(variant: Variant) -> None:
    if variant.verdict is None:
        with pytest.raises(BadImageError):
            scan(io.BytesIO(variant.image))
        return
    found = lint(scan(io.BytesIO(variant.image)), CONFIG, KERNEL_RELEASE)
    assert found.verdict == variant.verdict, found
    assert bool(found.reasons) == (variant.verdict != Verdict.OK)


def test_variants_have_names_of_their_own() -> None:
    names = [variant.name for variant in VARIANTS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_without_a_configuration_nothing_is_ok(variant: Variant) -> None:
    if variant.verdict is None:
        return
    found = lint(scan(io.BytesIO(variant.image)), None, None)
    expected = Verdict.REFUSED if variant.verdict == Verdict.REFUSED else Verdict.UNKNOWN
    assert found.verdict == expected
