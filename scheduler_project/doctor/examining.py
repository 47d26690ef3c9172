"""Runs checks side by side, each within the time limit."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from django.db import connections
from django.db.utils import Error as DatabaseError

from scheduler_project.doctor.findings import Check, Finding, Level, away, failure, unknown
from scheduler_project.kernel.clock import monotonic
from scheduler_project.kernel.errors import PunctualError, RetryableError
from scheduler_project.startup import unmigrated, unreachable

WITHIN_S = 8.0
"""For all together. A connection to a host that does not answer is given up after 5 s."""
_FAULT = "Report it with this line; what other checks say holds all the same."


@dataclass
class _Examination:
    part: str
    check: Check
    findings: list[Finding] = field(default_factory=list)

    def run(self) -> None:
        try:
            for finding in self.check():
                self.findings.append(finding)
        except RetryableError as error:
            self.findings.append(unknown("rest", error.message))
        except DatabaseError as error:
            told = unreachable(error) or unmigrated(error)
            self.findings.append(unknown("rest", told) if told else self._fault(error))
        except Exception as error:
            self.findings.append(self._fault(error))
        finally:
            connections.close_all()

    def _fault(self, error: Exception) -> Finding:
        told = error.message if isinstance(error, PunctualError) else f"{type(error).__name__}: {error}"
        return failure("rest", " ".join(f"This check has failed itself: {told}".split()), _FAULT)


def examine(checks: Mapping[str, Check], within_s: float = WITHIN_S) -> dict[str, list[Finding]]:
    """What each check found, by part. One that takes longer is left: its thread ends with the process."""
    started = {part: _Examination(part, check) for part, check in checks.items()}
    threads = {
        part: threading.Thread(target=examination.run, name=f"doctor-{part}", daemon=True)
        for part, examination in started.items()
    }
    for thread in threads.values():
        thread.start()
    deadline = monotonic() + within_s
    for part, thread in threads.items():
        thread.join(max(0.0, deadline - monotonic()))
        if thread.is_alive():
            told = f"It takes connections and has not answered within {within_s:g} s."
            started[part].findings.append(away(told, "Look at its log, and at the load of its host."))
    return {part: list(examination.findings) for part, examination in started.items()}


def worst(found: Mapping[str, list[Finding]]) -> Level:
    levels = {finding.level for findings in found.values() for finding in findings}
    order = (Level.FAILURE, Level.WARNING, Level.UNKNOWN)
    return next((level for level in order if level in levels), Level.OK)
