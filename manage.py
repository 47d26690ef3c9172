#!/usr/bin/env python
"""Django's command line for Punctual."""

import sys

from scheduler_project.standalone.interrupts import hold


def main(words: list[str]) -> None:
    if words[1:2] == ["standalone"]:
        hold()
    from scheduler_project.startup import run_command

    run_command(words)


if __name__ == "__main__":
    main(sys.argv)
