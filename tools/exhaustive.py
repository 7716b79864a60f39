#!/usr/bin/env python3
"""Structures with public fields that a user of the crate `braidcast` reaches and that are not #[non_exhaustive].

  tools/exhaustive.py [--all]     fails if there is one; --all prints every type that is reached, and by which field

Reached is what crates/socket and crates/live export, and each type of a public field, or of an enum's
variant, of what is reached. A field that is added to such a structure breaks programs that write all fields
out, so that it needs a method that makes one (`new`, `with`, a setter) or `Default` and assignment. The
other crates say that they are internal.

Names are followed by `use`, without a compiler: through re-exports, and by the module where a crate has a name twice.
"""
import pathlib
import re
import sys
from collections import defaultdict

CRATES = pathlib.Path(__file__).resolve().parent.parent / 'crates'
ROOTS = ('socket', 'live')
TYPE = re.compile(r'((?:#\[[^\]]*\]\s*)*)pub (struct|enum) (\w+)(?:<[^>{(]*>)?\s*([{(;])')
USE = re.compile(r'^[ \t]*(pub )?use ([^;]+);', re.M)


def body(text, at):
    """What stands between the bracket at `at` and the one that closes it."""
    depth = 0
    for end in range(at, len(text)):
        depth += {'{': 1, '(': 1, '}': -1, ')': -1}.get(text[end], 0)
        if depth == 0:
            return text[at + 1:end]
    return ''


def split(text):
    """Splits at commas outside of braces."""
    depth, part = 0, ''
    for char in text + ',':
        depth += (char == '{') - (char == '}')
        if char == ',' and depth == 0:
            yield part.strip()
            part = ''
        else:
            part += char


def expand(text, before=()):
    """The (path, name) of each import of a `use`."""
    for item in filter(None, split(text)):
        group = re.fullmatch(r'([\w:]+)::\{(.*)\}', item, re.S)
        one = re.fullmatch(r'([\w:]+)(?:\s+as\s+(\w+))?', item)
        if group:
            yield from expand(group[2], before + tuple(group[1].split('::')))
        elif one:
            path = before + tuple(one[1].split('::'))
            yield path, one[2] or path[-1]


class Crates:
    def __init__(self):
        self.types = defaultdict(list)  # (crate, name): (file, kind, body, non_exhaustive)
        self.uses = {}  # file: {name: path}
        self.exports = defaultdict(dict)  # crate: {name: path}, of its lib.rs and of modules
        for file in sorted(CRATES.glob('*/src/**/*.rs')):
            crate = file.relative_to(CRATES).parts[0]
            text = re.sub(r'//[^\n]*', '', file.read_text())
            text = text.split('#[cfg(test)]\nmod tests')[0]
            for found in TYPE.finditer(text):
                fields = '' if found[4] == ';' else body(text, found.end() - 1)
                self.types[crate, found[3]].append((file, found[2] + found[4], fields, 'non_exhaustive' in found[1]))
            self.uses[file] = {}
            for found in USE.finditer(text):
                for path, name in expand(found[2]):
                    self.uses[file][name] = path
                    if found[1]:
                        self.exports[crate].setdefault(name, path)

    def find(self, crate, path, seen=()):
        """The type that `path` means in `crate`: (crate, name, file), or None."""
        if path[0].startswith('braidcast_'):
            crate, path = path[0][len('braidcast_'):], path[1:]
        path = tuple(part for part in path if part not in ('crate', 'self', 'super'))
        if not path or (crate, path) in seen:
            return None
        name, modules = path[-1], path[:-1]
        exported = self.exports[crate].get(name)
        if not modules and exported and exported != path:
            further = self.find(crate, exported, seen + ((crate, path),))
            if further:
                return further
        there = self.types.get((crate, name), [])
        if not there:
            return self.find(crate, exported, seen + ((crate, path),)) if exported else None
        near = [it for it in there if modules and modules[0] in (*it[0].parts, it[0].stem)]
        return crate, name, (near or there)[0][0]

    def named(self, crate, file, text):
        """The types of which `text`, a field's type or the variants of an enum, speaks."""
        for path in re.findall(r'(?:\w+::)*[A-Z]\w*', text):
            parts = tuple(path.split('::'))
            first = self.uses[file].get(parts[0])
            beside = [it for it in self.types.get((crate, parts[-1]), []) if it[0] == file]
            if first:
                yield self.find(crate, first + parts[1:])
            elif beside:
                yield crate, parts[-1], file
            else:
                yield self.find(crate, parts)

    def get(self, crate, name, file):
        return next(it for it in self.types[crate, name] if it[0] == file)


def main():
    crates, reached = Crates(), {}
    waiting = []
    for crate in ROOTS:
        for name in crates.exports[crate]:
            waiting.append((crates.find(crate, (name,)), 'exported'))
    while waiting:
        key, why = waiting.pop()
        if key is None or key in reached:
            continue
        reached[key] = why
        crate, name, file = key
        _, kind, text, _ = crates.get(*key)
        if kind == 'struct{':
            fields = re.findall(r'(?:^|[\s,(])pub (\w+):\s*([^\n]*)', text)
        elif kind == 'struct(':
            fields = [('0', part) for part in re.findall(r'pub ([^,]+)', text)]
        else:
            fields = [('', text)]
        for field, of in fields:
            waiting += [(found, f'{crate}::{name}.{field}') for found in crates.named(crate, file, of)]
    failed = False
    for (crate, name, file), why in sorted(reached.items(), key=str):
        _, kind, text, open_ended = crates.get(crate, name, file)
        count = len(re.findall(r'(?:^|[\s,(])pub \w+:', text)) if kind == 'struct{' else 0
        if '--all' in sys.argv:
            print(f'{crate}::{name} ({kind[:-1]}, {count} public fields) by {why}')
        elif count and not open_ended:
            failed = True
            print(f'{file.relative_to(CRATES.parent)}: {name} has {count} public fields and is not #[non_exhaustive]; '
                  f'a user reaches it by {why}')
    # Of names that no longer lead anywhere nothing would be found.
    if len(reached) < 80:
        failed = True
        print(f'exhaustive: {len(reached)} types are reached, 80 at least were: the script no longer reads the exports')
    sys.exit(failed)


main()
