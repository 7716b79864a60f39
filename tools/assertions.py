#!/usr/bin/env python3
"""Names each assertion that a new commit removes from a test, and each bound that it loosens.

    tools/assertions.py [BASE]         the commits of BASE..HEAD; without BASE, those since .ci/base (tools/commits.py)
    tools/assertions.py --staged FILE  what is about to be committed, with its message in FILE (tools/hooks/commit-msg)
    tools/assertions.py --self-test

A commit that does so fails, unless its body has a line `loosened: WHY`. Compared are all tests of a commit together, by
their tokens: what moves to another file, is formatted anew, gets another message or other names is the same assertion.
tools/rust_assertions.py has what counts as one. Also compared: numbers that helpers of the same file compare in assertions
(tools/rust_helpers.py), expected verdicts (crates/lab/verdicts.toml), and ceilings of `make count`
(benches/count/baseline.json). A constant that is called a bound is compared whole, whatever changes in it. Not seen:
other tables that a test walks over, and numbers for helpers of other files.
"""

import collections
import difflib
import json
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import commits
import rust_assertions as rust
import rust_helpers

# Commits that a rule of later finds, read by hand: why each is right.
EXPLAINED = {"e58553ccaae9b174d9dfa5ce01d3853bb73b8250": "every bound of the survey became stricter"}
REASON = re.compile(r"^loosened: \S.*\S", re.M)
RELATION = re.compile(r"^(,|==|!=|<=?|>=?)$")
# Assertions that one is compared with at most, in a function, a file or a commit.
PLACES = 400
VERDICTS, BASELINE = "crates/lab/verdicts.toml", "benches/count/baseline.json"
# Removed and added assertions that are at least this alike (0 to 1) are one that was changed: in
# the same function, the same file, the same commit.
ALIKE = (0.5, 0.7, 0.8)


def likeness(old, new):
    """Returns how alike two assertions are if they are alike enough to be one, else 0."""
    level = ALIKE[0] if old.where == new.where else ALIKE[1] if old.file == new.file else ALIKE[2]
    # `x, 5` of assert_eq! is like `x == 5`, and that like `x <= 5`.
    sides = ([RELATION.sub("~", it) for it in (*side.tokens, *"~" * (side.kind == "#[test]"))] for side in (old, new))
    matcher = difflib.SequenceMatcher(None, *sides, autojunk=False)
    # The first two are upper bounds, and cheap.
    if matcher.real_quick_ratio() < level or matcher.quick_ratio() < level:
        return 0
    ratio = matcher.ratio()
    # Of two that are equally alike, that of the same function is meant.
    return ratio + (old.where == new.where) * 0.1 if ratio >= level else 0


def pairs(removed, added):
    """Returns pairs of a removed and an added assertion that belong together, most alike first, and what
    was only removed."""
    olds, news, found = set(), set(), []
    # The likeliest places first, as there may be thousands of each in a commit that renames something.
    for place in (lambda it: it.where, lambda it: it.file, lambda it: it.kind):
        near = collections.defaultdict(list)
        for j, new in enumerate(added):
            if j not in news:
                near[place(new)].append(j)
        ranked = [
            (ratio, -i, -j)
            for i, old in enumerate(removed)
            if i not in olds
            for j in near[place(old)][:PLACES]
            if (ratio := likeness(old, added[j]))
        ]
        for _, i, j in sorted(ranked, reverse=True):
            if -i not in olds and -j not in news:
                olds.add(-i), news.add(-j)
                found.append((removed[-i], added[-j]))
    return found, [old for i, old in enumerate(removed) if i not in olds]


def compare_tests(old_files, new_files):
    """Returns what the tests lost, a line each. Both arguments: the text of each file that changed, by its path."""
    same = {it for it in old_files.keys() & new_files.keys() if rust.lines_of(old_files[it]) == rust.lines_of(new_files[it])}
    old_files, new_files = ({path: text for path, text in files.items() if path not in same} for files in (old_files, new_files))

    def all_of(files):
        return [it for path, text in files.items() for it in rust.of_file(path, text)]

    old, new = all_of(old_files), all_of(new_files)
    old_keys, new_keys = (collections.Counter((it.kind, it.tokens) for it in side) for side in (old, new))
    # An assertion that stood as a known failure and is a plain one now is kept, and more.
    plain = new_keys - old_keys

    def left(side, others):
        others, left = others.copy(), []
        for it in side:
            if others[it.kind, it.tokens]:
                others[it.kind, it.tokens] -= 1
            else:
                left.append(it)
        return left

    removed, added = left(old, new_keys), left(new, old_keys)
    removed = [it for it in removed if not (it.kind.startswith(rust.KNOWN) and plain[it.kind.removeprefix(rust.KNOWN), it.tokens])]
    lines = []
    found, gone = pairs(removed, added)
    for was, now in found:
        verdict = rust.change(was, now)
        if verdict:
            lines.append(f"{was.place()}: {verdict}: `{was.text()}` is `{now.text()}` now")
    lines += [f"{it.place()}: removed: `{it.text()}`" for it in gone]
    for path in old_files.keys() & new_files.keys():
        lines += rust.bounds(path, old_files[path], new_files[path])
        lines += rust_helpers.bounds(path, old_files[path], new_files[path])
    return lines


