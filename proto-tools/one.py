import sys,subprocess,os
sys.path.insert(0,'/tmp/sv'); import sv
seed,i=int(sys.argv[1]),int(sys.argv[2]); variant=sys.argv[3] if len(sys.argv)>3 else 'all'
text,subs=sv.gen(seed,i+1)
head,*cases=text.split('[[case]]')
cases[-1],tail=cases[-1].split('[[variant]]',1)[0],'[[variant]]'+cases[-1].split('[[variant]]',1)[1]
open('/tmp/sv/one.toml','w').write(head+'[[case]]'+cases[i]+tail)
set_=os.environ.get('SET','queue = "by-frame"\nscheduler = "by-frame"')
p=subprocess.run([sv.PROTO,'lab','run','/tmp/sv/one.toml','--runs','1','--seed',str(seed),'--json','--variant',variant,'--set',set_],capture_output=True,text=True)
open('/tmp/sv/one.err','w').write(p.stderr)
import json
print(cases[i].split('\n')[1]); print({r['metric']:round(r['mean'],1) for r in json.loads(p.stdout) if r['metric'] in('playable','on time','I on time','P on time','B on time','sent for each byte shown','never sent','given up','came late')})
import collections
m=[l.split() for l in p.stderr.split('\n') if l.startswith('miss')]
c=collections.Counter((x[2],'never' if 'None' in x[-1] or x[8]=='None' else x[-1]) for x in m); print(dict(collections.Counter(x[2] for x in m)), 'never', sum(1 for x in m if x[-1]=='None'), 'path0', sum('PathId(0)' in x[-1] for x in m),'path1',sum('PathId(1)' in x[-1] for x in m))
