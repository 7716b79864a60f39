#!/usr/bin/env bash
# Builds the wheels of bindings/python into target/dist that run on any Linux: manylinux_2_28 (glibc
# 2.28 of 2018, or newer) and musllinux_1_2 (Alpine), each for all versions of Python from 3.9 on.
# tools/wheels.sh [--target TRIPLE]... [--debug] [--check]
# --target: x86_64-unknown-linux-gnu, x86_64-unknown-linux-musl, or aarch64 in place of x86_64;
#   default both of this machine, as far as rustup has them (rustup target add TRIPLE)
# --debug: not optimised, which is built sooner
# --check: builds nothing; looks at what the wheels in target/dist need, and tries the one for this
#   machine in a clean environment
# It needs python3 with venv, and pip's packages maturin and ziglang: zig links against the C library
# of any age, whatever this machine has.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
out=$CARGO_TARGET_DIR/dist
venv=$CARGO_TARGET_DIR/python/build
glibc=2.28

die() { echo "wheels: $*" >&2; exit 1; }
targets=() profile=--release check=
while [ $# -gt 0 ]; do
    case $1 in
    --target) targets+=("${2:?TRIPLE}"); shift 2 ;;
    --debug) profile=--profile=dev; shift ;;
    --check) check=yes; shift ;;
    *) die "unknown argument $1" ;;
    esac
done

build() { # TRIPLE
    local tag=manylinux_${glibc/./_}
    case $1 in *-musl) tag=musllinux_1_2 ;; esac
    "$venv/bin/maturin" build --locked --quiet $profile --zig --target "$1" --compatibility "$tag" \
        --manifest-path bindings/python/Cargo.toml --out "$out"
}

# What the library in a wheel needs of the machine: nothing but the C library, and of glibc no
# version beyond the one that the wheel names.
look_at() { # WHEEL
    local folder needed newest
    folder=$(mktemp -d)
    python3 -m zipfile -e "$1" "$folder"
    needed=$(readelf -d "$folder"/braidcast/_native*.so | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort | paste -sd ' ')
    newest=$(readelf -V "$folder"/braidcast/_native*.so | grep -oE 'GLIBC_[0-9.]+|$' | sed 's/GLIBC_//' | sort -Vu | tail -n 1)
    rm -r "$folder"
    case $1 in
    *musllinux*)
        [ -z "$newest" ] || die "$1 needs glibc $newest"
        grep -qvE '^(libc(\.musl-[a-z0-9_]+)?\.so(\.1)?|libgcc_s\.so\.1)$' <<<"${needed// /$'\n'}" && die "$1 needs $needed" ;;
    *)
        [ "$(printf '%s\n' "$newest" $glibc | sort -V | tail -n 1)" = $glibc ] || die "$1 needs glibc $newest"
        grep -qvE '^(lib(c|m|dl|rt|pthread)\.so\.[0-9]+|libgcc_s\.so\.1|ld-linux[-a-z0-9_]*\.so\.[0-9]+)$' <<<"${needed// /$'\n'}" && die "$1 needs $needed" ;;
    esac
    echo "wheels: $1 needs $needed${newest:+, glibc $newest or newer}"
}

# A clean environment that has the wheel alone sends messages over two paths.
try() { # WHEEL
    local clean=$CARGO_TARGET_DIR/python/clean
    rm -rf "$clean"
    python3 -m venv "$clean"
    "$clean/bin/pip" install --quiet --no-index "$1"
    (cd "$CARGO_TARGET_DIR" && timeout 60 "$clean/bin/python" "$OLDPWD/bindings/python/examples/two_paths.py" >/dev/null)
    echo "wheels: $1 installed in a clean environment, and used"
}

if [ -z "$check" ]; then
    [ -x "$venv/bin/maturin" ] || python3 -m venv "$venv"
    "$venv/bin/python" -c 'import ziglang, maturin' 2>/dev/null || "$venv/bin/pip" install --quiet 'maturin>=1.9,<2' ziglang
    export PATH=$venv/bin:$PATH
    if [ ${#targets[@]} = 0 ]; then
        for libc in gnu musl; do
            target=$(uname -m)-unknown-linux-$libc
            if [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then targets+=("$target")
            else echo "wheels: none for $target: rustup target add $target"; fi
        done
    fi
    rm -f "$out"/braidcast-*.whl
    for target in "${targets[@]}"; do build "$target"; done
fi
for wheel in "$out"/braidcast-*.whl; do
    [ -e "$wheel" ] || die "there are none in $out: tools/wheels.sh builds them"
    look_at "$wheel"
    case $wheel in *manylinux*_"$(uname -m)".whl) try "$wheel" ;; esac
done
