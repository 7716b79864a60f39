#!/usr/bin/env python3
"""Circles of method calls among the files of a folder, which imports do not show.

  tools/circles.py [FOLDER] [--most 4] [--all] [--unsure]

FOLDER is crates/sctp/src/assoc unless given. A file leads to another one if it calls a method that an
`impl` block of that file defines. Prints each circle of files (a strongly connected component of more than
one) with the calls that make it; the status is 1 if the largest has more than --most files. Tests are left
out.

Counted are the methods of types with `impl` blocks in several files: any of these files can call any other
one without a word about it. A type in one file must be imported, so what circles it is in can be read
there; --all counts those as well.

How a call finds its method, without a compiler:
  self.name()  Self::name  Type::name   the method of that type. None of that type in the folder: no edge.
  self.field.name()  variable.name()    by the type of the field, or of the variable where its parameter, `let` or constructor
                                        names it; then as above.
  any other receiver                    the method of this name, if the folder has one only and no other type in the crates has
                                        one so called, nor the standard library (COMMON). Else no edge:
                                        --unsure lists these.
"""
import argparse
import pathlib
import re
import sys
from collections import defaultdict

# Methods of the standard library's types that are likely names of one's own as well.
COMMON = set(
    "all and_then any append as_mut as_ref back borrow bytes chain clear clone cmp collect contains copied count default drain"
    " drop end entry enumerate eq expect extend filter find first flatten fmt fold from front get get_mut insert into is_empty"
    " is_full iter iter_mut keys last len map max min new next next_back parse peek pop pop_front position push push_back range"
    " remove replace reset resize retain rev reverse send skip sort split start sum swap take then truncate unwrap values"
    " write zip".split()
)
BLANKED = re.compile(
    r"""//[^\n]* | /\*.*?\*/ | b?r(?P<hashes>\#*)".*?"(?P=hashes) | b?"(?:\\.|[^"\\])*" | b?'(?:\\.[^']*|[^'\\])'""", re.S | re.X
)
FN = re.compile(r"\bfn\s+([a-z_]\w*)")
IMPL = re.compile(r"^[ ]*(?:unsafe\s+)?impl\b([^{;]*)\{", re.M)
STRUCT = re.compile(r"\bstruct\s+([A-Z]\w*)[^;{(]*\{")
CALL = re.compile(r"\.\s*([a-z_]\w*)\s*(?:::\s*<[^;(]*>)?\s*\(|\b([A-Z]\w*)\s*(?:::\s*<[^;(]*>)?\s*::\s*([a-z_]\w*)")
RECEIVER = re.compile(r"(\.\s*)?\b([A-Za-z_]\w*(?:\s*\.\s*\w+)*)\s*$")
TYPED = re.compile(r"\b([a-z_]\w*)\s*:\s*([^,;={}()|]+)")
MADE = re.compile(r"\blet\s+(?:mut\s+)?([a-z_]\w*)\s*=\s*&?(?:mut\s+)?(?:\w+::)*([A-Z]\w*)\s*(?:\{|::\s*[a-z])")


