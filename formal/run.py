#!/usr/bin/env python3
"""Runs the models of this folder through SPIN and prints what came of each claim (docs/formal.md).

  formal/run.py            every run; fails if one ends otherwise than RUNS has it
  formal/run.py WORD...    those runs only whose line has all words
  formal/run.py --trace N  the steps that lead to what run N found

A run that SPIN did not finish, for memory, depth or time, has failed.
"""
import pathlib, re, resource, shutil, subprocess, sys, tempfile, time

HERE = pathlib.Path(__file__).resolve().parent
HOLDS, VIOLATED = 'holds', 'violated'
MEGABYTES, SECONDS = 1500, 120

OFF, ONE, BOTH = '-DHOSTILE=4', '-DHOSTILE=5', '-DHOSTILE=7'
INJECTS, ON_PATH = 'sees, sends; fades', 'sees, sends, drops'
DROP = '-DFORGE=1 -DDROPS=2'

# Model, claim, its sentence, attacker, macros, and what comes of it: before the commit "strangers and
# members", and from it on. None: not run.
RUNS = [
    ('offer', 'AGREEMENT', 'who is up goes by the same parameters as the other end', 'on path', BOTH, VIOLATED, HOLDS),
    ('offer', 'DOWNGRADE', 'no feature is stripped unnoticed (S6)', 'on path', BOTH, VIOLATED, HOLDS),
    ('offer', 'DOWNGRADE', 'no feature is stripped unnoticed (S6)', 'on path of one network', ONE, VIOLATED, HOLDS),
    ('offer', 'COOKIE', 'a cookie counts only where it was sent to (S4)', 'off path', OFF, VIOLATED, HOLDS),
    ('offer', 'COOKIE', 'a cookie counts only where it was sent to (S4)', 'on path', BOTH, VIOLATED, HOLDS),
    ('offer', 'JOIN', 'no path without a cookie or a record', 'on path', BOTH, VIOLATED, HOLDS),
    ('offer', 'ATTEMPT', 'an attempt is not ended if one network is honest', 'off path', OFF, HOLDS, HOLDS),
    ('offer', 'ATTEMPT', 'an attempt is not ended if one network is honest', 'on path of one network', ONE, VIOLATED, VIOLATED),
    ('offer', 'WITNESS', '(both paths are never up)', 'on path', BOTH, VIOLATED, VIOLATED),
    ('ending', 'FORGED', 'no end by what is said in clear (S1)', INJECTS, '-DFORGE=2 -DFADES=2', VIOLATED, HOLDS),
    ('ending', 'FORGED', 'no end by what is said in clear (S1)', ON_PATH, '-DFORGE=2 -DDROPS=3', VIOLATED, HOLDS),
    ('ending', 'TOGETHER', 'the client has its server again (S1)', 'none; fades', '-DFADES=2', HOLDS, HOLDS),
    ('ending', 'TOGETHER', 'the client has its server again (S1)', INJECTS, '-DFORGE=1 -DFADES=1', VIOLATED, HOLDS),
    ('ending', 'TOGETHER', 'the client has its server again (S1)', 'none, client restarts', '-DCRASH=1', VIOLATED, HOLDS),
    ('ending', 'TOGETHER', 'the client has its server again (S1)', 'none, client, late record', '-DCRASH=1 -DLATE=1', VIOLATED, HOLDS),
    ('ending', 'TOGETHER', 'the client has its server again (S1)', 'none, server restarts', '-DCRASH=2', HOLDS, HOLDS),
    ('ending', 'TOGETHER', 'the client has its server again (S1)', ON_PATH, DROP, VIOLATED, HOLDS),
    ('ending', 'TOGETHER', 'the client has its server again (S1)', 'drops, server restarts', '-DCRASH=2 -DDROPS=2', None, HOLDS),
    ('ending', 'ALIVE', 'what both ends have is not ended', ON_PATH, DROP, VIOLATED, HOLDS),
    ('ending', 'PLACE', 'a restarted client has the place of the old one', 'none, records in flight', '-DCRASH=1', VIOLATED, HOLDS),
    ('ending', 'PLACE', 'a restarted client has the place of the old one', 'none, late record', '-DCRASH=1 -DLATE=1', None, HOLDS),
    ('ending', 'DENIED', '(no newcomer ever denies the old one)', 'none, client restarts', '-DCRASH=1', None, VIOLATED),
    ('ending', 'WITNESS', '(no other association follows)', 'none, client restarts', '-DCRASH=1', None, VIOLATED),
    ('places', 'MEMBERS', 'no member gives way to a stranger (S2)', 'stranger', '', VIOLATED, HOLDS),
    ('places', 'WITNESS', '(strangers never fill their places)', 'stranger', '', VIOLATED, VIOLATED),
    ('rekey', 'OPENS', 'every record finds its keys while they change', 'none', '', None, HOLDS),
    ('rekey', 'STALL', 'both ends end up with the same keys', 'none', '', None, HOLDS),
    ('rekey', 'WITNESS', '(keys never change)', 'none', '', None, VIOLATED),
]

