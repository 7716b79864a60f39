#!/usr/bin/env bash
# Builds the wheel of bindings/python, installs it in a clean environment, and tests it there with
# its examples: the notebook, and a sweep over two workers of Dask. Needs python3 with venv, and
# pip's packages (mypy, pandas, matplotlib, dask, nbclient, ipykernel). Programs with type hints go
# through mypy, as strict as it is. tools/python-test.sh [--quick] [--debug]
# --quick: without the notebook and Dask
# --debug: not optimised, which is built sooner
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
out=$CARGO_TARGET_DIR/python
packages=(mypy pandas)
profile=--release
if [[ " $* " = *" --debug "* ]]; then profile=--profile=dev; fi
if [[ " $* " != *" --quick "* ]]; then
    packages+=(matplotlib 'dask[distributed]' nbclient nbformat ipykernel)
    export BRAIDCAST_EXAMPLES=1
fi

[ -x "$out/build/bin/maturin" ] || { python3 -m venv "$out/build" && "$out/build/bin/pip" install --quiet 'maturin>=1.9,<2'; }
rm -rf "$out/wheels"
"$out/build/bin/maturin" build --locked --quiet $profile --manifest-path bindings/python/Cargo.toml --out "$out/wheels"

rm -rf "$out/test"
python3 -m venv "$out/test"
"$out/test/bin/pip" install --quiet "${packages[@]}" "$out"/wheels/braidcast-*.whl
# Beside the sources Python would find those.
cd "$out"
mypy=("$out/test/bin/mypy" --strict --no-error-summary --disable-error-code import-untyped)
"${mypy[@]}" --package braidcast
"${mypy[@]}" "$OLDPWD"/bindings/python/examples/{media,telemetry,two_paths}.py
"$out/test/bin/python" -m unittest discover --start-directory "$OLDPWD/bindings/python/tests"
ls -sh "$out"/wheels/*.whl