def compare_verdicts(old, new):
    """Returns which expected verdicts are gone or no longer "confirmed"."""
    def claims(text):
        found, section = {}, ""
        for line in text.splitlines():
            if line.startswith("["):
                section = line
            if match := re.match(r'\s+\["([^"]+)", (".*")\],?$', line):
                found[section, match[2]] = match[1]
        return found

    old, new = claims(old), claims(new)
    return [
        f"{VERDICTS}: {section} {claim}: `{was}` is `{new.get((section, claim), 'not expected any more')}` now"
        for (section, claim), was in old.items()
        if new.get((section, claim)) not in (was, "confirmed")
    ]


def compare_baselines(old, new):
    """Returns which ceilings were raised by more than what is noise, or are gone."""
    old, new = json.loads(old), json.loads(new)
    lines = []
    for part, noise in (("instructions", 1.005), ("allocations", 1), ("calls", 1), ("system_calls", 1)):
        for row, was in old.get(part, {}).items():
            now = new.get(part, {}).get(row)
            if now is None or now > was * noise:
                lines.append(f"{BASELINE}: {part}, {row}: {was} is {'gone' if now is None else now} now")
    return lines


def losses(old_files, new_files):
    """Returns what a change loses, a line each."""
    def only_tests(files):
        return {path: text for path, text in files.items() if rust.may_have_tests(path)}

    lines = compare_tests(only_tests(old_files), only_tests(new_files))
    if VERDICTS in old_files:
        lines += compare_verdicts(old_files[VERDICTS], new_files.get(VERDICTS, ""))
    if BASELINE in old_files:
        lines += compare_baselines(old_files[BASELINE], new_files.get(BASELINE, "{}"))
    return lines


def read(names):
    """Returns the texts of objects as git names them (`commit:path`), by one process for all."""
    asked = "".join(f"{it}\n" for it in names).encode()
    data = subprocess.run(["git", "cat-file", "--batch"], cwd=commits.ROOT, input=asked, capture_output=True, check=True).stdout
    texts, at = [], 0
    for _ in names:
        end = data.index(b"\n", at)
        size = int(data[at:end].split()[-1])
        texts.append(data[end + 1 : end + 1 + size].decode(errors="replace"))
        at = end + 1 + size + 1
    return texts


def files_of(diff_args, old_rev, new_rev):
    """Returns the texts of the files that changed, before and after: {path: text} twice. A renamed file has
    its new path in both."""
    old_names, new_names = {}, {}
    for line in commits.git("diff", "--name-status", "-M", "--diff-filter=ADMR", *diff_args).splitlines():
        status, *paths = line.split("\t")
        old, new = paths[0], paths[-1]
        if not (rust.may_have_tests(old) or rust.may_have_tests(new) or old in (VERDICTS, BASELINE)):
            continue
        if status != "A":
            old_names[old if status == "D" else new] = f"{old_rev}:{old}"
        if status != "D":
            new_names[new] = f"{new_rev}:{new}"
    texts = read([*old_names.values(), *new_names.values()])
    return dict(zip(old_names, texts)), dict(zip(new_names, texts[len(old_names) :]))


def report(name, lines):
    for line in lines:
        print(f"assertions: {name}: {line}")
    if lines:
        print("assertions: write it back, or say why in the commit's body, in a line `loosened: WHY` (git commit --amend; git rebase -i)")
    return bool(lines)


def main(args):
    if args == ["--self-test"]:
        import test_assertions

        return test_assertions.main()
    if args[:1] == ["--staged"]:
        message = commits.without_comments(pathlib.Path(args[1]).read_text())
        if REASON.search(message):
            return 0
        # The first commit of all has nothing to lose.
        return commits.known("HEAD") and report("staged", losses(*files_of(["--cached", "HEAD"], "HEAD", "")))
    status, new = 0, commits.new_commits(*args[:1])
    for commit in new:
        message = commits.git("log", "-1", "--format=%B", commit)
        if not REASON.search(message) and commit not in EXPLAINED:
            old_files, new_files = files_of([f"{commit}^", commit], f"{commit}^", commit)
            status |= report(f"{commit[:10]} \"{message.splitlines()[0]}\"", losses(old_files, new_files))
    print(f"assertions: {len(new)} new commits" + ("" if status else ", none loses an assertion or loosens a bound without saying why"))
    return status


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except RuntimeError as error:
        sys.exit(f"assertions: {error}")
