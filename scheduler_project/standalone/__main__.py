"""``python -m scheduler_project.standalone <options as JSON>``: what ``manage.py standalone`` becomes."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from scheduler_project.home import ensure_secret_key
from scheduler_project.kernel.clock import utcnow
from scheduler_project.standalone.claims import Refused, claim_home, claim_lock, claim_port
from scheduler_project.standalone.console import Console, complain, open_standard_streams
from scheduler_project.standalone.interrupts import Interrupts
from scheduler_project.standalone.options import Options, given_environment
from scheduler_project.standalone.tree import Tree


def main(words: list[str]) -> int:
    open_standard_streams()
    try:
        return start(Options.from_text(words[0]), given_environment())
    except Refused as refusal:
        complain(refusal.message)
        return 1


def start(options: Options, given: Mapping[str, str]) -> int:
    """Claim what the start needs and live; the exit code. Refused where something else has it."""
    begun = utcnow()
    interrupts = Interrupts()
    interrupts.listen()
    console = Console(lost=interrupts.request)
    claim_home(options.folder)
    claim_lock(options.folder)
    if "SECRET_KEY" not in given:
        ensure_secret_key(options.folder)
    tree = Tree(options, given, console)
    tree.end_leftovers()
    bound = claim_port(options.port)
    console.say(f"Punctual keeps its state in {options.home}")
    return tree.live(bound, interrupts, begun)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
