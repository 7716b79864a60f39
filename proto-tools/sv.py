#!/usr/bin/env python3
"""sv.py NAME seeds sets runs [--set S] : run 'all' (and, once, subsets) ; env knobs pass through"""
import json, os, random, statistics, subprocess, sys
STREAM=3770
KINDS={1:(2,'0.45,1.0','500ms'),2:(2,'0.45,1.0','1s'),3:(2,'1.0,2.2','500ms'),4:(3,'0.45,1.0','500ms'),5:(3,'1.1,2.5','500ms')}
# other seeds: kind = seed % 10, seed//10 distinct e.g. 11 -> kind1 seed 11
PROTO=os.environ.get('PROTO','/work/wt/plan/target/release/examples/proto')
def gen(seed,sets,latency=None):
    links,load,lat=KINDS[seed%10]; lat=latency or lat
    low,high=map(float,load.split(',')); R=random.Random(seed); NAMES=['first','second','third'][:links]
    text=f'name = "survey"\ntitle = "Random links"\nsource = "survey"\ntext = "x"\nexperiment = "live"\nruns = 3\nduration = "60s"\n[network]\nvary_start = "2s"\n'
    for n in NAMES: text+=f'[link.{n}]\nback-rate = "unlimited"\nqueue = "300ms"\n'
    text+=f'[live]\nclip = "test-3.6"\nlatency = "{lat}"\n'
    for i in range(sets):
        words,lines=[],[]
        for n in NAMES:
            if n=='first':
                rate=f'{int(STREAM/R.uniform(low,high))}kbit'; delay=R.choice([10,20,30,45,60]); loss=R.choice([0,0.2,0.5,1,2])
            else:
                r=STREAM*R.uniform(0.08,0.9); delay=R.choice([20,40,80,120,180,250,300]); loss=R.choice([0,0.5,1,3,6]); rate=f'{int(r)}kbit'
                if R.random()<1/3:
                    t,parts=0,[]
                    for _ in range(5): parts.append(f'{t}s:{int(r*R.choice([0.02,0.3,0.6,1,1.4]))+3}kbit'); t+=R.randint(2,6)
                    rate=','.join(parts)+f',repeat:{t}s'
            lines+=[f'link.{n}.rate = "{rate}"',f'link.{n}.delay = "{delay}ms"']+([f'link.{n}.loss = "{loss}%"'] if loss else [])
            words.append(f'{rate if len(rate)<12 else "steps "+rate.split(",")[0]} {delay} ms {loss} %')
        text+=f'[[case]]\nparams = {{ i = {i}, links = "{" + ".join(words)}" }}\n'+'\n'.join(lines)+'\n'
    subsets=[[n] for n in NAMES]+([['first','second']] if links==3 else [])
    text+='[[variant]]\nname = "all"\n'+''.join(f'[[variant]]\nname = "{"+".join(s)}"\nflow.main.paths = {json.dumps([[n] for n in s])}\n' for s in subsets)
    return text,['+'.join(s) for s in subsets]
def run(seed,sets,runs,set_,variant=None,latency=None,env=None):
    text,subs=gen(seed,sets,latency); f=f'/tmp/sv/{os.getpid()}-{seed}.toml'; open(f,'w').write(text)
    cmd=['nice','-n','5',PROTO,'lab','run',f,'--runs',str(runs),'--seed',str(seed),'--json']+(['--set',set_] if set_ else [])+(['--variant',variant] if variant else [])
    e=dict(os.environ); e.update(env or {})
    p=subprocess.run(cmd,capture_output=True,text=True,env=e)
    if p.returncode: sys.exit(p.stderr[-2000:])
    os.unlink(f); t={}
    for r in json.loads(p.stdout): t.setdefault((r['params']['i'],r['params']['links']),{})[r['variant']+'|'+r['metric']]=r['mean']
    return t,subs
BASE='queue = "by-worth"\nscheduler = "earliest-delivery"'
def base(seed,sets,runs):
    f=f'/tmp/sv/base-{seed}-{sets}-{runs}.json'
    if not os.path.exists(f):
        t,subs=run(seed,sets,runs,BASE)
        json.dump([[list(k),v] for k,v in t.items()]+[subs],open(f,'w'))
    d=json.load(open(f)); return {tuple(k):v for k,v in d[:-1]},d[-1]
if __name__=='__main__':
    name,seeds,sets,runs=sys.argv[1],[int(x) for x in sys.argv[2].split(',')],int(sys.argv[3]),int(sys.argv[4])
    set_=sys.argv[5] if len(sys.argv)>5 else 'queue = "by-frame"\nscheduler = "by-frame"'
    show=int(os.environ.get('SHOW','0'))
    for seed in seeds:
        b,subs=base(seed,sets,runs)
        t,_=run(seed,sets,runs,set_,'all') if name!='base' else (b,subs)
        out=[]
        for k,v in t.items():
            best=max(b[k][s+'|playable'] for s in subs)
            out.append((v['all|playable']-best,v['all|playable'],best,v['all|oracle playable'],v['all|on time'],v['all|I on time'],v['all|P on time'],v['all|B on time'],v['all|sent for each byte shown'],b[k]['all|playable'],k[1]))
        out.sort()
        for o in out[:show]: print('%6.1f all %5.1f best %5.1f oracle %5.1f ontime %5.1f I %5.1f P %5.1f B %5.1f sent %.2f was %5.1f %s'%o)
        d=[o[0] for o in out]; enough=[o for o in out if o[2]>=99]
        print(f'{name} seed {seed}: {len(d)} sets hurt>1 {sum(x<-1 for x in d)} >5 {sum(x<-5 for x in d)} better>1 {sum(x>1 for x in d)} mean {statistics.mean(d):+.2f} all {statistics.mean(o[1] for o in out):.1f} / {statistics.mean(o[3] for o in out):.1f} (was {statistics.mean(o[9] for o in out):.1f}); enough: {sum(o[0]<-1 for o in enough)} of {len(enough)}',flush=True)
