# The words one must know. Everything else is CMake (CMakePresets.json) and scripts/.
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)

.PHONY: build all test unit demo install deps format lint asan tsan bench clean

build: deps            ## the program, at build/release/muster
	cmake --preset release
	cmake --build --preset release --target muster muster_codegen -j $(JOBS)

all: build             ## the program and its tests
	cmake --build --preset release -j $(JOBS)

test: all              ## every test
	ctest --test-dir build/release --output-on-failure -j $(JOBS)

unit: all              ## the fast tests (under two minutes)
	ctest --test-dir build/release --output-on-failure -j $(JOBS) -L unit

demo: build            ## tweets to a served endpoint, start to end
	scripts/demo

install: build         ## PREFIX=/usr/local
	cmake --install build/release --prefix $(PREFIX)

deps:                  ## Debian 12 packages, when some are missing
	@scripts/install-deps

format:                ## clang-format over the tree
	scripts/format

lint: build            ## formatting, layers, clang-tidy
	scripts/lint

asan tsan: deps        ## every test under a sanitizer
	cmake --preset $@
	cmake --build --preset $@ -j $(JOBS)
	ctest --test-dir build/$@ --output-on-failure -j $(JOBS)

bench: deps            ## kernels against oneDNN, on this machine
	scripts/bench

clean:
	rm -rf build
