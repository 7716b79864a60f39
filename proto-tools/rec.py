import subprocess,json,sys,os
sys.path.insert(0,'/tmp/sv'); import sv
sets={"by-frame":"queue = \"by-frame\"\nscheduler = \"by-frame\""}
t={}
for n,s in sets.items():
    for f in ('live-s1','live-recorded'):
        p=subprocess.run(['nice','-n','5',sv.PROTO,'lab','run',f'/work/main/crates/lab/scenarios/recorded/{f}.toml','--runs',sys.argv[1],'--seed','700','--json','--variant','both','--set',s],capture_output=True,text=True)
        if p.returncode: print(p.stderr[-400:]); continue
        for r in json.loads(p.stdout):
            if r['metric'] in ('playable','on time','oracle playable'): t.setdefault((f,json.dumps(r['params'])[:70]),{})[n,r['metric']]=r['mean']
for k,v in t.items(): print(k[1][:40]," ".join(f"{n[0]}:{n[1][:8]} {x:.1f}" for n,x in v.items() if n[0]=="by-frame" and "oracle" not in n[1]))