def blank(text):
    """`text` with spaces for comments and literals, so that lines and places stay."""
    return BLANKED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def end_of(text, start):
    """The place behind the bracket that closes the one at `start`."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.end()
    return len(text)


def without_tests(text):
    for match in reversed(list(re.finditer(r"#\[cfg\(test\)\]|#\[test\]", text))):
        stop = re.compile(r"[{;]").search(text, match.end())
        if stop:
            end = end_of(text, stop.start()) if stop[0] == "{" else stop.end()
            text = text[: match.start()] + re.sub(r"[^\n]", " ", text[match.start() : end]) + text[end:]
    return text


def type_name(text):
    """The innermost named type of `&mut Option<Box<a::Name>>`, as pointers and options stand before the
    methods of what is in them."""
    text = re.sub(r"'\w+|\b(?:mut|dyn|const|impl)\b|[&*\s]", "", text)
    wrapped = re.match(r"(?:\w+::)*(?:Box|Rc|Arc|Option)<(.*)>$", text)
    if wrapped:
        return type_name(wrapped[1])
    match = re.match(r"(?:\w+::)*([A-Z]\w*)", text)
    return match and match[1]


def implemented(header):
    """The type of `impl<T> Trait<T> for Type<T> where ...`."""
    while (plain := re.sub(r"<[^<>]*>", "", header.replace("->", ""))) != header:
        header = plain
    header = re.split(r"\bwhere\b", header)[0]
    return type_name(re.split(r"\bfor\b", header)[-1])


class File:
    def __init__(self, name, text):
        self.name, self.text = name, without_tests(blank(text))
        impls = [(m.end() - 1, end_of(self.text, m.end() - 1), implemented(m[1])) for m in IMPL.finditer(self.text)]
        # Functions by (type or None, name, start, start of the body, end); those inside of another one are part of it.
        self.functions = []
        for match in FN.finditer(self.text):
            body = re.compile(r"[{;]").search(self.text, self.signature_end(match.end()))
            if not body or body[0] == ";" or (self.functions and match.start() < self.functions[-1][4]):
                continue
            owner = next((kind for start, end, kind in impls if start < match.start() < end), None)
            self.functions.append((owner, match[1], match.start(), body.start(), end_of(self.text, body.start())))

    def signature_end(self, at):
        """Past the parameters: an array type there has a `;`."""
        depth = 0
        for match in re.compile(r"[()]").finditer(self.text, at):
            depth += 1 if match[0] == "(" else -1
            if depth == 0:
                return match.end()
        return at

    def line(self, at):
        return self.text.count("\n", 0, at) + 1

    def structs(self):
        for match in STRUCT.finditer(self.text):
            fields = self.text[match.end() : end_of(self.text, match.end() - 1) - 1]
            yield match[1], {name: type_name(kind) for name, kind in re.findall(r"(\w+)\s*:(?!:)\s*([^\n]+?),?\s*\n", fields)}


class Folder:
    def __init__(self, path, whole):
        self.files = [
            File(str(file.relative_to(path)), file.read_text())
            for file in sorted(path.rglob("*.rs"))
            if not re.search(r"(^|[/_])tests?(\.rs$|/)", str(file.relative_to(path)))
        ]
        self.fields, self.methods, self.named = {}, defaultdict(set), defaultdict(set)
        for file in self.files:
            self.fields.update(file.structs())
            for owner, name, *_ in file.functions:
                if owner:
                    self.methods[owner, name].add(file.name)
                    self.named[name].add(owner)
        files_of = defaultdict(set)
        for (owner, _), files in self.methods.items():
            files_of[owner] |= files
        self.counted = {owner for owner, files in files_of.items() if whole or len(files) > 1}
        self.elsewhere, self.unsure = self.names_elsewhere(path), []

    @staticmethod
    def names_elsewhere(path):
        """Names of functions in the other folders of all crates."""
        crates = next((up for up in path.parents if up.name == "crates"), path.parent)
        others = (file for file in crates.rglob("*.rs") if path not in file.parents and "tests" not in file.parts)
        return {name for file in others for name in FN.findall(file.read_text())}

    def receiver(self, file, at, owner, variables):
        """The type of what stands before the dot at `at`, and whether that can be told."""
        match = RECEIVER.search(file.text, max(0, at - 200), at)
        if not match or match[1]:
            return None, False
        first, *rest = re.split(r"\s*\.\s*", match[2])
        kind = owner if first == "self" else variables.get(first)
        for field in rest:
            if kind not in self.fields:
                return None, kind is not None
            kind = self.fields[kind].get(field)
        return kind, kind is not None

    def calls(self):
        """Each call of a method in another file: from, to, caller, method, line."""
        for file in self.files:
            for owner, caller, start, body, end in file.functions:
                part = file.text[start:end]
                variables = {name: type_name(kind) for name, kind in TYPED.findall(part)}
                variables.update((name, owner if kind == "Self" else kind) for name, kind in MADE.findall(part))
                for match in CALL.finditer(file.text, body, end):
                    name, kind, known = match[1] or match[3], match[2], True
                    if match[1]:
                        kind, known = self.receiver(file, match.start(), owner, variables)
                    kind = owner if kind == "Self" else kind
                    if not known and self.named[name] & self.counted:
                        if len(self.named[name]) > 1 or name in COMMON or name in self.elsewhere:
                            self.unsure.append((file.name, file.line(match.start()), caller, name))
                            continue
                        (kind,) = self.named[name]
                    # Of one type and name in several files (traits, `cfg`): all of them, unless one is here.
                    targets = self.methods.get((kind, name), set()) if kind in self.counted else set()
                    if file.name not in targets:
                        for target in targets:
                            yield file.name, target, caller, name, file.line(match.start(1 if match[1] else 3))


def circles(edges, nodes):
    """Strongly connected components of more than one node, the largest first: those that reach each other."""
    reach = {}
    for node in nodes:
        seen, todo = set(), [node]
        while todo:
            todo += [to for to in edges[todo.pop()] if to not in seen and not seen.add(to)]
        reach[node] = seen
    found = {frozenset(b for b in reach[a] if a in reach[b]) for a in nodes if a in reach[a]}
    return sorted((sorted(circle) for circle in found), key=lambda circle: (-len(circle), circle))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("--most", type=int, default=4, help="files that a circle may have (4)")
    parser.add_argument("--all", action="store_true", help="count types with `impl` blocks in one file as well")
    parser.add_argument("--unsure", action="store_true", help="list the calls that are left out, as their type cannot be told")
    args = parser.parse_args()
    path = args.folder or pathlib.Path(__file__).parents[1] / "crates/sctp/src/assoc"
    folder = Folder(path.resolve(), args.all)
    if not folder.files:
        sys.exit(f"circles: no Rust file in {path}")
    edges = defaultdict(lambda: defaultdict(list))
    for source, target, caller, method, line in folder.calls():
        edges[source][target].append(f"{caller} calls {method} ({source}:{line})")
    found = circles(edges, [file.name for file in folder.files])
    for circle in found:
        print(f"{len(circle)} files in a circle: {', '.join(circle)}")
        for source in circle:
            for target in circle:
                if target in edges[source]:
                    print(f"  {source} -> {target}")
                    print("".join(f"    {call}\n" for call in edges[source][target]), end="")
    if args.unsure:
        for name, line, caller, method in folder.unsure:
            print(f"unsure: {caller} calls {method} ({name}:{line})")
    largest = len(found[0]) if found else 0
    methods = sum(owner in folder.counted for file in folder.files for owner, *_ in file.functions)
    calls = [len(calls) for targets in edges.values() for calls in targets.values()]
    print(
        f"{path}: {len(folder.files)} files, {methods} methods, {sum(calls)} calls across files over {len(calls)} edges,"
        f" {len(folder.unsure)} unsure; largest circle: {largest} files"
    )
    if largest > args.most:
        print(f"circles: the largest has {largest} files, over {args.most}: take the calls out that close it")
    return largest > args.most


if __name__ == "__main__":
    sys.exit(main())
