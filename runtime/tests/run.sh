#!/bin/sh
# Builds and runs the C tests: runtime/tests/*/*_test.c, each a program linked with all of the
# runtime, once under ASan + UBSan and once under TSan. Also builds the benchmarks, so that they
# keep compiling.
#
#   runtime/tests/run.sh                all tests, both variants
#   runtime/tests/run.sh hal            only the tests of one folder
#   VARIANTS=address runtime/tests/run.sh   only one variant: address or thread
#   BUILD_DIR=/some/dir                 keep the build there (default: a temporary folder)
set -eu

runtime=$(cd "$(dirname "$0")/.." && pwd)
only=${1:-*}
variants=${VARIANTS:-address thread}
cc=${CC:-gcc}
python=${PYTHON:-python3}
jobs=${JOBS:-2}
if [ -n "${BUILD_DIR:-}" ]; then
  build=$BUILD_DIR
else
  build=$(mktemp -d)
  trap 'rm -rf "$build"' EXIT
fi
mkdir -p "$build/generated"

includes="-I$runtime/include -I$runtime/src -I$runtime/tests -I$build/generated"
warnings="-std=c11 -Wall -Wextra -Wpedantic -Werror -fvisibility=hidden -D_GNU_SOURCE"

"$python" "$runtime/tools/make_isa_headers.py" "$build/generated"

# archive DIRECTORY FLAGS: all of the runtime as DIRECTORY/libeyas.a. One object a source, named
# after its path.
archive() {
  rm -rf "$1"
  mkdir -p "$1"
  find "$runtime/src" -name '*.c' | sort | while read -r source; do
    name=$(echo "${source#"$runtime"/src/}" | tr / _)
    printf '%s\0%s\0' "$source" "$1/${name%.c}.o"
  done | xargs -0 -n 2 -P "$jobs" sh -c "$cc $warnings $2 $includes -c \"\$0\" -o \"\$1\""
  ar rcs "$1/libeyas.a" "$1"/*.o
}

# An executable image that the C compiler's linker made, for the loader's test.
$cc -O2 -shared -nostdlib -fPIC -fno-plt -fno-stack-protector "-I$runtime/include" \
  -Wl,--hash-style=sysv,-z,separate-code,--build-id=none,--defsym=eyas_executable_abi=2 \
  "$runtime/tests/hal/images/kernels.c" -o "$build/kernels.so"
export EYAS_TEST_IMAGE="$build/kernels.so"

export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1}

failed=0
for variant in $variants; do
  case $variant in
    address) flags="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all" ;;
    thread) flags="-O1 -g -fsanitize=thread" ;;
    *) echo "unknown variant '$variant'; allowed: address, thread" >&2; exit 2 ;;
  esac
  objects=$build/$variant
  archive "$objects" "$flags"
  find "$runtime/tests" -mindepth 2 -maxdepth 2 -path "$runtime/tests/$only/*_test.c" |
    sort | while read -r source; do
    name=$(echo "${source#"$runtime"/tests/}" | tr / _)
    printf '%s\0%s\0' "$source" "$objects/${name%.c}.test"
  done | xargs -0 -r -n 2 -P "$jobs" \
    sh -c "$cc $warnings $flags $includes \"\$0\" $objects/libeyas.a -lm -lpthread -o \"\$1\""
  for test in "$objects"/*.test; do
    [ -x "$test" ] || continue
    printf '[%s] ' "$variant"
    "$test" || { echo "FAILED: $(basename "$test") ($variant)"; failed=1; }
  done
done

archive "$build/bench" -O2
for source in "$runtime"/tests/bench/*.c; do
  [ -f "$source" ] || continue
  # shellcheck disable=SC2086
  $cc $warnings -O2 $includes "$source" "$build/bench/libeyas.a" -lm -lpthread \
    -o "$build/$(basename "${source%.c}")"
done

[ $failed -eq 0 ] && echo "all C tests passed"
exit $failed
