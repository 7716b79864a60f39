import re
row={}
for l in open('/tmp/sv/one.err'):
    if not l.startswith('miss'): continue
    p=l.split(); t=p[1]
    x=float(t[:-2])/1e3 if t.endswith('ms') else (0 if t.endswith('ns') else float(t[:-1]))
    row.setdefault(int(x/2),[]).append(f"{x%2:.2f}{p[2]}{'-' if p[-1]=='None' else '!'}")
for k in list(row)[3:12]: print(k,' '.join(row[k])[:260])