# Of the queries in keys.pv, in their order; the last two are that nothing ever comes up.
KEYS = ['true', 'true', 'true', 'true', 'false', 'false']
KEYS_BEFORE = ['false', 'false', 'true', 'true', 'false', 'false']


def one(model, claim, macros, folder):
    """What SPIN says of one claim: the result, states, seconds."""
    defines = [f'-DCLAIM={claim}', *macros]
    source = HERE / f'{model}.pml'
    begun = time.monotonic()
    made = subprocess.run(['spin', *defines, '-a', source], cwd=folder, capture_output=True, text=True)
    if made.returncode or not (folder / 'pan.c').exists():
        sys.exit(f'{model}: spin: {made.stdout}{made.stderr}')
    subprocess.run(['gcc', '-O1', '-w', '-DSAFETY', f'-DMEMLIM={MEGABYTES}', '-o', 'pan', 'pan.c'], cwd=folder, check=True)
    limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    out = subprocess.run(['./pan', '-m200000'], cwd=folder, capture_output=True, text=True, preexec_fn=limit).stdout
    errors = re.search(r'errors: (\d+)', out)
    if not errors or 'out of memory' in out or 'max search depth too small' in out or 'pan:1: invalid end state' in out:
        result = 'not finished'
    else:
        result = VIOLATED if int(errors[1]) else HOLDS
    states = re.search(r'(\d[\d.e+]*) states, stored', out)
    return result, int(float(states[1])) if states else 0, time.monotonic() - begun


def trace(model, claim, macros):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        one(model, claim, macros, folder)
        trails = list(folder.glob('*.trail'))
        if not trails:
            sys.exit('it holds: there are no steps to show')
        subprocess.run(['spin', f'-DCLAIM={claim}', *macros, '-t', '-p', '-g', '-k', trails[0], HERE / f'{model}.pml'], cwd=folder)


def keys():
    """ProVerif's word on keys.pv and on the same without what is bound, where it is installed;
    the number of results that are wrong."""
    if not shutil.which('proverif'):
        print('keys.pv: not run, as ProVerif is not installed (docs/formal.md)')
        return 0
    bound = (HERE / 'keys.pv').read_text()
    unbound = bound.replace('if alpn = bound then', '').replace('_nonce, bound)', '_nonce)').replace('(there, bound)', 'there')
    wrong = 0
    for design, text, expected in (('before', unbound, KEYS_BEFORE), ('after', bound, KEYS)):
        with tempfile.NamedTemporaryFile('w', suffix='.pv') as file:
            file.write(text)
            file.flush()
            out = subprocess.run(['proverif', file.name], capture_output=True, text=True, timeout=300).stdout
        results = re.findall(r'^RESULT (.*) is (true|false|cannot be proved)\.$', out, re.M)
        for query, result in results:
            print(f'keys.pv {design:6}: {query} is {result}')
        if [result for _, result in results] != expected:
            print(f'keys.pv {design:6}: EXPECTED: {expected}')
            wrong += 1
    return wrong


def main():
    words = sys.argv[1:]
    runs = []
    for model, claim, sentence, attacker, macros, before, after in RUNS:
        for design, expected in (('before', before), ('after', after)):
            if expected:
                macro = macros.split() + (['-DTODAY'] if design == 'before' else [])
                runs.append((model, claim, sentence, attacker, design, macro, expected))
    if words[:1] == ['--trace']:
        model, claim, _, _, _, macros, _ = runs[int(words[1]) - 1]
        return trace(model, claim, macros)
    wrong, begun = 0, time.monotonic()
    print(f'{"run":>3} {"model":6} {"claim":52} {"attacker":25} {"design":6} {"result":12} {"states":>9} {"s":>5}')
    for number, (model, claim, sentence, attacker, design, macros, expected) in enumerate(runs, 1):
        if not all(word in f'{model} {claim} {sentence} {attacker} {design}' for word in words):
            continue
        with tempfile.TemporaryDirectory() as folder:
            result, states, seconds = one(model, claim, macros, pathlib.Path(folder))
        note = '' if result == expected else f'  EXPECTED: {expected}'
        wrong += result != expected
        print(f'{number:3} {model:6} {sentence:52} {attacker:25} {design:6} {result:12} {states:9} {seconds:5.1f}{note}', flush=True)
    if not words:
        wrong += keys()
    print(f'{wrong} of the runs ended otherwise than expected; {time.monotonic() - begun:.0f} s')
    sys.exit(wrong > 0)


if __name__ == '__main__':
    main()
