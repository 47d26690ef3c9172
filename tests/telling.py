"""A pytest plugin (``-p tests.telling``): what failed is printed when it fails, not only at the end.

A run that is ended from outside, because something hangs, never gets to its end; what was printed by then
is all that its readers have. A try that is made again is told too: it is how a flaw begins.
"""

from __future__ import annotations

import pytest

LAST_LINES = 25


class Teller:
    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome not in ("failed", "rerun"):
            return
        lines = report.longreprtext.splitlines()
        self._terminal.write_line("")
        self._terminal.section(
            f"{report.outcome}: {report.nodeid} ({report.when}, {report.duration:.0f} s)", "-"
        )
        for line in lines[-LAST_LINES:]:
            self._terminal.write_line(line)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Teller(terminal), "punctual-teller")
