"""The interface of a model server, independent of its dialect."""

from __future__ import annotations

from typing import Protocol

from groundwire.wire import Call, Reply


class Upstream(Protocol):
    """A model server. `provider` is its name in OpenTelemetry's GenAI conventions."""

    @property
    def name(self) -> str:
        """The name in the settings."""

    @property
    def provider(self) -> str:
        """The name of the API that it implements."""

    @property
    def forwards_documents(self) -> bool:
        """True if it understands a `documents` field."""

    @property
    def truncation_alarm(self) -> bool:
        """True if its reported prompt tokens show whether it read the whole prompt."""

    @property
    def is_ollama(self) -> bool:
        """True if it takes native calls, those of Ollama's own API."""

    async def send(self, call: Call) -> Reply:
        """Send one call. Any response of the model server is a Reply, also an error.

        Raises UpstreamUnreachable, UpstreamTimeout or UpstreamBroken when there is no answer; the chunks of a reply
        that breaks off raise UpstreamBroken or UpstreamTimeout. Cancelling the call, or closing the chunks, ends it
        upstream.
        """

    async def aclose(self) -> None:
        """Close its connections."""
