#!/usr/bin/env python3
"""Checks docs/requirements/*.txt: each MUST and SHOULD of an RFC, and the place that obeys it, or why none does.

    tools/requirements.py               what is named exists; prints a line for each RFC
    tools/requirements.py --rfc DIR     also: the sentences are those of DIR/rfcNNNN.txt, all of them

A line that begins in the first column is a sentence of the RFC; "§N" is the section of those that follow.
Lines that are indented judge the sentence before them:

    FILE NAME     the item NAME in FILE obeys it; a test is a place like any other
    not: WHY      nothing obeys it, on purpose
    others: WHO   it is addressed to others: users, other protocols, IANA
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LISTS = ROOT / "docs/requirements"
WORDS = re.compile(r"\b(MUST|SHOULD|REQUIRED|RECOMMENDED|SHALL)\b")


def sentences(text):
    """The sentences of an RFC with a word of RFC 2119 in capitals, each with its section."""
    section, paragraph, found = "", [], []

    def flush():
        joined = re.sub(r"\s+", " ", " ".join(line.strip() for line in paragraph))
        paragraph.clear()
        for sentence in re.split(r"(?<=[.;:])\s+(?=[A-Z(])", joined):
            if WORDS.search(sentence):
                found.append((section, sentence))

    for line in text.replace("\f", "").split("\n"):
        if re.match(r"^\S.*\[Page \d+\]$", line) or re.match(r"^RFC \d+ .*\d{4}$", line):
            continue
        heading = re.match(r"^(\d+(?:\.\d+)*)\.\s+\S", line)
        if heading and ". ." not in line and "..." not in line:
            flush()
            section = heading.group(1)
        elif line.strip():
            paragraph.append(line)
        else:
            flush()
    flush()
    return found


def read(path):
    """The sentences of a list: section, sentence, and the judgements with their line numbers."""
    section, entries = "", []
    for number, line in enumerate(path.read_text().split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("§"):
            section = line[1:].strip()
        elif line.startswith(" "):
            if not entries:
                sys.exit(f"{path}:{number}: judges nothing")
            entries[-1][2].append((number, line.strip()))
        else:
            entries.append((section, line.strip(), [], number))
    return entries


def has_item(text, name):
    """Whether a Rust file defines `name`: an item, a field, a variant, or an arm of a macro that makes tests."""
    word = re.escape(name)
    items = rf"\b(?:fn|struct|enum|trait|const|static|type|mod|macro_rules!)\s+{word}\b"
    fields = rf"^\s*(?:pub(?:\([a-z]+\))?\s+)?{word}\s*[:,]"
    variants = rf"^\s*{word}\s*[({{,]" if name[:1].isupper() else items
    return any(re.search(pattern, text, re.M) for pattern in (items, fields, variants))


def main():
    rfcs = pathlib.Path(sys.argv[2]) if sys.argv[1:2] == ["--rfc"] else None
    wrong, texts = [], {}
    for path in sorted(LISTS.glob("rfc*.txt")):
        entries = read(path)
        counts = {"obeyed": 0, "not": 0, "others": 0}
        for _, sentence, judgements, number in entries:
            if not WORDS.search(sentence):
                wrong.append(f"{path}:{number}: no word of RFC 2119 in it")
            if not judgements:
                wrong.append(f"{path}:{number}: nobody judged it")
            kinds = set()
            for at, judgement in judgements:
                kind, _, why = judgement.partition(":")
                if kind in ("not", "others"):
                    kinds.add(kind)
                    if len(why.split()) < 2:
                        wrong.append(f"{path}:{at}: say why")
                    continue
                kinds.add("obeyed")
                file, _, name = judgement.partition(" ")
                if file not in texts:
                    place = ROOT / file
                    texts[file] = place.read_text() if place.is_file() else None
                if texts[file] is None:
                    wrong.append(f"{path}:{at}: there is no {file}")
                elif not name or not has_item(texts[file], name):
                    wrong.append(f"{path}:{at}: {file} has no '{name}'")
            counts["not" if "not" in kinds else "obeyed" if "obeyed" in kinds else "others"] += 1
        if rfcs:
            theirs = sentences((rfcs / path.name).read_text(errors="replace"))
            ours = [(section, sentence) for section, sentence, *_ in entries]
            wrong += [f"{path}: not in the RFC: §{section} {text}" for section, text in ours if (section, text) not in theirs]
            wrong += [f"{path}: missing: §{section} {text}" for section, text in theirs if (section, text) not in ours]
        print(f"{path.stem}: {len(entries)} sentences, {counts['obeyed']} obeyed, {counts['not']} not or not in full, {counts['others']} for others")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
