#!/usr/bin/env python3
"""Facts that documents repeat come from one place: the code.

  tools/facts.py           fails where a document says what the code does not; part of `make lint`
  tools/facts.py --write   writes the facts anew

In a document a fact stands between `<!-- fact NAME -->` and `<!-- /fact -->`. NAME is
  unsafe               the crates and files with `unsafe` code
  rust                 the oldest Rust that works (`rust-version` in Cargo.toml)
  experiments          how many experiments the lab has
  fuzz-targets         how many fuzz targets there are
  about CRATE          what Cargo.toml says of a crate, for its README
  code FILE            the text of a file, as a block of code
  lines FILE MOST      how many lines of code a file has, without comments and blank ones; more than MOST is an error
  const FILE NAME      the value of a constant, for example `const crates/core/src/lobby.rs STRANGERS`
A default in a document, `--flag VALUE` followed by "the default", must be the one that `--help` names.
"""
import pathlib, re, subprocess, sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MARK = re.compile(r'<!-- fact ([^>]+?) -->(.*?)<!-- /fact -->', re.S)


def tracked(*patterns):
    out = subprocess.run(['git', 'ls-files', '--cached', '--others', '--exclude-standard', *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return sorted({f for f in out.stdout.split('\n') if f and (ROOT / f).is_file()})


def unsafe():
    """By crate, the files with unsafe code: comments do not count, tests and benches of others neither."""
    places = {}
    for file in tracked('crates/*/src/*.rs', 'bindings/*/src/*.rs', 'gst/*.rs'):
        code = re.sub(r'//[^\n]*', '', (ROOT / file).read_text())
        if re.search(r'\bunsafe\b\s*(\{|impl\b|fn\b|extern\b|\()', code):
            parts = file.split('/')
            crate = parts[1] if parts[0] == 'crates' else '/'.join(parts[:parts.index('src')])
            places.setdefault(crate, []).append('/'.join(parts[parts.index('src') + 1:]))
    return '; '.join(f'`{crate}` ({", ".join(files)})' for crate, files in sorted(places.items()))


def constant(file, name):
    m = re.search(rf'\b(?:const|static) {name}: [^=]+= ([^;]+);', (ROOT / file).read_text())
    if not m:
        raise KeyError(f'{file} has no constant {name}')
    value = m.group(1).strip()
    if d := re.fullmatch(r'Duration::from_(secs|millis)\(([\d_]+)\)', value):
        return f'{int(d.group(2)):,} {"s" if d.group(1) == "secs" else "ms"}'
    if re.fullmatch(r'[\d_]+( (\*|<<) [\d_]+)*', value):
        number = eval(value)
        for size, unit in ((1 << 20, 'MiB'), (1 << 10, 'KiB')):
            if number >= size and number % size == 0 and ('<<' in value or '*' in value):
                return f'{number // size:,} {unit}'
        return f'{number:,}'
    return f'`{value}`'


def code(file):
    language = {'.rs': 'rust', '.py': 'python', '.c': 'c', '.h': 'c', '.cpp': 'cpp', '.hpp': 'cpp'}[pathlib.Path(file).suffix]
    return f'\n```{language}\n{(ROOT / file).read_text().strip()}\n```\n'


def lines(file, most):
    text = re.sub(r'^\s*""".*?"""|/\*.*?\*/', '', (ROOT / file).read_text(), flags=re.S | re.M)
    count = sum(1 for line in text.split('\n') if line.strip() and not line.strip().startswith(('//', '# ')))
    if count > int(most):
        raise KeyError(f'{file} has {count} lines of code, over {most}')
    return str(count)


def fact(name):
    if name == 'unsafe':
        return unsafe()
    if name == 'rust':
        return re.search(r'rust-version = "(.*?)"', (ROOT / 'Cargo.toml').read_text()).group(1)
    if name == 'experiments':
        return str(len([f for f in tracked('crates/lab/scenarios/*.toml') if f.count('/') == 3]))
    if name == 'fuzz-targets':
        return str(len(list((ROOT / 'fuzz/src/bin').glob('*.rs'))))
    if name.startswith('about '):
        return re.search(r'^description = "(.*)"', (ROOT / 'crates' / name.split()[1] / 'Cargo.toml').read_text(), re.M).group(1)
    if name.startswith('code '):
        return code(name.split()[1])
    if name.startswith('lines '):
        return lines(*name.split()[1:])
    if name.startswith('const '):
        return constant(*name.split()[1:])
    raise KeyError(f'no such fact: {name}; tools/facts.py lists them')


def defaults():
    """{flag: defaults}, over all subcommands, by the snapshots of `--help`."""
    found = {}
    for page in tracked('crates/cli/tests/it/snapshots/it__help__*.snap'):
        text = (ROOT / page).read_text()
        for part in re.split(r'\n(?=      ?--|  -)', text):
            flag = re.search(r'--[a-z-]+', part)
            m = re.search(r'\[default: ([^\]]+)\]', ' '.join(part.split()))
            m = m or re.search(r'\bdefault: ([\w.:,-]+)', ' '.join(part.split()))
            if flag and m:
                found.setdefault(flag.group(0), set()).add(m.group(1).rstrip(':,.'))
    return found


def main():
    status, known = 0, defaults()
    for file in tracked('*.md'):
        path = ROOT / file
        text = path.read_text()

        def written(m):
            nonlocal status
            now = fact(m.group(1))
            if now != m.group(2) and '--write' not in sys.argv:
                said = '' if m.group(1).startswith('code ') else f' is said to be {m.group(2)!r}, the code has {now!r}'
                print(f'{file}: {m.group(1)}{said or " is another file now"}: run tools/facts.py --write')
                status = 1
            return f'<!-- fact {m.group(1)} -->{now}<!-- /fact -->'

        new = MARK.sub(written, text)
        if '--write' in sys.argv and new != text:
            path.write_text(new)
        if re.match(r'CHANGELOG|docs/decisions/', file):
            continue
        for m in re.finditer(r'`(--[a-z-]+) ([^`\s]+)`,? (?:\()?(?:is )?the default\b', text):
            flag, value = m.groups()
            if flag in known and value not in {words for default in known[flag] for words in default.split('; ')}:
                print(f'{file}: {m.group(0)}: --help has {", ".join(sorted(known[flag]))}')
                status = 1
        for n, line in enumerate(text.split('\n'), 1):
            outside = MARK.sub('', line)
            if re.search(r'`unsafe`', outside) and re.search(r'\b(stands?|only|except)\b', outside) and 'fact unsafe' not in line:
                print(f'{file}:{n}: where `unsafe` stands is a fact: use <!-- fact unsafe --><!-- /fact --> or leave it to docs/architecture.md')
                status = 1
    for file in tracked('crates/*.rs', 'tools/*.sh', 'Makefile', '*/Cargo.toml'):
        for n, line in enumerate((ROOT / file).read_text().split('\n'), 1):
            if re.search(r'(//|#).*`?unsafe`? (code )?stands', line):
                print(f'{file}:{n}: where `unsafe` stands is a fact of docs/architecture.md: do not repeat it')
                status = 1
    return status


if __name__ == '__main__':
    sys.exit(main())
