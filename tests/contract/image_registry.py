"""A small image registry: as much of the distribution API (v2) as an engine needs to pull.

https://distribution.github.io/distribution/spec/api/ -- manifests and blobs, basic authentication,
refusals, and blobs that come as slowly as a test wants. Engines take registries at
127.0.0.0/8 without TLS.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import tarfile
import threading
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.images import root_file_system

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG = "application/vnd.docker.container.image.v1+json"
LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"
PIECE, DRIP_S = 600_000, 0.1  # an engine speaks of a download, and so finds its client gone, every 512 KiB
USER, PASSWORD = "reader", "open sesame"


@dataclass
class ImageRegistry:
    """``refusals``: statuses that the next requests for a manifest get. ``private``: a password is needed.

    While ``gate`` is not set large blobs come slowly, which ``slowed`` tells. ``asked``: requests, by
    kind. ``abandoned`` is set when the engine hangs up on a blob.
    """

    private: bool = False
    refusals: list[int] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)
    slowed: threading.Event = field(default_factory=threading.Event)
    abandoned: threading.Event = field(default_factory=threading.Event)
    gate: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.gate.set()
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[str, bytes] = {}
        registry = self

        class Handler(_Handler):
            held = registry

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_port}"

    def push(self, name: str, content: bytes) -> str:
        """An image of busybox with a file /content; its full name."""
        layers = [root_file_system(), _layer("content", content)]
        digests = [self._keep(gzip.compress(layer, 1, mtime=0)) for layer in layers]
        config = {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Env": ["PATH=/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer) for layer in layers]},
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": self._describe(CONFIG, self._keep(json.dumps(config).encode())),
            "layers": [self._describe(LAYER, digest) for digest in digests],
        }
        body = json.dumps(manifest).encode()
        self.manifests[f"{name}/latest"] = self.manifests[f"{name}/{_digest(body)}"] = body
        return f"{self.address}/{name}"

    def login(self) -> str:
        """A Docker config that holds the password."""
        secret = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        return json.dumps({"auths": {self.address: {"auth": secret}}})

    def close(self) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()

    def _keep(self, blob: bytes) -> str:
        digest = _digest(blob)
        self.blobs[digest] = blob
        return digest

    def _describe(self, media_type: str, digest: str) -> dict[str, object]:
        return {"mediaType": media_type, "size": len(self.blobs[digest]), "digest": digest}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    held: ImageRegistry

    def do_GET(self) -> None:
        if self.held.private and not self._authorised():
            self._refuse(401, "UNAUTHORIZED", "authentication required")
            return
        if self.path == "/v2/":
            self._answer(200, b"{}", "application/json")
            return
        name, kind, reference = self.path.removeprefix("/v2/").rsplit("/", 2)
        self.held.asked[kind] += 1
        if kind == "manifests":
            self._manifest(f"{name}/{reference}")
        else:
            self._blob(self.held.blobs[reference])

    do_HEAD = do_GET

    def _manifest(self, key: str) -> None:
        if self.held.refusals:
            status = self.held.refusals.pop(0)
            self._refuse(status, "TOOMANYREQUESTS" if status == 429 else "UNAVAILABLE", "not now")
        elif (body := self.held.manifests.get(key)) is None:
            self._refuse(404, "MANIFEST_UNKNOWN", "manifest unknown")
        else:
            self._answer(200, body, MANIFEST)

    def _blob(self, body: bytes) -> None:
        self._begin(200, len(body), "application/octet-stream")
        sent = 0
        try:
            while sent < len(body):
                if not self.held.gate.is_set() and sent > PIECE:
                    self.held.slowed.set()
                    self.held.gate.wait(DRIP_S)
                sent += self.connection.send(body[sent : sent + PIECE])
        except OSError:
            self.held.abandoned.set()
            self.close_connection = True

    def _authorised(self) -> bool:
        kind, _, secret = self.headers.get("Authorization", "").partition(" ")
        return kind == "Basic" and base64.b64decode(secret).decode() == f"{USER}:{PASSWORD}"

    def _refuse(self, status: int, code: str, message: str) -> None:
        body = json.dumps({"errors": [{"code": code, "message": message}]}).encode()
        self._answer(status, body, "application/json")

    def _answer(self, status: int, body: bytes, media_type: str) -> None:
        self._begin(status, len(body), media_type, _digest(body))
        if self.command == "GET":
            self.wfile.write(body)

    def _begin(self, status: int, length: int, media_type: str, digest: str = "") -> None:
        self.send_response(status)
        self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(length))
        if digest:
            self.send_header("Docker-Content-Digest", digest)
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="test"')
        if status == 429:
            self.send_header("Retry-After", "1")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def _digest(blob: bytes) -> str:
    return "sha256:" + hashlib.sha256(blob).hexdigest()


def _layer(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
