# make run    executes the notebooks, each of which trains what it misses, and writes report/index.html
# make test   unit tests, every committed notebook against its recorded runs, a dozen of them at PROFILE=smoke;
#             FULL=1 tests every algorithm with every augmentation
#
# Settings:   make run PROFILE=quick DATA=folder JOBS=2 DEVICE=cpu ONLY=fedrdn/table1
PROFILE ?= quick
DATA    ?=
JOBS    ?=
DEVICE  ?= cpu
ONLY    ?=
FULL    ?=
fits    := import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))
PYTHON  ?= $(shell for name in python3.11 python3.12 python3.13 python3 python; do \
	$$name -c '$(fits)' 2>/dev/null && echo $$name && break; done)

bin := .venv/bin
installed := .venv/installed

.PHONY: run test
run: $(installed)
	@$(bin)/fednb run --profile "$(PROFILE)" --device "$(DEVICE)" \
		$(if $(DATA),--data "$(DATA)") $(if $(JOBS),--jobs "$(JOBS)") $(if $(ONLY),--only "$(ONLY)")

test: $(installed)
	$(bin)/ruff check .
	$(bin)/ruff format --check .
	$(bin)/mypy
	FULL="$(FULL)" $(bin)/pytest -n 2 --dist worksteal

$(installed): pyproject.toml constraints.txt
	@$(bin)/python -c '$(fits)' 2>/dev/null || { \
		test -n "$(PYTHON)" && $(PYTHON) -c '$(fits)' 2>/dev/null || { \
			echo "make: $(or $(PYTHON),what is installed) is no Python 3.11, 3.12 or 3.13; install one of them," \
			"or say where it is: make $(MAKECMDGOALS) PYTHON=path"; exit 1; }; \
		rm -rf .venv; echo "making .venv with $$($(PYTHON) --version)"; \
		$(PYTHON) -m venv .venv || { rm -rf .venv; \
			echo "make: $(PYTHON) cannot make .venv (Debian and Ubuntu: install python3-venv)"; exit 1; }; }
	@$(bin)/python -m pip --version >/dev/null 2>&1 || $(bin)/python -m ensurepip
	@echo "installing into .venv (the first time takes some minutes)"
	@$(bin)/python -m pip install --quiet -c constraints.txt -e ".[notebooks,site,prostate,test]"
	@touch $@
