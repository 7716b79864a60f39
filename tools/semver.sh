#!/usr/bin/env bash
# What of the libraries' public items changed since a revision in a way that breaks who uses them,
# beside what the version allows. tools/semver.sh [REVISION]     default: the one in
# tools/semver-baseline, which a release, or a break that CHANGELOG.md names, moves
# tools/semver.sh --check     looks only whether that is a commit of this history; part of `make lint`
# Needs cargo-semver-checks (cargo install --locked cargo-semver-checks); then nothing from the
# network. Both revisions are documented with their own Cargo.lock, so the revision's dependencies
# must have been fetched once.
set -euo pipefail
cd "$(dirname "$0")/.."

die() { echo "semver: $*" >&2; exit 1; }
kept=$(<tools/semver-baseline)
if [ "${1:-}" = --check ]; then
    git merge-base --is-ancestor "$kept" HEAD 2>/dev/null || [ "$(git rev-parse --is-shallow-repository)" = true ] ||
        die "tools/semver-baseline: $kept is no commit of this history; write the last release's there, or that of the last break"
    exit
fi
command -v cargo-semver-checks >/dev/null || die "needs cargo-semver-checks: cargo install --locked cargo-semver-checks"
revision=${1:-$kept}
baseline=$(git rev-parse --verify --quiet "$revision^{commit}") || die "no revision '$revision'; name a tag, a branch or a commit"

build=$(mkdir -p "${CARGO_TARGET_DIR:-target}" && cd "${CARGO_TARGET_DIR:-target}" && pwd)
old=$build/semver/old
git worktree prune
[ -e "$old" ] && git worktree remove --force "$old"
git worktree add --quiet --detach "$old" "$baseline"
trap 'git worktree remove --force "$old"' EXIT

# The libraries that are published, as far as both revisions have them.
libraries() {
    cargo metadata --locked --offline --no-deps --format-version 1 --manifest-path "$1/Cargo.toml" |
        python3 -c 'import json, sys
for package in json.load(sys.stdin)["packages"]:
    if package["publish"] is None and any("lib" in target["kind"] for target in package["targets"]):
        print(package["name"])' | sort
}
mapfile -t both < <(comm -12 <(libraries "$old") <(libraries .))
[ ${#both[@]} != 0 ] || die "no library is in both revisions"
comm -23 <(libraries "$old") <(libraries .) | sed 's/^/semver: gone since then: /'

# rustdoc's JSON is for nightly compilers; the variable lets the stable one, which
# cargo-semver-checks knows, write it. Both revisions share a folder, so that dependencies are
# compiled once.
document() {
    rm -rf "$build/semver/doc" "$build/semver/$2"
    RUSTC_BOOTSTRAP=1 RUSTDOCFLAGS="-Z unstable-options --output-format json --document-hidden-items --cap-lints allow" \
        cargo doc --locked --offline --quiet --no-deps --lib --all-features --manifest-path "$1/Cargo.toml" "${both[@]/#/--package=}" \
        --target-dir "$build/semver"
    mv "$build/semver/doc" "$build/semver/$2"
}
document "$old" baseline
document . current

broken=()
for library in "${both[@]}"; do
    json=${library//-/_}.json
    cargo semver-checks --baseline-rustdoc "$build/semver/baseline/$json" --current-rustdoc "$build/semver/current/$json" ||
        broken+=("$library")
done
if [ ${#broken[@]} != 0 ]; then
    echo "semver: broken since $revision, beyond what the version allows: ${broken[*]}" >&2
    echo "semver: raise the version in Cargo.toml (before 1.0 the minor one), and name the changes in CHANGELOG.md" >&2
    exit 1
fi
echo "semver: ${#both[@]} libraries keep what their version promises since $revision"
