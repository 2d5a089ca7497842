#!/bin/sh
# Links the smallest program that runs modules of bytecode (VM, VMVX, microkernels of every x86-64
# instruction set, local-sync; no loader of machine code), static and stripped, and prints its size.
# musl is the C library of such programs; with glibc the same program carries about 700 kB of it.
#
#   runtime/tests/size/vmvx_size.sh [MODULE.eyas]      runs the module with it too
#
# BUILD_DIR and PYTHON as environment. LIMIT_KB fails above a size.
set -eu

runtime=$(cd "$(dirname "$0")/../.." && pwd)
build=${BUILD_DIR:-$runtime/../build/vmvx-size}
python=${PYTHON:-python3}
command -v musl-gcc >/dev/null || { echo "musl-gcc is needed: make system-deps" >&2; exit 1; }
"$python" "$runtime/tools/make_isa_headers.py" "$build"

# As in CMakeLists.txt.
elements="-O2 -ftree-vectorize -fvect-cost-model=dynamic --param=vect-epilogues-nomask=0 -ffp-contract=off
  -fno-math-errno -fno-trapping-math"

link() {  # link NAME COMPILER
  mkdir -p "$build/$1"
  find "$runtime/src" "$runtime/tests/size" -name '*.c' ! -name 'elf_image.c' ! -name 'imports.c' ! -name pool.c ! -path '*/hal/far/*' \
    ! -path '*/hal/vulkan/*' |
    while read -r source; do
      object=$build/$1/$(echo "${source#"$runtime"/}" | tr / _).o
      # Microkernels are built for speed as in any runtime, but for those of CPUs without vectors.
      case $source in
        */ukernel/elements_portable.c) speed="$elements -Os -fno-tree-vectorize" ;;
        */ukernel/products_portable.c) speed=-Os ;;
        */ukernel/elements*) speed=$elements ;;
        */ukernel/* | */vmvx/interpreter.c) speed=-O2 ;;
        */tests/size/*) speed=-Os ;;
        *) speed="-Os -flto" ;;
      esac
      # shellcheck disable=SC2086
      [ -n "$(find "$object" -newer "$source" 2>/dev/null)" ] ||
        echo $2 -std=c11 $speed -DNDEBUG -D_GNU_SOURCE -DEYAS_WITHOUT_MACHINE_CODE -DEYAS_WITHOUT_FAR -DEYAS_WITHOUT_VULKAN -fno-pie -fno-asynchronous-unwind-tables -fno-align-functions -fno-align-loops \
          -fno-align-jumps -fno-math-errno -fmerge-all-constants -DEYAS_VMVX_WITHOUT_NAMES \
          -ffunction-sections -fdata-sections "-I$runtime/include" "-I$runtime/src" "-I$build" -c "$source" -o "$object"
    done | xargs -P "${JOBS:-2}" -I{} sh -c '{}'
  $2 -flto -Os -static -no-pie -s -fuse-ld=gold -Wl,--gc-sections,--icf=all,--build-id=none,-z,norelro "$build/$1"/*.o -lm -lpthread \
    -o "$build/vmvx-$1"
}

# The kernel's own headers are not part of musl.
link musl "musl-gcc -idirafter /usr/include -idirafter /usr/include/$(gcc -print-multiarch)"
link glibc "${CC:-gcc}"
for name in musl glibc; do
  bytes=$(wc -c <"$build/vmvx-$name")
  echo "vmvx runtime, static, stripped, $name: $bytes bytes ($((bytes / 1000)) kB)"
done
if [ $# -gt 0 ]; then
  echo "$1: $("$build/vmvx-musl" "$1") result(s)"
fi
bytes=$(wc -c <"$build/vmvx-musl")
[ "$bytes" -lt $((${LIMIT_KB:-400} * 1000)) ] || { echo "more than ${LIMIT_KB:-400} kB" >&2; exit 1; }
