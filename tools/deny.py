#!/usr/bin/env python3
"""Checks what deny.toml says of licences and sources, over `cargo metadata`, without network and without cargo-deny.

  tools/deny.py [Cargo.toml]

cargo-deny, where it is installed, checks the same file and more (`make deny`). Here each package that any
target of deny.toml uses must have a licence expression (SPDX) that the allowed ones satisfy, and come from
a registry or from this workspace. The status is 1 if one does not.
"""
import json
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
RULES = tomllib.loads((ROOT / "deny.toml").read_text())


def satisfied(expression, allowed):
    """Whether `allowed` licences satisfy an SPDX expression: AND, OR, WITH and brackets; Cargo's old `A/B` means OR."""
    words = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))

    def either():
        value = both()
        while words and words[0].upper() == "OR":
            words.pop(0)
            value = both() or value
        return value

    def both():
        value = one()
        while words and words[0].upper() == "AND":
            words.pop(0)
            value = one() and value
        return value

    def one():
        word = words.pop(0)
        if word == "(":
            value = either()
            words.pop(0)
            return value
        if words and words[0].upper() == "WITH":
            words.pop(0)
            word = f"{word} WITH {words.pop(0)}"
        return word in allowed

    return either() and not words


def packages(manifest):
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--manifest-path", str(manifest)]
    for target in RULES["graph"]["targets"]:
        command += ["--filter-platform", target]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    used = {node["id"] for node in found["resolve"]["nodes"]}
    return [package for package in found["packages"] if package["id"] in used]


def main():
    assert satisfied("(MIT OR Apache-2.0) AND Zlib", {"MIT", "Zlib"}) and satisfied("MIT/GPL-3.0", {"MIT"})
    assert not satisfied("MIT AND GPL-3.0", {"MIT"}) and not satisfied("Apache-2.0", {"Apache-2.0 WITH LLVM-exception"})
    allowed = set(RULES["licenses"]["allow"])
    all_packages = packages(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "Cargo.toml"))
    wrong = []
    for package in all_packages:
        name = f"{package['name']} {package['version']}"
        licence = package["license"]
        if not licence or not satisfied(licence, allowed):
            wrong.append(f"{name} has the licence {licence or 'of a file'}, which deny.toml does not allow")
        if package["source"] and not package["source"].startswith("registry+"):
            wrong.append(f"{name} comes from {package['source']}, which is no registry")
    for line in wrong:
        print(f"deny: {line}")
    if not wrong:
        print(f"deny: {len(all_packages)} packages, all under licences that deny.toml allows")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
