"""The API over HTTP: who asks for what, and the answer as the API reference has it."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from scheduler_project.kernel.clock import monotonic
from tests.kubernetes_api.access import Access, Right
from tests.kubernetes_api.clock import cluster_now
from tests.kubernetes_api.faults import Faults
from tests.kubernetes_api.nodelog import Asked, NodeLog
from tests.kubernetes_api.selectors import Selector
from tests.kubernetes_api.store import Json, Problem, Store, not_found

PATH = re.compile(
    r"/(?:api/v1|apis/(?P<group>[a-z0-9.]+)/v1)/(?:namespaces/(?P<namespace>[a-z0-9-]+)/)?"
    r"(?P<resource>[a-z]+)(?:/(?P<name>[a-z0-9.-]+)(?:/(?P<part>[a-z]+))?)?"
)
KINDS = {
    "jobs": ("batch", "Job"),
    "pods": ("", "Pod"),
    "secrets": ("", "Secret"),
    "events": ("", "Event"),
    "namespaces": ("", "Namespace"),
    "selfsubjectaccessreviews": ("authorization.k8s.io", "SelfSubjectAccessReview"),
}
BOOKMARK_EVERY_S = 1.0
WATCH_POLL_S = 0.5
LONGEST_WATCH_S = 1800.0
STRATEGIC = "application/strategic-merge-patch+json"
LOG_WAITS = 'container "{0}" in pod "{1}" is waiting to start: {2}'


@dataclass(frozen=True)
class Request:
    method: str
    group: str
    namespace: str
    resource: str
    name: str
    part: str
    query: dict[str, str]
    body: Json
    content_type: str = ""

    @property
    def verb(self) -> str:
        if self.method != "GET":
            return {"POST": "create", "PATCH": "patch", "DELETE": "delete", "PUT": "update"}[self.method]
        if self.name:
            return "get"
        return "watch" if self.flag("watch") else "list"

    @property
    def right(self) -> Right:
        resource = f"{self.resource}/{self.part}" if self.part else self.resource
        # The namespace of a request for a namespace is that namespace itself.
        namespace = self.name if self.resource == "namespaces" else self.namespace
        return Right(self.verb, self.group, resource, namespace, self.name)

    @property
    def selector(self) -> Selector:
        return Selector(self.query.get("labelSelector", ""), self.query.get("fieldSelector", ""))

    def flag(self, name: str) -> bool:
        return self.query.get(name, "") in ("1", "true", "True")


def parsed(method: str, target: str, body: Json, content_type: str) -> Request:
    """Raises Problem (404) for what is no path of ours."""
    parts = urlsplit(target)
    found = PATH.fullmatch(parts.path)
    if found is None or KINDS.get(found["resource"], ("", ""))[0] != (found["group"] or ""):
        raise Problem(404, "NotFound", "the server could not find the requested resource")
    query = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
    return Request(
        method,
        found["group"] or "",
        found["namespace"] or "",
        found["resource"],
        found["name"] or "",
        found["part"] or "",
        query,
        body,
        content_type,
    )


class Api:
    """What the requests do; ``logs`` by the uid of the pod, ``reaches`` says whether a node answers."""

    def __init__(self, store: Store, access: Access, faults: Faults, logs: dict[str, NodeLog]) -> None:
        self.store = store
        self.access = access
        self.faults = faults
        self.logs = logs
        self.closed = threading.Event()

    def answer(self, request: Request) -> tuple[int, Json]:
        """Status and body of a request that is no stream. Raises Problem."""
        match request.verb:
            case "create":
                return 201, self._create(request)
            case "get":
                return 200, self._typed(request, self.store.get(request.resource, *self._place(request)))
            case "list":
                return 200, self._list(request)
            case "patch":
                return 200, self._patch(request)
            case "delete":
                return 200, self._delete(request)
        raise Problem(405, "MethodNotAllowed", f"the server does not allow {request.method} here")

    def watch(self, request: Request) -> Iterator[Json]:
        """Events from the version that is asked for; ends with its time, or with an ERROR."""
        version = int(request.query.get("resourceVersion") or self.store.version)
        ends = monotonic() + float(request.query.get("timeoutSeconds", LONGEST_WATCH_S))
        bookmark_at, selector = monotonic() + BOOKMARK_EVERY_S, request.selector
        while monotonic() < ends and not self.closed.is_set():
            newest = self.store.wait(version, min(WATCH_POLL_S, max(0.0, ends - monotonic())))
            self.closed.wait(self.faults.watch_lags.get(request.resource, 0.0))
            try:
                changes = self.store.changes_since(version)
            except Problem as problem:
                yield {"type": "ERROR", "object": problem.status()}
                return
            for change in changes:
                version = change.version
                ours = (change.resource, change.namespace) == (request.resource, request.namespace)
                if ours and (event := change.event(selector)) is not None:
                    yield {**event, "object": self._typed(request, event["object"])}
            version = max(version, newest if not changes else version)
            if request.flag("allowWatchBookmarks") and monotonic() >= bookmark_at:
                bookmark_at = monotonic() + BOOKMARK_EVERY_S
                metadata = {"resourceVersion": str(version), "creationTimestamp": None}
                yield {"type": "BOOKMARK", "object": self._typed(request, {"metadata": metadata})}

    def log(self, request: Request) -> Iterator[bytes]:
        """Raises Problem: 404 without a pod, 400 before its container has started, 500 without its node."""
        pod = self.store.get("pods", request.namespace, request.name)
        container = request.query.get("container") or pod["spec"]["containers"][0]["name"]
        if pod["spec"].get("nodeName") in self.faults.silent_nodes:
            raise Problem(500, "InternalError", "Get https://node:10250/containerLogs: i/o timeout")
        log = self.logs.get(pod["metadata"]["uid"])
        if log is None:
            statuses = pod["status"].get("containerStatuses") or [{}]
            reason = statuses[0].get("state", {}).get("waiting", {}).get("reason", "ContainerCreating")
            raise Problem(400, "BadRequest", LOG_WAITS.format(container, request.name, reason))
        return log.read(_asked(request))

    def _create(self, request: Request) -> Json:
        if request.resource not in ("jobs", "pods", "secrets"):
            raise Problem(405, "MethodNotAllowed", "the server does not allow this method here")
        thing = request.body
        if request.resource == "jobs":
            thing = _defaulted(_checked(thing))
        return self._typed(request, self.store.create(request.resource, request.namespace, thing))

    def _list(self, request: Request) -> Json:
        found, version = self.store.select(request.resource, request.namespace, request.selector)
        metadata: Json = {"resourceVersion": str(version)}
        first, limit = 0, int(request.query.get("limit") or 0)
        if token := request.query.get("continue"):
            version_then, first = map(int, base64.b64decode(token).split(b"/"))
            if version_then < self.store.oldest:
                raise Problem(410, "Expired", "The provided continue parameter is too old")
            metadata["resourceVersion"] = str(version_then)
        page = found[first : first + limit] if limit else found[first:]
        if limit and len(found) > first + limit:
            token = f"{metadata['resourceVersion']}/{first + limit}"
            metadata |= {
                "continue": base64.b64encode(token.encode()).decode(),
                "remainingItemCount": len(found) - first - limit,
            }
        kind = KINDS[request.resource][1]
        # The items of a list have neither kind nor apiVersion.
        return {"kind": f"{kind}List", "apiVersion": _version(request), "metadata": metadata, "items": page}

    def _patch(self, request: Request) -> Json:
        if request.content_type not in (STRATEGIC, "application/merge-patch+json"):
            raise Problem(415, "UnsupportedMediaType", f"the patch type {request.content_type} is not known")

        def edit(thing: Json) -> None:
            _refuse_immutable(request.body)
            _merge(thing, request.body)

        changed = self.store.change(request.resource, *self._place(request), edit)
        if changed is None:
            raise not_found(request.resource, request.name)
        return self._typed(request, changed)

    def _delete(self, request: Request) -> Json:
        options = {**request.query, **request.body}
        found = self.store.delete(request.resource, *self._place(request), options)
        return self._typed(request, found)

    def _place(self, request: Request) -> tuple[str, str]:
        return ("" if request.resource == "namespaces" else request.namespace), request.name

    def _typed(self, request: Request, thing: Json) -> Json:
        return {"kind": KINDS[request.resource][1], "apiVersion": _version(request), **thing}


class Server(ThreadingHTTPServer):
    """Listens on a port of this host that nobody else has."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, api: Api) -> None:
        self.api = api
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, args=(0.05,), name="api-server", daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def close(self) -> None:
        self.api.closed.set()
        self.api.faults.cut_streams()
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no error."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_PATCH = do_DELETE = do_PUT = do_GET

    def date_time_string(self, timestamp: float | None = None) -> str:
        return super().date_time_string(timestamp or cluster_now().timestamp())

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: tests read what matters elsewhere."""

    def _serve(self) -> None:
        api = self.server.api
        try:
            request = parsed(self.command, self.path, self._body(), self.headers.get("Content-Type", ""))
            api.faults.meet(f"{self.command} {self.path}")
            user = api.access.user(self.headers.get("Authorization", ""))
            if request.resource == "selfsubjectaccessreviews":
                return self._send(201, api.access.review(user, request.body))
            api.access.require(user, request.right)
            if request.part == "log":
                return self._stream("text/plain", api.log(request))
            if request.verb == "watch":
                return self._watch(request)
            answer = api.answer(request)
            if api.faults.loses_answer(f"{self.command} {self.path}"):
                return self._cut()
            return self._send(*answer)
        except Problem as problem:
            return self._send(problem.code, problem.status())

    def _watch(self, request: Request) -> None:
        api = self.server.api
        version = request.query.get("resourceVersion")
        if version:
            api.store.changes_since(int(version))  # 410 where it is too old
        lines = (api.faults.odd_line() + json.dumps(event).encode() + b"\n" for event in api.watch(request))
        self._stream("application/json", lines)

    def _body(self) -> Json:
        length = int(self.headers.get("Content-Length") or 0)
        return dict(json.loads(self.rfile.read(length))) if length else {}

    def _send(self, code: int, body: Json) -> None:
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, content_type: str, pieces: Iterator[bytes]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        faults = self.server.api.faults
        cut = self._cut
        silenced = faults.streaming(self.path, cut)
        try:
            for piece in pieces:
                if silenced.is_set():
                    break
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            if silenced.is_set():
                self.connection.recv(1)  # until its client hangs up
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True  # cut, or nobody reads any more
        finally:
            faults.streamed(cut)

    def _cut(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


def _version(request: Request) -> str:
    return f"{request.group}/v1" if request.group else "v1"


def _asked(request: Request) -> Asked:
    since = None
    if text := request.query.get("sinceTime"):
        since = datetime.fromisoformat(text).replace(microsecond=0)  # on its way it loses its fraction
    if seconds := request.query.get("sinceSeconds"):
        since = cluster_now() - timedelta(seconds=int(seconds))
    tail = request.query.get("tailLines")
    return Asked(
        request.flag("follow"), request.flag("timestamps"), since, None if tail is None else int(tail)
    )


def _invalid(name: str, complaint: str) -> Problem:
    return Problem(422, "Invalid", f'Job.batch "{name}" is invalid: {complaint}')


def _checked(job: Json) -> Json:
    """The rules of a Job that Punctual could break. Raises Problem (422)."""
    name = job["metadata"]["name"]
    for complaint in (*_job_complaints(name, job["spec"]), *_label_complaints(job)):
        raise _invalid(name, complaint)
    return job


def _job_complaints(name: str, spec: Json) -> Iterator[str]:
    pod = spec["template"]["spec"]
    if len(name) > 63 or re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", name) is None:
        yield "metadata.name: Invalid value"
    if pod.get("restartPolicy") not in ("Never", "OnFailure"):
        yield 'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'
    if "podFailurePolicy" in spec and pod.get("restartPolicy") != "Never":
        yield "spec.podFailurePolicy: only when restartPolicy=Never"
    if int(spec.get("activeDeadlineSeconds", 1)) < 0:
        yield "spec.activeDeadlineSeconds: must be greater than or equal to 0"
    for number, container in enumerate(pod["containers"]):
        place = f"spec.template.spec.containers[{number}]"
        if not container.get("image"):
            yield f"{place}.image: Required value"
        yield from _mount_complaints(place, container, {volume["name"] for volume in pod.get("volumes", ())})


def _mount_complaints(place: str, container: Json, volumes: set[str]) -> Iterator[str]:
    paths: set[str] = set()
    for number, mount in enumerate(container.get("volumeMounts") or ()):
        if mount["name"] not in volumes:
            yield f'{place}.volumeMounts[{number}].name: Not found: "{mount["name"]}"'
        if mount["mountPath"] in paths:
            path = mount["mountPath"]
            yield f'{place}.volumeMounts[{number}].mountPath: Invalid value: "{path}": must be unique'
        paths.add(mount["mountPath"])


def _label_complaints(job: Json) -> Iterator[str]:
    for thing in (job["metadata"], job["spec"]["template"]["metadata"]):
        for key, value in (thing.get("labels") or {}).items():
            if re.fullmatch(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?", value) is None:
                yield f"metadata.labels: Invalid value: {key}: {value!r}"


def _defaulted(job: Json) -> Json:
    spec = {"backoffLimit": 6, "completions": 1, "parallelism": 1, "suspend": False, **job["spec"]}
    return {**job, "spec": spec}


IMMUTABLE = ("template", "selector", "completions", "completionMode", "podFailurePolicy")


def _refuse_immutable(patch: Json) -> None:
    for name in IMMUTABLE:
        if name in (patch.get("spec") or {}):
            raise _invalid(patch.get("metadata", {}).get("name", ""), f"spec.{name}: field is immutable")


def _merge(thing: Json, patch: Json) -> None:
    """Field by field; null removes. No list is patched here."""
    for name, value in patch.items():
        if value is None:
            thing.pop(name, None)
        elif isinstance(value, dict):
            _merge(thing.setdefault(name, {}), value)
        else:
            thing[name] = value
