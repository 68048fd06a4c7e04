"""A chat page that streams answers and colours their claims when the report arrives with the last event.

`python examples/streaming_chat/server.py` runs offline, with the demo model behind the proxy, at the address that it
prints. Set GROUNDWIRE_URL and MODEL to use a proxy of yours. Needs nothing but groundwire.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import nullcontext
from pathlib import Path

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Route

from groundwire.demo.model import MODEL, SCENARIOS
from groundwire.demo.show import demo_proxy

SYSTEM = SCENARIOS[0].messages[0]  # the documents: here those of the demo's handbook


def build_app(base_url: str, model: str) -> Starlette:
    """Build the application: the page, and its questions with the documents, passed on to the proxy."""

    async def page(_: Request) -> Response:
        return FileResponse(Path(__file__).with_name("index.html"))

    async def chat(request: Request) -> Response:
        question = (await request.json())["question"]
        body = {
            "model": model,
            "messages": [SYSTEM, {"role": "user", "content": question}],
            "stream": True,
            "grounding": {"offset_unit": "utf16"},  # as JavaScript counts
        }
        return StreamingResponse(_events(base_url, body), media_type="text/event-stream")

    return Starlette(routes=[Route("/", page), Route("/chat", chat, methods=["POST"])])


async def _events(base_url: str, body: dict[str, object]) -> AsyncIterator[bytes]:
    async with httpx.AsyncClient(timeout=120) as client:
        headers = {"authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', 'none')}"}
        async with client.stream("POST", f"{base_url}/chat/completions", json=body, headers=headers) as response:
            async for chunk in response.aiter_raw():
                yield chunk


if __name__ == "__main__":
    given = os.environ.get("GROUNDWIRE_URL")
    with nullcontext(given) if given else demo_proxy(pace=0.05) as url:
        port = int(os.environ.get("PORT", "8000"))
        print(f"Open http://127.0.0.1:{port}. Press Ctrl+C to stop.", flush=True)
        uvicorn.run(build_app(url, os.environ.get("MODEL", MODEL)), port=port, log_level="warning")
