"""What a model server is to the rest of the house, whichever dialect it speaks."""

from __future__ import annotations

from typing import Protocol

from proxy.types import Call, Reply


class Upstream(Protocol):
    """A model server. `provider` is its name in OpenTelemetry's GenAI conventions."""

    @property
    def name(self) -> str:
        """Its name in the settings."""

    @property
    def provider(self) -> str:
        """Whose API it speaks."""

    @property
    def forwards_documents(self) -> bool:
        """Whether it understands a `documents` field."""

    @property
    def truncation_alarm(self) -> bool:
        """Whether the prompt tokens that it reports tell if it read the whole prompt."""

    @property
    def is_ollama(self) -> bool:
        """Whether it takes native calls, those of Ollama's own API."""

    async def send(self, call: Call) -> Reply:
        """Sends one call on. Whatever the model server answers is a Reply, also an error of its own.

        Raises UpstreamUnreachable, UpstreamTimeout or UpstreamBroken when there is no answer; the chunks of a reply
        that breaks off raise UpstreamBroken or UpstreamTimeout. Cancelling it, or closing the chunks, ends the call
        upstream.
        """

    async def aclose(self) -> None:
        """Closes its connections."""
