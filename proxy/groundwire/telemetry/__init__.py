"""Logs, traces and metrics."""

from proxy.telemetry.calls import UpstreamCall as UpstreamCall
from proxy.telemetry.content import short_hash as short_hash
from proxy.telemetry.export import build_telemetry as build_telemetry
from proxy.telemetry.logs import configure_logs as configure_logs
from proxy.telemetry.served import Served as Served
from proxy.telemetry.telemetry import Telemetry as Telemetry
