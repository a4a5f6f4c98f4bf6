# `make up` is all it takes on a fresh clone. Every target stands on its own: each brings up the environment first.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
COMPILE := $(BIN)/pip-compile --quiet --strip-extras --no-header --annotation-style=line \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host

.PHONY: help install up demo check format test bench messages lock

help:  ## say what there is
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(STAMP)  ## make the environment in .venv from the lock file

# The development lock holds everything of the other one, so one environment serves every target.
$(STAMP): requirements.txt requirements-dev.txt
	@echo "installing into $(VENV): 2 GB, a few minutes the first time"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@# Twice quiet: errors are still said, an index's warnings about each package are not.
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -r requirements-dev.txt
	touch $@

up: $(STAMP)  ## run everything in the foreground: database, broker, web, worker, beat
	@exec $(BIN)/python manage.py up

demo: $(STAMP)  ## drive the whole loop over the demonstration and print the series
	@exec $(BIN)/python manage.py demo

check: $(STAMP)  ## lint, types, import rules, templates, migrations, production settings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/djade --check --target-version 5.2 $$(git ls-files --cached --others --exclude-standard 'templates/*.html')
	$(BIN)/python manage.py makemigrations --check --dry-run
	DEBUG=0 HTTPS=1 SECRET_KEY=$$($(BIN)/python -c 'import secrets; print(secrets.token_urlsafe(64))') \
		$(BIN)/python -W error manage.py check --deploy --fail-level WARNING

format: $(STAMP)  ## put the sources into house style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/djade --target-version 5.2 $$(git ls-files --cached --others --exclude-standard 'templates/*.html')

test: check  ## everything that CI runs
	$(BIN)/pytest -n 2

bench: $(STAMP)  ## figures that the documentation quotes
	$(BIN)/python -m tests.benchmarks.harness_repository
	$(BIN)/python -m tests.benchmarks.start_up
	$(BIN)/python -m tests.benchmarks.diff_speed
	@# The rows that take minutes (faults, kills, many) are for whoever asks for them.
	$(BIN)/python -m tests.benchmarks.evaluation_speed c20 c50 fast tools rerun

messages: $(STAMP)  ## bring both catalogues up to date; the Chinese is for people to fill in
	$(BIN)/python manage.py makemessages -l zh_Hans -l en --no-location --no-wrap --no-obsolete \
		-i '.venv/*' -i 'var/*' -i 'tests/*' -i 'static/*'
	@# What was guessed from like texts is no English text: emptied here, it is filled in below.
	msgattrib --no-wrap --clear-fuzzy --clear-previous --empty \
		--output-file locale/en/LC_MESSAGES/django.po locale/en/LC_MESSAGES/django.po
	msgen --no-wrap --output-file locale/en/LC_MESSAGES/django.po locale/en/LC_MESSAGES/django.po
	$(BIN)/python manage.py compilemessages --ignore .venv --ignore var

lock: $(STAMP)  ## write the lock files anew from the .in files
	$(COMPILE) --output-file requirements.txt requirements.in
	$(COMPILE) --output-file requirements-dev.txt requirements-dev.in
	@# The plain version: which build of it pip takes is the installing machine's business.
	sed -i -E 's/^(torch==[0-9.]+)\+[a-z0-9.]+/\1/' requirements.txt requirements-dev.txt
