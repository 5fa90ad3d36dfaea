# Every target that needs PostgreSQL, PostGIS or a C compiler depends on setup. `make help` lists the targets.

LINT := bin/tools/golangci-lint

.DEFAULT_GOAL := help
.PHONY: help setup demo build test test-versions faults lint fmt cover fuzz bench clean

help: ## show this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install PostgreSQL, PostGIS and a C compiler where they are missing (Debian, Ubuntu)
	@scripts/setup.sh

demo: setup build ## watch events go from a throwaway PostgreSQL to JetStream (DURATION=20s RATE=50)
	bin/tidegate demo $(if $(DURATION),--duration $(DURATION)) $(if $(RATE),--rate $(RATE))

build: ## build bin/tidegate
	go build -o bin/tidegate ./cmd/tidegate

# What runs the built program needs no race detector in the test itself. Four packages at once: they mostly wait.
BUILT := ./test/... ./bench/... ./docs/...

test: setup ## run every test, those of the packages with the race detector (FLAGS='-run Name -v')
	go test -race -p 4 -timeout 12m $(FLAGS) $$(go list ./... | grep -vE '/(test|bench|docs)(/|$$)')
	go test -p 4 -timeout 12m $(FLAGS) $(BUILT)

test-versions: setup ## run the protocol tests on every supported PostgreSQL and nats-server (ONLY='13 18 nats-2.9.10')
	@scripts/test-versions.sh

faults: setup ## break things for an hour and count what is lost (ROUNDS=3 SEED=)
	ROUNDS=$(or $(ROUNDS),3) SEED=$(SEED) FAULTS_DOC=$(CURDIR)/docs/faults.md \
		go test -count=1 -timeout 90m -parallel 3 -v -run TestFaultsLoseNothing $(FLAGS) ./test/faults

lint: setup $(LINT) ## check format, lint rules, vet, go.mod and generated pages
	LINT=$(LINT) scripts/lint.sh

fmt: $(LINT) ## format the code
	$(LINT) fmt ./...

cover: setup ## show the coverage of each package; fail where the core is below 95 %
	scripts/cover.sh

fuzz: setup ## run every fuzz target (FUZZTIME=30s each)
	scripts/fuzz.sh

bench: setup build ## measure speed beside a raw publish and pg_recvlogical
	bench/run

clean: ## remove what was built
	rm -rf bin dist coverage.out

# The tools have a module of their own, so that tidegate's users never see what they depend on.
$(LINT): tools/go.mod tools/go.sum
	go build -C tools -o ../bin/tools/ tool
	@touch $@
