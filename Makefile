# Everything that a clone needs is set up by the first target that needs it: packages, bundles, and a real
# kube-apiserver, etcd and kubectl, which are built once for the user and kept outside the checkout.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Node of the version that the lock file names, whatever the machine has.
RUN := npx --no-install

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: build tools ## Watch resources become users and groups in lldap, all on this machine (KEEP=1 keeps it running)
	@$(RUN) node test/local/demo/main.ts

test: build tools ## Run all tests
	@$(RUN) node test/run.ts $(TESTS)

check: node_modules/.ready ## Check types, lint and format
	@$(RUN) tsc
	@$(RUN) biome check --error-on-warnings .

build: dist/main.mjs ## Bundle the functions into dist/

bench: build ## Measure cold starts side by side with express alone
	@$(RUN) node test/bench/cold-start.ts

clean: ## Remove what was built here; the built tools in the user's cache stay
	rm -rf dist node_modules

tools: node_modules/.ready
	@$(RUN) node test/local/tools/build.ts > /dev/null

SOURCES := $(shell find functions shared -name '*.ts')
dist/main.mjs: node_modules/.ready build.ts $(SOURCES)
	@$(RUN) node build.ts

node_modules/.ready: package.json package-lock.json
	@command -v npm > /dev/null || { echo 'Node.js 20 or later with npm is needed: install it and try again.' >&2; exit 1; }
	@node -e 'if (+process.versions.node.split(".")[0] < 20) { console.error("Node.js " + process.versions.node + " is too old: install 20 or later."); process.exit(1) }'
	@echo 'Installing packages ...'
	@npm ci --no-audit --no-fund --loglevel=error
	@touch $@

.PHONY: help demo test check build bench clean tools
