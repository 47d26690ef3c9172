"""A run that reports its own end, by real processes: recorded once, stopped, its token masked."""

from __future__ import annotations

import gzip
from pathlib import Path

from tests.system import running_system

REPORT = """
import json, os, time, urllib.request
request = urllib.request.Request(
    "{site}/api/v1/executions/" + os.environ["PUNCTUAL_EXECUTION_ID"] + "/status",
    json.dumps({{"status": "Completed Normally"}}).encode(),
    {{"Authorization": "Bearer " + os.environ["PUNCTUAL_RUN_TOKEN"], "Content-Type": "application/json"}},
)
print("token", os.environ["PUNCTUAL_RUN_TOKEN"], urllib.request.urlopen(request).status, flush=True)
time.sleep(600)
"""


def test_a_run_reports_its_own_end_and_is_stopped(tmp_path: Path) -> None:
    with running_system(tmp_path, PUNCTUAL_WORKER_SLOTS="1") as system:
        system.start_all("beat worker recorder auditor web")
        system.wait_until_ready()
        program = tmp_path / "report.py"
        program.write_text(REPORT.format(site=system.site))
        common = {"type": "Script", "schedule": "now", "owner": "tests"}
        (job,) = system.create_jobs({"name": "reports", "command": f"exec python3 {program}", **common})
        (run,) = system.wait_all_terminal([job], 1)
        assert (run["state"], run["reason"], run["attempt"]) == ("Completed Normally", "reported", 1)
        (after,) = system.create_jobs({"name": "after", "command": "true", **common})
        (next_run,) = system.wait_all_terminal([after], 1)  # the one slot is free again
        assert next_run["state"] == "Completed Normally"
        assert system.executions(job)[0]["state"] == "Completed Normally"
        pattern = f"logs/archive/*/{run['id']}/1.log.gz"
        system.wait_for(lambda: any(system.home.glob(pattern)), "its log is archived")
        (log,) = system.home.glob(pattern)
        said = gzip.decompress(log.read_bytes()).decode().split()
        assert (said[0], set(said[1]), said[2]) == ("token", {"*"}, "202")
