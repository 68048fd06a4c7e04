"""Logs, traces and metrics."""

from groundwire.telemetry.build import INSTALL as INSTALL
from groundwire.telemetry.build import build_telemetry as build_telemetry
from groundwire.telemetry.calls import UpstreamCall as UpstreamCall
from groundwire.telemetry.genai import short_hash as short_hash
from groundwire.telemetry.logs import configure_logs as configure_logs
from groundwire.telemetry.served import Served as Served
from groundwire.telemetry.telemetry import Telemetry as Telemetry
