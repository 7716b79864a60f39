#!/usr/bin/env python3
"""Checks the messages of new commits, and finds which commits are new.

    tools/commits.py [BASE]          the commits of BASE..HEAD; without BASE, those since .ci/base
    tools/commits.py --message FILE  one message, as the hook `tools/hooks/commit-msg` does
    tools/commits.py --self-test

A message is `area: what is different now` in at most 72 characters, an empty line, and a body that says why
(docs/style.md). Merge commits are exempt.

`.ci/base` names the commit from which on these rules hold. A file, because a fresh clone has no remote
branch that can be relied on, and a number of commits or hours would forget what is older. A commit that is
not there (a shallow clone, or history written anew) is replaced by its date, the second word of the file:
committed after it is new.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LONGEST = 72
SUBJECT = re.compile(r"^[a-z0-9][\w ,./+-]*: \S")
# What `git commit --fixup` makes: its author squashes it before it lands, so only the hook lets it pass.
TEMPORARY = re.compile(r"^(fixup|squash|amend)! ")


def git(*args):
    done = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        raise RuntimeError(f"git {' '.join(args)}: {done.stderr.strip()}")
    return done.stdout


def known(commit):
    """Returns whether this commit is in the repository."""
    return subprocess.run(["git", "cat-file", "-e", f"{commit}^{{commit}}"], cwd=ROOT, capture_output=True).returncode == 0


def new_commits(base=None):
    """Returns the new commits, oldest first, without merges; `base`: any name of a commit."""
    if not (ROOT / ".git").exists():
        print("commits: no repository here, nothing to check")
        return []
    how = ["rev-list", "--reverse", "--no-merges"]
    if base:
        return git(*how, f"{base}..HEAD").split()
    base, date = (ROOT / ".ci/base").read_text().split()[:2]
    if known(base):
        return git(*how, f"{base}..HEAD").split()
    print(f"commits: {base[:10]} of .ci/base is not in this clone: what was committed after {date} counts as new")
    commits = git(*how, f"--since={date}", "HEAD").split()
    # The oldest commit of a shallow clone has no parent to compare with.
    return [commit for commit in commits if known(f"{commit}^")]


def without_comments(text):
    """Returns a message as git keeps it: without lines of `#` and what follows the scissors."""
    text = re.split(r"^# -+ >8 -+$", text, maxsplit=1, flags=re.M)[0]
    return "\n".join(line for line in text.splitlines() if not line.startswith("#")).strip() + "\n"


def complaints(message):
    """Returns what is wrong with a message, a line each."""
    lines = message.strip("\n").split("\n")
    subject, rest = lines[0], lines[1:]
    wrong = []
    if len(subject) > LONGEST:
        wrong.append(f"the subject has {len(subject)} characters, {LONGEST} at most: move details into the body")
    if not SUBJECT.match(subject):
        wrong.append("the subject is not `area: what is different now`, for example `sctp: a lost INIT is repeated at once`")
    if rest and rest[0].strip():
        wrong.append("the line after the subject is not empty")
    if not any(line.strip() for line in rest[1:] if not re.match(r"^[A-Z][\w-]+-by: ", line)):
        wrong.append("there is no body: say why, and name behaviour that changed")
    return wrong


def self_test():
    good = "sctp: a lost INIT is repeated at once\n\nIt took 3 s before.\n"
    assert not complaints(good), complaints(good)
    assert not complaints("driver, socket: the error names the port\n\nUsers could not tell which.\n")
    for message, word in [
        ("sctp: " + "x" * 67 + "\n\nWhy.\n", "72"),
        ("Fixed it\n\nWhy.\n", "area"),
        ("sctp: fixed\nWhy.\n", "empty"),
        ("sctp: fixed\n", "body"),
        ("sctp: fixed\n\nSigned-off-by: A <a@b>\n", "body"),
    ]:
        assert any(word in line for line in complaints(message)), (message, complaints(message))
    assert without_comments("a: b\n\nc\n# d\n# ---- >8 ----\ndiff\n") == "a: b\n\nc\n"
    print("commits: self-test passed")


def main(args):
    if args == ["--self-test"]:
        return self_test()
    if args[:1] == ["--message"]:
        message = without_comments(pathlib.Path(args[1]).read_text())
        wrong = [] if TEMPORARY.match(message) else complaints(message)
        for line in wrong:
            print(f"commit message: {line}", file=sys.stderr)
        if wrong:
            print(f"commit message: docs/style.md has the rules; your text is kept in {args[1]}", file=sys.stderr)
        return bool(wrong)
    commits = new_commits(*args[:1])
    status = 0
    for commit in commits:
        message = git("log", "-1", "--format=%B", commit)
        for line in complaints(message):
            print(f"commits: {commit[:10]} \"{message.splitlines()[0]}\": {line} (git rebase -i, reword)")
            status = 1
    print(f"commits: {len(commits)} new commits" + ("" if status else ", all with a subject and a body as docs/style.md has them"))
    return status


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except RuntimeError as error:
        sys.exit(f"commits: {error}")
