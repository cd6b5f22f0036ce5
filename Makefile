# Everything that a clone needs is set up by the first target that needs it: packages, bundles, and a real
# kube-apiserver, etcd and kubectl, which are built once for the user and kept outside the checkout.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Node of the version that the lock file names, whatever the machine has.
RUN := npx --no-install

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: build ## Watch resources become users and groups in lldap, all on this machine (KEEP=1 keeps it running)
	@$(RUN) node test/local/demo/main.ts

test: build tools ## Run all tests
	@$(RUN) node test/run.ts $(TESTS)

chaos: node_modules/.ready ## Run 100,000 new random schedules (SCHEDULES=, SEED=)
	@SCHEDULES=$${SCHEDULES:-100000} SEED=$${SEED:-$$RANDOM$$RANDOM} $(RUN) mocha --exit test/chaos/chaos.test.ts

mutation: node_modules/.ready ## Change the decision code in thousands of ways and see which changes no test notices (about 40 minutes)
	@rm -rf dist/mutation/{functions,shared,test,crds}
	@mkdir -p dist/mutation
	@cp -r functions shared test crds .mocharc.json test/mutation/{package.json,package-lock.json,stryker.config.json} dist/mutation
	@cd dist/mutation && npm ci --no-audit --no-fund --loglevel=error && ../../node_modules/.bin/node node_modules/.bin/stryker run

check: node_modules/.ready ## Check types, lint and format
	@$(RUN) tsc
	@$(RUN) biome check --error-on-warnings .

build: dist/main.cjs ## Bundle the functions into dist/

release: node_modules/.ready ## Write dist/crds.yaml and dist/install.yaml (IMAGE=registry/name:tag, OVERLAY=single-namespace)
	@$(RUN) node scripts/release.ts '$(IMAGE)' '$(OVERLAY)'

image: ## Build the image with docker or podman (IMAGE=registry/name:tag, BASE=a distroless Node 24, NODE=a Node 24 to build with)
	@test -n '$(ENGINE)' || { echo 'docker or podman is needed: install one of them and try again.' >&2; exit 1; }
	$(ENGINE) build --tag '$(or $(IMAGE),lldap-knative-operator:$(VERSION))' \
	  --build-arg "SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct || echo 0)" $(foreach arg,NODE BASE,$(if $($(arg)),--build-arg '$(arg)=$($(arg))')) .

bench: build tools ## Measure what starts, resources and sweeps cost, and exit with 1 if a bar is missed (N=1000 of each kind; LLDAP_URL= and so on for a real lldap)
	@N='$(N)' $(RUN) node test/bench/main.ts

clean: ## Remove what was built here; the built tools in the user's cache stay
	rm -rf dist node_modules

tools: node_modules/.ready
	@$(RUN) node test/local/tools/build.ts > /dev/null

VERSION = $(shell sed -n 's/^  "version": "\(.*\)",$$/\1/p' package.json)
ENGINE = $(firstword $(foreach engine,docker podman,$(shell command -v $(engine) || true)))

SOURCES := $(shell find functions shared -name '*.ts')
dist/main.cjs: node_modules/.ready scripts/build.ts scripts/bundle-options.ts $(SOURCES)
	@$(RUN) node scripts/build.ts

node_modules/.ready: package.json package-lock.json
	@command -v npm > /dev/null || { echo 'Node.js 20 or later with npm is needed: install it and try again.' >&2; exit 1; }
	@node -e 'if (+process.versions.node.split(".")[0] < 20) { console.error("Node.js " + process.versions.node + " is too old: install 20 or later."); process.exit(1) }'
	@echo 'Installing packages ...'
	@npm ci --no-audit --no-fund --loglevel=error
	@touch $@

.PHONY: help demo test chaos mutation check build release image bench clean tools
