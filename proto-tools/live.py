import subprocess,json,sys,os,glob,statistics
sys.path.insert(0,'/tmp/sv'); import sv
name,runs,seed=sys.argv[1],sys.argv[2],sys.argv[3]
set_=sys.argv[4] if len(sys.argv)>4 else 'queue = "by-frame"\nscheduler = "by-frame"'
files=[f for f in sorted(glob.glob('/work/main/crates/lab/scenarios/live-*.toml'))+sorted(glob.glob('/tmp/sv/extra/live-*.toml')) if 'fairness' not in f]
out={}
for f in files:
    for v in ('both','all'):
        if f'name = "{v}"' not in open(f).read(): continue
        p=subprocess.run(['nice','-n','5',sv.PROTO,'lab','run',f,'--runs',runs,'--seed',seed,'--json','--variant',v,'--set',set_],capture_output=True,text=True)
        if p.returncode: print(f,p.stderr[-300:]); continue
        for r in json.loads(p.stdout): out.setdefault((os.path.basename(f)[:-5],json.dumps(r['params'])[:60]),{})[r['metric']]=r['mean']
json.dump([[list(k),v] for k,v in out.items()],open(f'/tmp/sv/live-{name}.json','w'))
old={}
if os.path.exists('/tmp/sv/live-base.json'): old={tuple(k):v for k,v in json.load(open('/tmp/sv/live-base.json'))}
rows=[]
for k,v in out.items():
    o=old.get(k,{}).get('playable',float('nan')); rows.append((v['playable']-o,k,v['on time'],v['playable'],v['oracle playable'],o))
rows.sort(key=lambda r:r[0] if r[0]==r[0] else 0)
show=int(os.environ.get('SHOW','6'))
for r in rows[:show]+rows[-3:]: print('%+.1f %s on time %.1f playable %.1f oracle %.1f was %.1f'%(r[0],' '.join(r[1]),*r[2:]))
print(name,len(rows),'points: on time %.2f playable %.2f (was %.2f) worst share %.1f'%(statistics.mean(r[2] for r in rows),statistics.mean(r[3] for r in rows),statistics.mean(r[5] for r in rows),min(100*r[3]/max(r[4],1) for r in rows)))
