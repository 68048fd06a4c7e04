"""Logs, traces and metrics."""

from groundwire.telemetry.requests import RequestRecord as RequestRecord
from groundwire.telemetry.requests import UpstreamCall as UpstreamCall
from groundwire.telemetry.requests import short_hash as short_hash
from groundwire.telemetry.telemetry import INSTALL as INSTALL
from groundwire.telemetry.telemetry import Telemetry as Telemetry
from groundwire.telemetry.telemetry import build_telemetry as build_telemetry
from groundwire.telemetry.telemetry import configure_logs as configure_logs
