"""How a run ended, in words: its reason, its exit code and its signal, each with what to do (pure).

One table for the admin, REST (``explanation``) and the commands.
"""

from __future__ import annotations

from dataclasses import dataclass

from containers.outcome import signal_name


@dataclass(frozen=True, slots=True)
class Explanation:
    """``sentence``: what happened. ``advice``: what to do about it; empty where there is nothing."""

    sentence: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.sentence} {self.advice}".strip()


_AGAIN = "It starts again by itself, apart from its retries, three times at most."
REASONS: dict[str, Explanation] = {
    "succeeded": Explanation("It ended as it should."),
    "reported": Explanation("Its end was reported by the run itself, or from where its work was done."),
    "failed": Explanation("Its program failed.", "The end of its output usually says why."),
    "timed_out": Explanation(
        "It was stopped at its time limit.", "Give the job a longer timeout, or see where its time went."
    ),
    "out_of_memory": Explanation(
        "It needed more memory than its limit.",
        "Raise container.resources.memory.limit, or let the program take less at a time.",
    ),
    "image_pull_failed": Explanation(
        "Its image could not be fetched.",
        "Check the image's name and tag, and the credentials of the worker's engine.",
    ),
    "secret_missing": Explanation(
        "A secret that it names is not there.",
        "Add it where the workers look for secrets, or correct the name.",
    ),
    "not_allowed": Explanation(
        "Its container asks for what this deployment does not allow.",
        "Take that out of the job, or ask an administrator (PUNCTUAL_ALLOW_…).",
    ),
    "start_failed": Explanation(
        "Its command could not be started.", "Check that the command exists in the image and may be executed."
    ),
    "start_timed_out": Explanation(
        "It did not start within the time for a start.",
        "Look at the engine or the cluster, or raise container.startTimeout.",
    ),
    "unschedulable": Explanation(
        "No node of the cluster could take it.",
        "Ask for less CPU and memory, or check nodeSelector and tolerations.",
    ),
    "crash_loop": Explanation("Its container ended again and again at its start.", "Its output says why."),
    "out_of_disk": Explanation(
        "It ran out of disk.", "Raise container.resources.ephemeralStorage, or write less."
    ),
    "template_error": Explanation(
        "A template in its command or parameters could not be filled in.",
        "Correct the template in the job; a retry would fail alike.",
    ),
    "lost": Explanation("It was lost with its worker, engine or container.", _AGAIN),
    "evicted": Explanation("Its node was short of memory or disk and put it out.", _AGAIN),
    "preempted": Explanation("It made room for something more important in the cluster.", _AGAIN),
    "node_lost": Explanation("Its node went away.", _AGAIN),
    "removed": Explanation("Somebody removed its container.", _AGAIN),
    "user": Explanation("Somebody cancelled it."),
    "skipped_overlap": Explanation(
        "It did not run, because a run before it had not ended.",
        "Let the job's runs overlap or queue, or make it shorter than its schedule.",
    ),
    "skipped_misfire": Explanation(
        "It did not run, because its time had passed while nothing could start it.",
        "The job's misfire policy says which missed times are still run.",
    ),
    "skipped_paused": Explanation("It did not run, because its job was paused."),
    "replaced": Explanation("The next run of its job took its place (overlap: replace)."),
    "upstream_failed": Explanation("It did not run, because a job before it had failed."),
    "paused": Explanation("Its job is paused.", "Resume the job."),
    "pool_full": Explanation("It waits for a place in a pool."),
    "no_room": Explanation("It waits for a worker that is large enough."),
    "deleted": Explanation("Its job was deleted."),
    "rescheduled": Explanation("It was moved, or its job's schedule does not have this time any more."),
}

CODES: dict[int, str] = {
    1: "the program's general sign for an error",
    2: "for many programs: called with wrong arguments",
    64: "called with wrong arguments (EX_USAGE)",
    65: "its input was wrong (EX_DATAERR)",
    66: "an input could not be opened (EX_NOINPUT)",
    69: "a service that it needs is not available (EX_UNAVAILABLE)",
    70: "a fault within the program (EX_SOFTWARE)",
    73: "an output could not be made (EX_CANTCREAT)",
    74: "an error while reading or writing (EX_IOERR)",
    75: "a failure that may pass: try again (EX_TEMPFAIL)",
    77: "it lacks a permission (EX_NOPERM)",
    78: "its configuration is wrong (EX_CONFIG)",
    124: "stopped by the program timeout",
    126: "the command was found but may not be executed",
    127: "the command was not found: a wrong name or path, or it is not in the image",
    255: "an error code below 0 or above 255, or a failed ssh",
}

SIGNALS: dict[str, str] = {
    "SIGHUP": "its terminal or parent went away",
    "SIGINT": "interrupted, as by Ctrl-C",
    "SIGQUIT": "told to quit",
    "SIGILL": "an instruction that this CPU does not know: perhaps built for another one",
    "SIGTRAP": "stopped by a breakpoint or a failed assertion",
    "SIGABRT": "it gave up by itself: a failed assertion, or memory found damaged",
    "SIGBUS": "memory that is not there, often a truncated file or a full /dev/shm",
    "SIGFPE": "a division by zero or its like",
    "SIGKILL": "killed: most often it needed more memory than there was, or did not end when told to",
    "SIGSEGV": "it touched memory that is not its own: a fault in native code",
    "SIGPIPE": "who read its output went away",
    "SIGALRM": "its own timer ended it",
    "SIGTERM": "told to end",
    "SIGXCPU": "it used up its CPU time",
    "SIGXFSZ": "a file grew beyond its limit",
    "SIGSYS": "a system call that its sandbox does not allow",
}


def explain(reason: str, exit_code: int | None = None) -> Explanation | None:
    """What ``reason`` and ``exit_code`` mean; None where there is nothing to be said yet.

    An unknown reason is repeated as it is, so that an older web shows what a newer worker says.
    """
    known = REASONS.get(reason) or (Explanation(f"Reason: {reason.replace('_', ' ')}.") if reason else None)
    code = explain_code(exit_code)
    if not code or known is None:
        return known
    return Explanation(f"{known.sentence} {code}", known.advice)


def explain_code(code: int | None) -> str:
    """An exit code as a sentence; empty for 0 and for none."""
    if not code:
        return ""
    name = signal_name(code)
    meaning = SIGNALS.get(name) if name else CODES.get(code)
    shown = f"Exit code {code} ({name})" if name else f"Exit code {code}"
    return f"{shown}: {meaning}." if meaning else f"{shown}."
