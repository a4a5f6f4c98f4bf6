import json, time, io
import pytest
from django.core.management import call_command, CommandError
from evolution.models import *
from tests.evolution.airline import airline_files
from tests.evolution.intake import TAU_BENCH
pytestmark = pytest.mark.django_db
def run(*a):
    out=io.StringIO(); t=time.time()
    try:
        call_command(*a, "--json", stdout=out)
    except (CommandError, SystemExit) as e: print("ERR", a[0], e)
    print(a[0], round(time.time()-t,2)); return json.loads(out.getvalue())
def test_x(tmp_path):
    for p,d in airline_files().items():
        (tmp_path/"h"/p).parent.mkdir(parents=True, exist_ok=True); (tmp_path/"h"/p).write_bytes(d)
    print(run("check_harness", str(tmp_path/"h")))
    run("add_harness","airline","--from",str(tmp_path/"h"))
    print(run("import_cases",str(TAU_BENCH),"--harness","airline"))
    print(run("cluster","--harness","airline"))
    for c in Cluster.objects.all(): print(c.number,c.name,c.members.count())
    d=run("diagnose","--all","--harness","airline")
    __import__("pathlib").Path("/tmp/flow/d.json").write_text(json.dumps(d,indent=1))
    ex=[{"shown":e.shown,"n":e.prompt_tokens,"error":e.error,"replies":e.replies,"len":len(json.dumps(e.request)), "req":e.request} for e in Exchange.objects.all()]
    __import__("pathlib").Path("/tmp/flow/ex.json").write_text(json.dumps(ex,indent=1))
    p=run("draft","--all","--harness","airline")
    __import__("pathlib").Path("/tmp/flow/p.json").write_text(json.dumps(p,indent=1))
    from evolution.loop.repositories import open_repository
    import subprocess
    h=Harness.objects.get(name="airline")
    r=open_repository(h)
    for x in p["proposals"]:
        print(x["title"],x["state"],x["reason"])
        if x["commit"]: print(subprocess.run(["git","-C",str(r.path),"diff",x["base"],x["commit"]],capture_output=True,text=True).stdout)
    # over all further diagnoses
