#!/bin/sh
# Builds and runs the C tests: runtime/tests/*/*_test.c, each a program linked with all of the
# runtime, once under ASan + UBSan and once under TSan. Also builds the benchmarks, so that they
# keep compiling. Builds are kept, and pytest (tests/runtime/conftest.py) uses the same ones.
#
#   runtime/tests/run.sh                all tests, both variants
#   runtime/tests/run.sh hal            only the tests of one folder
#   VARIANTS=address runtime/tests/run.sh   only one variant: address or thread
#   BUILD_DIR=/some/dir                 keep the builds there (default: build)
set -eu

runtime=$(cd "$(dirname "$0")/.." && pwd)
root=$(dirname "$runtime")
only=${1:-}
variants=${VARIANTS:-address thread}
python=${PYTHON:-python3}
jobs=${JOBS:-2}
build=${BUILD_DIR:-$root/build}
mkdir -p "$build"

# make DIRECTORY OPTIONS: configures and builds everything in it.
make() {
  directory=$1
  shift
  cmake -S "$root" -B "$directory" -G Ninja -DEYAS_BUILD_PYTHON=OFF -DEYAS_BUILD_TESTS=ON \
    "-DPython_EXECUTABLE=$python" "$@" >/dev/null
  cmake --build "$directory" -j "$jobs" -- --quiet
}

# An executable image that the C compiler's linker made, for the loader's test.
${CC:-gcc} -O2 -shared -nostdlib -fPIC -fno-plt -fno-stack-protector "-I$runtime/include" \
  -Wl,--hash-style=sysv,-z,separate-code,--build-id=none,--defsym=eyas_executable_abi=2 \
  "$runtime/tests/hal/images/kernels.c" -o "$build/kernels.so"
export EYAS_TEST_IMAGE="$build/kernels.so"

export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1}

failed=0
for variant in $variants; do
  case $variant in
    address) sanitizers=address,undefined folder=$build/asan ;;
    thread) sanitizers=thread folder=$build/tsan ;;
    *) echo "unknown variant '$variant'; allowed: address, thread" >&2; exit 2 ;;
  esac
  make "$folder" "-DEYAS_SANITIZE=$sanitizers" -DCMAKE_BUILD_TYPE=Debug
  echo "[$variant]"
  ctest --test-dir "$folder" -j "$jobs" --output-on-failure --no-tests=error -R "^$only" ||
    failed=1
done
make "$build/check"

[ $failed -eq 0 ] && echo "all C tests passed"
exit $failed
