"""Gateways side by side: nginx, Portkey's, LiteLLM's proxy and Groundwire, each one process on the same core.

The model server and the load are on another core. LiteLLM is installed into .bench/litellm-venv and Portkey's gateway
(npm's @portkey-ai/gateway) into .bench/portkey on first use; nginx has to be on the machine. Each is set up as its
documentation advises for speed, logs errors only where it logs at all, and calls one upstream in OpenAI's dialect.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from bench.client import MODELS
from bench.processes import Server, free_port, running

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / ".bench"
CORES = sorted(os.sched_getaffinity(0))
GATEWAYS_ON, LOAD_ON = CORES[0], CORES[-1]
"""The core of the gateways, and that of the model server and the load."""

DIRECT, NGINX, PORTKEY, LITELLM = "direct", "nginx", "portkey", "litellm"
OFF, SYNC, STORE = "groundwire off", "groundwire sync", "groundwire sync + store"


class Missing(Exception):
    """A gateway is not on this machine and cannot be installed; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Start:
    """The start of a gateway: its command and environment, and the headers that name the upstream."""

    command: Sequence[str]
    environ: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def model_server() -> Iterator[Server]:
    """Run the model server behind all gateways."""
    port = free_port()
    command = [sys.executable, "-m", "bench.upstream", "--port", str(port)]
    with running(DIRECT, pinned(command, LOAD_ON), port, WORK / "upstream.log", {}) as server:
        yield server


@contextmanager
def gateway(name: str, upstream: Server, environ: Mapping[str, str] = MappingProxyType({})) -> Iterator[Server]:
    """Run a gateway in front of the model server, with `environ` added to its environment. Raises Missing."""
    port = free_port()
    start = _STARTS[name](port, upstream.port)
    command, log = pinned(start.command, GATEWAYS_ON), WORK / f"{name.replace(' ', '-')}.log"
    with running(name, command, port, log, {**start.environ, **environ}, start.headers) as server:
        yield server


def pinned(command: Sequence[str], core: int) -> list[str]:
    """Return the command, pinned to one core."""
    return ["taskset", "-c", str(core), *command]


def _groundwire(mode: str, store: bool, port: int, upstream: int) -> Start:
    lines = [
        f"server: {{host: 127.0.0.1, port: {port}}}",
        f"upstreams: {{bench: {{base_url: 'http://127.0.0.1:{upstream}/v1', dialect: openai, models: ['*']}}}}",
        f"grounding: {{mode: '{mode}'}}",
    ]
    if store:
        database = WORK / f"store-{port}.db"
        database.unlink(missing_ok=True)
        lines.append(f"store: {{url: 'sqlite+aiosqlite:///{database}'}}")
    config = _written(f"groundwire-{port}.yaml", lines)
    return Start([str(Path(sys.executable).parent / "groundwire"), "serve", "--config", config])


def _nginx(port: int, upstream: int) -> Start:
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise Missing("nginx is not installed (Debian: apt-get install nginx-light)")
    config = _written("nginx.conf", [_NGINX.format(port=port, upstream=upstream, work=WORK)])
    return Start([found, "-p", str(WORK), "-e", "stderr", "-c", config])


def _litellm(port: int, upstream: int) -> Start:
    config = _written("litellm.yaml", ["litellm_settings: {telemetry: false, set_verbose: false, num_retries: 0}"])
    models = sorted(set(MODELS.values()))
    address = f'api_base: "http://127.0.0.1:{upstream}/v1", api_key: sk-bench'
    lines = [f"  - {{model_name: {each}, litellm_params: {{model: openai/{each}, {address}}}}}" for each in models]
    Path(config).write_text("\n".join([Path(config).read_text(), "model_list:", *lines]))
    command = [str(_litellm_venv() / "bin" / "litellm"), "--config", config, "--host", "127.0.0.1"]
    return Start([*command, "--port", str(port), "--num_workers", "1"], _LITELLM_ENVIRON)


