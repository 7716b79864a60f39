#!/usr/bin/env python3
"""Compares every lock file with a copy of RustSec's database of advisories, if there is one on this machine.

  tools/advisories.py [FOLDER]

FOLDER is a clone of https://github.com/RustSec/advisory-db; else BRAIDCAST_ADVISORIES names it, or it is where
cargo-audit puts it. No package registry has the database. If there is no copy, a line says so and the status is 0. The
status is 1 if a lock file has a version that an advisory is about. What is only unmaintained is shown, and no more.
"""
import os
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
USUAL = pathlib.Path.home() / ".cargo" / "advisory-db"


def number(text):
    """A version by Semantic Versioning §11, as far as advisories need it: a pre-release comes before its release."""
    core, _, before = text.split("+")[0].partition("-")
    parts = [int(part) for part in core.split(".")]
    return (*parts, *[0] * (3 - len(parts)), not before, before)


def within(version, requirement):
    """Returns true if a version meets one requirement of Cargo, for example `>=1.2, <2`."""
    for term in requirement.split(","):
        sign, text = re.fullmatch(r"\s*(>=|<=|>|<|=|\^|~|)\s*(\S+)\s*", term).groups()
        bound, fits = number(text), True
        if sign in (">", "<="):
            fits = (version > bound) == (sign == ">")
        elif sign == "<":
            fits = version < bound
        elif sign == "=":
            fits = version == bound
        else:
            fits = version >= bound
        if sign in ("^", "~", ""):
            # What must stay the same: all up to the first number that is not zero, or up to the second number.
            first = next((place for place in range(3) if bound[place]), 2)
            fits = fits and version[:1 + (1 if sign == "~" else first)] == bound[:1 + (1 if sign == "~" else first)]
        if not fits:
            return False
    return True


def advisories(folder):
    """Each advisory that was not withdrawn, by package."""
    found = {}
    for file in sorted(folder.glob("crates/*/*.md")):
        written = tomllib.loads(file.read_text().split("```toml\n", 1)[1].split("```", 1)[0])
        if "withdrawn" not in written["advisory"]:
            found.setdefault(written["advisory"]["package"], []).append(written)
    return found


def concerns(advisory, version):
    versions = advisory.get("versions", {})
    safe = versions.get("patched", []) + versions.get("unaffected", [])
    return not any(within(number(version), requirement) for requirement in safe)


def self_test():
    for version, requirement, expected in [
        ("1.2.3", ">=1.2.3", True), ("1.2.3-rc.1", ">=1.2.3", False), ("0.3.9", "^0.3.2", True), ("0.4.0", "^0.3.2", False),
        ("1.9.0", "1.2", True), ("2.0.0", "1.2", False), ("1.2.9", "~1.2.4", True), ("1.3.0", "~1.2.4", False),
        ("1.5.0", ">=1.2, <1.5", False), ("1.4.9", ">=1.2, <1.5", True), ("1.0.0", "=1.0.0", True), ("1.0.1", "> 1.0.0", True),
    ]:
        assert within(number(version), requirement) == expected, (version, requirement)


def main():
    self_test()
    folder = pathlib.Path(*sys.argv[1:2] or [os.environ.get("BRAIDCAST_ADVISORIES", USUAL)])
    if not (folder / "crates").is_dir():
        print(f"advisories: not looked at, as there is no copy of RustSec's database in {folder}")
        return 0
    known, bad = advisories(folder), 0
    locks = subprocess.run(["git", "ls-files", "*Cargo.lock"], cwd=ROOT, capture_output=True, text=True, check=True)
    for lock in locks.stdout.split():
        for package in tomllib.loads((ROOT / lock).read_text())["package"]:
            for advisory in known.get(package["name"], []):
                if concerns(advisory, package["version"]):
                    about = advisory["advisory"]
                    kind = about.get("informational")
                    bad += kind is None
                    print(f"{lock}: {package['name']} {package['version']}: {about['id']}{f' ({kind})' if kind else ''}")
    newest = max(advisory["advisory"]["date"] for of_one in known.values() for advisory in of_one)
    print(f"advisories: {sum(map(len, known.values()))}, the newest of {newest}; {bad} of what is used here")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
