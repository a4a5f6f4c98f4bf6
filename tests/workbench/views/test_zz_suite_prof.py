import cProfile, pstats, time, os, subprocess
from collections import Counter
import pytest
def test_world(db, capsys):
    from tests.workbench.views.conftest import make_world
    from django.contrib.auth.models import User
    make_world.__globals__
    real = subprocess.Popen.__init__
    n=Counter()
    def init(self, args, *a, **k):
        n[" ".join(map(str,args[:9]))[:150] if not isinstance(args,str) else args]+=1
        return real(self,args,*a,**k)
    subprocess.Popen.__init__=init
    p=cProfile.Profile(); t=os.times(); w=time.time(); p.enable(); make_world(); p.disable(); t2=os.times()
    subprocess.Popen.__init__=real
    with capsys.disabled():
        print([b-a for a,b in zip(t,t2)], time.time()-w)
        pstats.Stats(p).sort_stats("cumtime").print_stats(70)
        print(sum(n.values())); 
        for k,v in n.most_common(60): print(v,k)
        t=os.times(); User.objects.create_user("x","y@z","a password of tests"); print("hash", [b-a for a,b in zip(t,os.times())])
