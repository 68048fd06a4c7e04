"""Helpers for other libraries; each module but `sdk` needs the library that it is named after."""

from groundwire.integrations.sdk import GroundingStream as GroundingStream
from groundwire.integrations.sdk import grounding_of as grounding_of
from groundwire.integrations.sdk import grounding_of_async as grounding_of_async
