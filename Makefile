# Everything a newcomer or CI calls. `make venv` needs python3 with venv, a C compiler, pkg-config
# and the headers of liblzo2 and libsystemd; tools/setup installs them where it may.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Python files are compiled once, not by every process that is started.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test guests browser gallery check venv lint types unit hunt lock bench wheel install uninstall dist pkg deb rpm clean

demo: venv
	tools/demo $(BIN)/initadvisor

# Three rings: check within two minutes, test within fifteen, guests within an hour.
check test: venv
	@tools/setup test
	@tools/run-tests $(BIN) $@

# Every guest, power cut and fault; or those of one area: cuts, campaign, blscfg, ukify, unified,
# dracut, secure_boot, packages, apply, loaders, loop, measure.
guests: venv
	@tools/run-guests $(BIN) "$(AREA)"

# A report in a real browser: what it does, and pictures of it in build/browser to be looked at.
browser: venv
	@tools/setup test
	$(BIN)/pytest tests/browser

# The reports of docs/gallery, by guests that are booted and measure themselves.
gallery: venv
	@tools/setup test
	$(BIN)/python -m tests.vm.gallery

lint: venv
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports

types: venv
	$(BIN)/mypy

unit: venv
	$(BIN)/pytest -n "$$(nproc)" tests/unit

# Examples that the tests have not been given yet, more of them, and others each time.
hunt: venv
	$(BIN)/pytest -n "$$(nproc)" -m hypothesis --hypothesis-profile=hunt \
		--hypothesis-seed="$$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')" tests/unit tests/simulated

venv: $(VENV)/.ready

$(VENV)/.ready: requirements.lock pyproject.toml
	tools/setup build
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation \
		--config-settings editable_mode=compat -e .
	touch $@

lock:
	uv pip compile --universal --generate-hashes --no-header --python-version 3.11 --extra dev -o requirements.lock pyproject.toml

# For packagers: `make wheel` as anybody, then `make install` with DESTDIR. $(PYTHON) has to be the
# interpreter that will run it, and needs the modules build, installer, setuptools and wheel. HOOKS
# says whose hooks are wanted. Enabled are only the units that finish what was begun, where there is
# something to finish; systemctl preset (or enable) does it for those that have boots recorded and new
# kernels looked into: systemd/90-initadvisor.preset.
PREFIX ?= /usr/local
DESTDIR ?=
HOOKS ?= pacman mkinitcpio kernel-install debian
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
WHEEL := build/wheel/initadvisor-$(VERSION)-py3-none-any.whl

wheel: $(WHEEL)

# What an earlier build left would go into the wheel, too.
$(WHEEL): pyproject.toml README.md $(shell find initadvisor -name '*.py' -o -name '*.json' -o -name 'page.*')
	rm -rf build/lib build/bdist.*
	$(PYTHON) -m build --wheel --no-isolation --outdir build/wheel .

install: $(WHEEL)
	tools/install-files install "$(DESTDIR)" "$(PREFIX)" "$(HOOKS)"
	$(PYTHON) tools/install_package.py install $(WHEEL) "$(DESTDIR)" "$(PREFIX)"

# State and cache stay: initadvisor rollback, trial stop and candidates prune are for before that.
uninstall:
	tools/install-files uninstall "$(DESTDIR)" "$(PREFIX)" "$(HOOKS)"
	$(PYTHON) tools/install_package.py uninstall "$(DESTDIR)" "$(PREFIX)"

# The source of packaging/arch/PKGBUILD.
dist:
	git archive --prefix=initadvisor-$(VERSION)/ -o packaging/arch/initadvisor-$(VERSION).tar.gz HEAD

# Packages of what is committed, in build/: makepkg (not as root), dpkg-buildpackage, rpmbuild make them.
pkg deb rpm:
	tools/package $@

clean:
	rm -rf $(VENV) build *.egg-info
