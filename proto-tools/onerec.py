import sys,subprocess,json,os,re
sys.path.insert(0,'/tmp/sv'); import sv
f,match,seed=sys.argv[1],sys.argv[2],sys.argv[3]
text=open(f'/work/main/crates/lab/scenarios/recorded/{f}.toml').read()
parts=re.split(r'(?m)^(?=\[\[)',text)
keep=[p for p in parts if (not p.startswith('[[case]]') or match in p) and not p.startswith('[[claim]]')]
open('/tmp/sv/one.toml','w').write(''.join(keep))
set_=os.environ.get('SET','queue = "by-frame"\nscheduler = "by-frame"')
p=subprocess.run([sv.PROTO,'lab','run','/tmp/sv/one.toml','--runs','1','--seed',seed,'--json','--variant','both','--set',set_],capture_output=True,text=True)
open('/tmp/sv/one.err','w').write(p.stderr)
print({r['metric']:round(r['mean'],1) for r in json.loads(p.stdout) if r['metric'] in('playable','on time','I on time','P on time','B on time','sent for each byte shown','never sent','given up','came late','audio on time')})