def _portkey(port: int, upstream: int) -> Start:
    command = ["node", str(_portkey_package() / "build" / "start-server.js"), f"--port={port}", "--headless"]
    headers = {"x-portkey-provider": "openai", "x-portkey-custom-host": f"http://127.0.0.1:{upstream}/v1"}
    return Start(command, {"NODE_ENV": "production", "TRUSTED_CUSTOM_HOSTS": "127.0.0.1"}, headers)


_STARTS: Mapping[str, Callable[[int, int], Start]] = {
    NGINX: _nginx,
    OFF: lambda port, upstream: _groundwire("off", False, port, upstream),
    SYNC: lambda port, upstream: _groundwire("sync", False, port, upstream),
    STORE: lambda port, upstream: _groundwire("sync", True, port, upstream),
    PORTKEY: _portkey,
    LITELLM: _litellm,
}

_NGINX = """\
daemon off;
master_process off;
pid {work}/nginx.pid;
error_log stderr error;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {work}/nginx-bodies;
    proxy_temp_path {work}/nginx-proxied;
    fastcgi_temp_path {work}/nginx-fastcgi;
    uwsgi_temp_path {work}/nginx-uwsgi;
    scgi_temp_path {work}/nginx-scgi;
    client_body_buffer_size 1m;
    client_max_body_size 64m;
    keepalive_requests 10000000;
    upstream model {{ server 127.0.0.1:{upstream}; keepalive 512; keepalive_requests 10000000; }}
    server {{
        listen 127.0.0.1:{port} backlog=2048;
        location / {{
            proxy_pass http://model;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_buffering off;
        }}
    }}
}}
"""

_LITELLM_ENVIRON = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_MODE": "PRODUCTION",
    "LITELLM_LOG": "ERROR",
    "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",  # skips a check that Groundwire does not have either
    "NO_PROXY": "127.0.0.1",
}


def _written(name: str, lines: Sequence[str]) -> str:
    path = WORK / name
    path.write_text("\n".join(lines))
    return str(path)


def _litellm_venv() -> Path:
    venv = WORK / "litellm-venv"
    if not (venv / "bin" / "litellm").exists():
        try:
            subprocess.check_call([sys.executable, "-m", "venv", str(venv)])
            subprocess.check_call([str(venv / "bin" / "pip"), "install", "--quiet", "litellm[proxy]"])
        except (OSError, subprocess.CalledProcessError) as error:
            raise Missing(f"litellm[proxy] cannot be installed: {error}") from error
    return venv


def _portkey_package() -> Path:
    folder = WORK / "portkey"
    package = folder / "node_modules" / "@portkey-ai" / "gateway"
    if not (package / "build" / "start-server.js").exists():
        folder.mkdir(exist_ok=True)
        (folder / "package.json").write_text(json.dumps(_PORTKEY))
        try:
            command = ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund"]
            subprocess.check_call(command, stdout=subprocess.DEVNULL)
        except (OSError, subprocess.CalledProcessError) as error:
            raise Missing(f"npm's @portkey-ai/gateway cannot be installed: {error}") from error
    return package


_PORTKEY = {
    "dependencies": {"@portkey-ai/gateway": "^1.15.2"},
    # with the 1.19 that npm would choose, Portkey answers every streamed request with 500 ("TypeError: immutable")
    "overrides": {"@hono/node-server": "1.13.7"},
}


def versions(names: Sequence[str]) -> dict[str, str]:
    """Return the measured versions of the other gateways."""
    found = {}
    if NGINX in names:
        command = [str(_nginx(0, 0).command[0]), "-v"]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        found[NGINX] = said.rpartition("/")[2].strip()
    if LITELLM in names:
        code = "from importlib.metadata import version as v; print(v('litellm'))"
        command = [str(_litellm_venv() / "bin" / "python"), "-c", code]
        found[LITELLM] = subprocess.check_output(command, text=True).strip()
    if PORTKEY in names:
        found[PORTKEY] = json.loads((_portkey_package() / "package.json").read_text())["version"]
    return found
