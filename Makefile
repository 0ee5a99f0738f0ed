# Everything a newcomer or CI calls. `make venv` needs python3 with venv, a C compiler, pkg-config
# and the headers of liblzo2 and libsystemd; tools/setup installs them where it may.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check venv lint types unit lock bench install clean

demo: venv
	tools/demo $(BIN)/initadvisor

test: venv
	tools/setup test
	tools/run-tests $(BIN)

check: lint types unit

lint: venv
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports

types: venv
	$(BIN)/mypy

unit: venv
	$(BIN)/pytest -n auto tests/unit

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

# What belongs beside the Python package, which pip or the distribution's packager installs: man
# pages and systemd's units. Enabled are only those that finish what was begun, where there is
# something to finish: systemctl enable initadvisor-measure.timer has each boot recorded.
PREFIX ?= /usr
DESTDIR ?=

install:
	tools/install-files "$(DESTDIR)" "$(PREFIX)"

clean:
	rm -rf $(VENV) build *.egg-info
