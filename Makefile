# SPDX-License-Identifier: MIT
# Short commands for CMake. CMakeLists.txt and CMakePresets.json decide everything.

PREFIX ?= /usr/local
DESTDIR ?=
RELEASE = build/gcc-release

MINUTES ?= 1
SEED ?= 0
SECONDS ?= 60
MUTANTS ?= 10000

.PHONY: help run serve browser test test-long explore fuzz garden bench scale install tidy format
.PHONY: symbols clean slow soak

help:
	@echo 'make run        build (gcc, -O2 -g) and run the demo'
	@echo 'make serve      run a web server on 127.0.0.1:8080 (AT=ADDRESS: elsewhere)'
	@echo 'make browser    install Chromium, and open the web server in it as a test'
	@echo 'make test       run every check and every sanitizer; under a quarter of an hour'
	@echo 'make test-long  the same on all presets, with larger models; hours'
	@echo 'make test-NAME  run one preset: make test-gcc-asan (names: CMakePresets.json)'
	@echo 'make explore    run the tests simulated, with new seeds (MINUTES=1 SEED=base)'
	@echo 'make fuzz       search for bytes that break a parser of HTTP or Janus (SECONDS=60;'
	@echo '                KEEP=1: keep the new inputs in tests/http/corpus.txt)'
	@echo 'make garden     send nasty requests to packaged servers, rewrite docs/http/garden.md'
	@echo '                (MUTANTS=10000 SEED=0)'
	@echo 'make slow       attack the web server with slowhttptest (SECONDS=60 each)'
	@echo 'make soak       a random mixture of requests; nothing may grow (MINUTES=1 SEED=0;'
	@echo '                ten minutes are about a day of 1000 requests a second)'
	@echo 'make bench      measure beside other systems (ONLY=spawn,fib QUICK=1: fewer;'
	@echo '                CHARTS=1: rewrite docs/bench also then;'
	@echo '                BEFORE=../old/build/gcc-release: beside another version)'
	@echo 'make scale      measure two cores and predict up to 128: docs/scaling.md'
	@echo '                (COSTS="NAME=VALUE ...": of another machine)'
	@echo 'make install    install to PREFIX (/usr/local) below DESTDIR'
	@echo 'make tidy       check the rules of this tree (tools/tidy.py)'
	@echo 'make format     format all C files in place (clang-format)'
	@echo 'make symbols    rewrite the lists of exported symbols in tests/abi'
	@echo 'make clean      remove build/'
	@echo
	@echo 'Most of these first ask tools/bootstrap for missing packages.'

run:
	@tools/bootstrap run
	@mkdir -p build
	@{ cmake --preset gcc-release && cmake --build $(RELEASE); } >build/run.log 2>&1 || \
	    { cat build/run.log; exit 1; }
	@$(RELEASE)/examples/demo

serve:
	@tools/bootstrap run
	@mkdir -p build
	@{ cmake --preset gcc-release && cmake --build $(RELEASE) --target site; } \
	    >build/serve.log 2>&1 || { cat build/serve.log; exit 1; }
	@$(RELEASE)/examples/site $(or $(AT),127.0.0.1:8080) examples/site

browser:
	@tools/bootstrap browser
	@mkdir -p build
	@{ cmake --preset gcc-release && cmake --build $(RELEASE) --target site; } \
	    >build/browser.log 2>&1 || { cat build/browser.log; exit 1; }
	@python3 tests/examples/browser_test.py $(RELEASE)/examples/site examples/site

test:
	@tools/test

test-long:
	@JANUSRT_MODELS=long JANUSRT_TIDY=deep tools/test

test-%:
	@tools/test $*

explore:
	@tools/bootstrap run
	@mkdir -p build
	@{ cmake --preset gcc-release && cmake --build $(RELEASE); } >build/explore.log 2>&1 || \
	    { cat build/explore.log; exit 1; }
	@tools/explore.py --minutes '$(MINUTES)' --seed '$(SEED)' $(RELEASE)/tests

fuzz:
	@tools/bootstrap test
	@mkdir -p build
	@{ cmake --preset clang-release && cmake --build build/clang-release --target fuzzers; } \
	    >build/fuzz.log 2>&1 || { cat build/fuzz.log; exit 1; }
	@tools/fuzz.py build/clang-release/tests/http/fuzz --seconds '$(SECONDS)' \
	    $(if $(filter-out 0,$(KEEP)),--keep)
	@tests/lang/fuzz/fuzz.py build/clang-release/tests/lang/fuzz --seconds '$(SECONDS)'

garden:
	@tools/bootstrap garden
	@tools/bootstrap run
	@mkdir -p build
	@{ cmake --preset gcc-release && cmake --build $(RELEASE) --target http.understand_rows; } \
	    >build/garden.log 2>&1 || { cat build/garden.log; exit 1; }
	@tools/garden.py docs/http/garden.md --mutants '$(MUTANTS)' --seed '$(SEED)' \
	    --understand $(RELEASE)/tests/http/understand_rows

slow:
	@tools/bootstrap slow
	@mkdir -p build
	@{ cmake --preset gcc-release && cmake --build $(RELEASE) --target site; } \
	    >build/slow.log 2>&1 || { cat build/slow.log; exit 1; }
	@tools/slow.py $(RELEASE)/examples/site --seconds '$(SECONDS)'

soak:
	@tools/bootstrap run
	@mkdir -p build
	@{ cmake --preset gcc-release && cmake --build $(RELEASE) --target soak; } \
	    >build/soak.log 2>&1 || { cat build/soak.log; exit 1; }
	@$(RELEASE)/bench/soak/soak '$(MINUTES)' '$(SEED)'

bench:
	@tools/bootstrap bench
	@mkdir -p build
	@cmake --preset gcc-release >build/bench.log 2>&1 || { cat build/bench.log; exit 1; }
	@ONLY='$(ONLY)' BEFORE='$(abspath $(BEFORE))' \
	    tools/bench.py --names $(RELEASE)/bench/programs.json
	@tools/bench_peers.py $(RELEASE)
	@ONLY='$(ONLY)' QUICK='$(QUICK)' CHARTS='$(CHARTS)' BEFORE='$(abspath $(BEFORE))' \
	    cmake --build $(RELEASE) --target bench$(if $(filter-out 0,$(QUICK)),_quick)

scale:
	@tools/bootstrap run
	@mkdir -p build
	@{ cmake --preset gcc-release && cmake --build $(RELEASE) --target scale scale_measure; } \
	    >build/scale.log 2>&1 || { cat build/scale.log; exit 1; }
	@python3 bench/scale/report.py $(RELEASE)/bench/scale --costs '$(COSTS)'

install:
	@tools/bootstrap install
	cmake --preset gcc-release -DCMAKE_INSTALL_PREFIX='$(PREFIX)'
	cmake --build $(RELEASE) --target installed
	DESTDIR='$(DESTDIR)' cmake --install $(RELEASE)
	@[ -n '$(DESTDIR)' ] || [ "$$(id -u)" != 0 ] || ldconfig

tidy:
	@python3 tools/tidy.py
	@python3 tools/names.py

format:
	@find include src http tls lang cc cmd tests bench examples -name '*.[ch]' \
	    -exec clang-format-19 -i {} +

symbols:
	@tools/bootstrap run
	cmake --preset gcc-release
	cmake --build $(RELEASE)
	tests/abi/symbols_test.sh --write $(RELEASE)/src/libjanusrt.so \
	    $(RELEASE)/http/libjanusrt-http.so $(wildcard $(RELEASE)/tls/libjanusrt-tls.so)

clean:
	rm -rf build
