"""The tree of processes: what is started after what, and stopped before what.

start:  postgresql, valkey → migrate → recorder, auditor, worker, beat, web, maintenance → reporter
stop:   reporter → web → beat → worker → (runs) → (events drained) → recorder, auditor
        → maintenance → valkey → postgresql
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from datetime import datetime

from scheduler_project.home import SERVICES, write_private
from scheduler_project.kernel.clock import monotonic
from scheduler_project.standalone import closing, programs
from scheduler_project.standalone.children import Program, show_title
from scheduler_project.standalone.console import Console, complain
from scheduler_project.standalone.interrupts import Interrupts
from scheduler_project.standalone.leftovers import Record, end_leftovers
from scheduler_project.standalone.log_files import LogFiles
from scheduler_project.standalone.options import Options
from scheduler_project.standalone.parts import Parts
from scheduler_project.standalone.plan import Plan, docker_check
from scheduler_project.standalone.reporter import REFUSED
from scheduler_project.standalone.supervisor import (
    StartFailed,
    StopAtOnce,
    StopRequested,
    Supervisor,
    describe_end,
)

INTERRUPTED = 130
STOPS = (("reporter",), ("web",), ("beat",), ("worker",), ("recorder", "auditor"), ("maintenance",))
SERVERS = (("valkey",), ("postgresql",))
RUNS_GRACE_S = 5.0
DRAIN_S = 10.0


class World:
    """What the supervisor tells of its children goes to the terminal, the logs and the record."""

    def __init__(self, console: Console, logs: LogFiles, record: Record) -> None:
        self._console = console
        self._logs = logs
        self._record = record

    def say(self, line: str) -> None:
        self._console.say(line)

    def started(self, program: Program, pid: int) -> None:
        self._record.add(program.name, pid, program.death_signal)

    def ended(self, program: Program) -> None:
        self._logs.repeat_loud_lines()
        self._record.drop(program.name)

    def turn(self) -> None:
        self._logs.repeat_loud_lines()

    def last_words(self, program: Program) -> str:
        return self._logs.last_line(program.log)


class Tree:
    """One start of the system. ``bound``: the web server's socket."""

    def __init__(self, options: Options, given: Mapping[str, str], console: Console) -> None:
        self._options = options
        self._given = given
        self._console = console
        self._record = Record(options.folder)
        self._logs = LogFiles(options.folder / "log", console.quote)
        self._parts = Parts(options, given, self._logs.folder)

    def end_leftovers(self) -> None:
        """End what a killed supervisor of this folder has left. Refused where the data cannot be used."""
        left = self._record.left()
        if self._parts.postgres:
            self._parts.postgres.check()
            known = {process.pid for process in left}
            left += [process for process in self._parts.postgres.left_over() if process.pid not in known]
        end_leftovers(left, self._console.say)

    def live(self, bound: socket.socket, interrupts: Interrupts, begun: datetime) -> int:
        """Start everything, watch it until it is to end, stop it in order; the exit code."""
        self._supervisor = Supervisor(World(self._console, self._logs, self._record), interrupts)
        try:
            code = self._start_and_watch(bound, begun)
            self._stop()
        except StopAtOnce:
            self._console.say("stopping at once")
            self._kill()
            return INTERRUPTED
        except BaseException:
            self._kill()
            raise
        return code

    def _start_and_watch(self, bound: socket.socket, begun: datetime) -> int:
        first = monotonic()
        try:
            self._start_servers()
            self._start_processes(bound)
            self._console.say(f"everything is up after {monotonic() - first:.1f} s")
            self._supervisor.start(self._plan.reporter(begun))
            return self._verdict(self._supervisor.exit_code("reporter"))
        except StopRequested:
            return INTERRUPTED if self._options.once else 0
        except StartFailed as failure:
            complain(failure.message)
            return 1

    def _verdict(self, code: int | None) -> int:
        """The exit code of the reporter, which has said why; a sign of its own fault is said here."""
        if code in {0, REFUSED}:
            return 0 if code == 0 else 1
        self._console.say(f"the reporter ended ({describe_end(code or 0)}); see {self._logs.folder}")
        return 1

    # --- Start -------------------------------------------------------------------------------

    def _start_servers(self) -> None:
        postgres, valkey = self._parts.postgres, self._parts.valkey
        if postgres and postgres.is_new:
            with self._console.step("making the database (first start)", "the database is made"):
                making = postgres.making()
                self._supervisor.start(making)
                programs.warm_up()
                self._supervisor.conclude(making.name, 120.0)
                postgres.made()
        programs.warm_up()
        show_title(self._options.title)
        servers = [server for server in (postgres, valkey) if server]
        if not servers:
            self._console.say("using the given database, Redis and broker")
            return
        label = " and ".join(server.label for server in servers)
        with self._console.step(f"starting {label}", f"{label} {'answer' if servers[1:] else 'answers'}"):
            for server in servers:
                self._supervisor.start(server.server())
            for server in servers:
                self._supervisor.wait_until(server.name, server.ready, 60.0)
            if postgres:
                for name in self._parts.databases:
                    postgres.ensure_database(name)

    def _start_processes(self, bound: socket.socket) -> None:
        runtime = self._choose_runtime()
        self._plan = Plan(self._options, self._parts, self._logs.folder, runtime)
        addresses = self._parts.addresses(runtime)
        write_private(self._options.folder / SERVICES, json.dumps(addresses, indent=1) + "\n")
        with self._console.step("migrating the database", "the tables are there"):
            self._supervisor.finish(self._plan.migration(), 300.0)
        services = self._plan.services(bound)
        for program in services:
            self._logs.follow(program.log, program.name)
        names = ", ".join(program.name for program in services)
        with self._console.step(f"starting {names}", f"they run; {self._options.url} answers"):
            for program in services:
                self._supervisor.start(program)
            self._supervisor.wait_until("web", lambda: closing.web_answers(self._options.port), 60.0)

    def _choose_runtime(self) -> str:
        """As given; for the demo, whose commands live here, local processes; else Docker where it answers."""
        if given := self._given.get("PUNCTUAL_RUNTIME"):
            return given
        if self._options.demo:
            return "process"
        check = docker_check(self._parts.environment("docker"), self._logs.folder / "docker-check.log")
        self._supervisor.start(check)
        found = self._supervisor.exit_code(check.name, 15.0) == 0
        runtime = "docker" if found else "process"
        why = "a Docker engine answers" if found else "no Docker engine answers"
        self._console.say(f"runs are started by the runtime '{runtime}': {why} (PUNCTUAL_RUNTIME changes it)")
        return runtime

    # --- Stop --------------------------------------------------------------------------------

    def _stop(self) -> None:
        self._supervisor.wind_down()
        lasting = {name for names in (*STOPS, *SERVERS) for name in names}
        self._stop_step(tuple(name for name in self._supervisor.names if name not in lasting))
        for names in STOPS:
            if names == ("recorder", "auditor"):
                self._end_runs()
                self._drain()
            self._stop_step(names)
        for names in SERVERS:
            self._stop_step(names)
        self._console.say("stopped")

    def _stop_step(self, names: tuple[str, ...]) -> None:
        running = [name for name in names if self._supervisor.knows(name)]
        if not running:
            return
        self._console.say(f"stopping {' and '.join(running)} …")
        for name in self._supervisor.stop(running):
            self._console.say(f"{name} did not end in time and was killed")

    def _end_runs(self) -> None:
        """Local processes that the worker let go of: nothing may outlive the system."""
        for name in closing.end_runs(self._options.folder, RUNS_GRACE_S):
            self._console.say(f"ended the run {name}")

    def _drain(self) -> None:
        """Give recorder and auditor the time to take what is in their queues."""
        if not self._supervisor.knows("recorder"):
            return
        self._supervisor.start(self._plan.drain())
        if self._supervisor.exit_code("drain", DRAIN_S) != 0:
            self._console.say("some events wait in their queue; the next start records them")
        self._supervisor.stop(["drain"])

    def _kill(self) -> None:
        self._supervisor.kill_all()
        closing.end_runs(self._options.folder, 0.0)
