#!/bin/sh
# Builds eyas-run, statically linked, for this machine and for every other that has a compiler here
# (Debian: gcc-aarch64-linux-gnu, gcc-riscv64-linux-gnu; `make system-deps`).
#
#   runtime/tools/cross.sh [FOLDER]     FOLDER/ARCH/eyas-run; default build/cross
#   WITH_TESTS=1 runtime/tools/cross.sh     the C tests, too
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
folder=${1:-$root/build/cross}
python=${PYTHON:-python3}

build() {  # ARCH COMPILER [OPTION...]
  arch=$1 compiler=$2
  shift 2
  if ! command -v "$compiler" >/dev/null; then
    echo "$arch: skipped, there is no $compiler"
    return 0
  fi
  mkdir -p "$folder/$arch"
  log=$folder/$arch/build.log
  cmake -S "$root" -B "$folder/$arch" -G Ninja -DCMAKE_C_COMPILER="$compiler" -DEYAS_BUILD_PYTHON=OFF \
    -DEYAS_BUILD_TOOLS=ON -DEYAS_BUILD_TESTS="${WITH_TESTS:-OFF}" -DPython_EXECUTABLE="$(command -v "$python")" \
    "$@" >"$log" 2>&1 || { cat "$log" >&2; return 1; }
  cmake --build "$folder/$arch" --target "$([ "${WITH_TESTS:-}" ] && echo all || echo eyas-run)" >"$log" 2>&1 ||
    { cat "$log" >&2; return 1; }
  echo "$arch: $folder/$arch/eyas-run"
}

build native "${CC:-gcc}"
for arch in aarch64 riscv64; do
  build $arch $arch-linux-gnu-gcc -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=$arch
done
