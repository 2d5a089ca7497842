#!/bin/sh
# Builds the VMVX fuzzer with clang, libFuzzer, AddressSanitizer and UBSan, and runs it.
#
#   runtime/tests/vmvx/fuzz.sh MINUTES      (default 10; BUILD_DIR, PYTHON, CLANG as environment)
#
# Seeds are made anew when there are none; what the fuzzer finds interesting is kept in
# BUILD_DIR/corpus, and a crash in BUILD_DIR/crash-*.
set -eu

runtime=$(cd "$(dirname "$0")/../.." && pwd)
minutes=${1:-10}
build=${BUILD_DIR:-$runtime/../build/fuzz-vmvx}
python=${PYTHON:-python3}
clang=${CLANG:-clang}
command -v "$clang" >/dev/null || { echo "clang is needed: make system-deps" >&2; exit 1; }
mkdir -p "$build/objects" "$build/corpus"
"$python" "$runtime/tools/make_isa_headers.py" "$build"

flags="-std=c11 -O1 -g -D_GNU_SOURCE -w -I$runtime/include -I$runtime/src -I$runtime/tests -I$build"
checks="-fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all"
for source in "$runtime"/src/vmvx/*.c "$runtime"/src/ukernel/*.c "$runtime"/src/module/reader.c \
  "$runtime"/src/base/status.c "$runtime"/src/base/cpu*.c "$runtime"/src/base/half.c; do
  name=$(echo "${source#"$runtime"/src/}" | tr / _)
  object=$build/objects/$name.o
  changed=$(find "$(dirname "$source")" "$runtime/../src/eyas/module/vmvx_isa.py" -newer "$object" -type f 2>/dev/null) || true
  if [ -f "$object" ] && [ -z "$changed" ]; then continue; fi
  # Microkernels are thousands of loops: they guide the fuzzer by which of them were called. gcc
  # learns their instruction sets from a pragma in the file. Register blocks are unrolled so far that
  # UBSan takes minutes over them.
  kernel="-fsanitize=address -fsanitize-coverage=func,inline-8bit-counters,pc-table"
  case $name in
    ukernel_elements* | ukernel_products_portable*) kernel="$kernel -fsanitize=undefined -fno-sanitize-recover=all" ;;
  esac
  case $name in
    ukernel*avx512*) more="$kernel -march=x86-64-v4 -mavx512vnni -mavx512bf16" ;;
    ukernel*avx2*) more="$kernel -march=x86-64-v3" ;;
    ukernel*) more=$kernel ;;
    *) more=$checks ;;
  esac
  # shellcheck disable=SC2086
  echo $clang $flags $more -c "$source" -o "$object"
done >"$build/commands"
xargs -P "${JOBS:-2}" -I{} sh -c '{}' <"$build/commands"
# shellcheck disable=SC2086
$clang $flags $checks -fsanitize=fuzzer "$runtime/tests/vmvx/fuzz_vmvx.c" "$build"/objects/*.o -lm -o "$build/fuzz_vmvx"

[ -d "$build/seeds" ] || "$python" "$runtime/tests/vmvx/make_seeds.py" "$build/seeds"
cd "$build"
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
exec ./fuzz_vmvx -max_total_time=$((minutes * 60)) -max_len=16384 -len_control=0 -timeout=60 \
  -rss_limit_mb=3000 -print_final_stats=1 corpus seeds
