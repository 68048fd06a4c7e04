"""Build the background jobs and the webhook for their results."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from groundwire.container.site import Site
from groundwire.errors import ConfigError
from groundwire.gateway.checks import Checks
from groundwire.gateway.deferred import CHECK, EXAMINATION, WEBHOOK, DeferredQueue, traced
from groundwire.gateway.service import GroundingService
from groundwire.gateway.session import verify_deferred
from groundwire.storage.jobs.jobs import Jobs
from groundwire.storage.jobs.work import JobStore, Work
from groundwire.upstream.webhook import Webhook


def build_later(site: Site, service: GroundingService, checks: Checks) -> DeferredQueue | None:
    """Build the job runner and its kinds of work, which use longer time-outs; None without a job store.

    Raises ConfigError when a secret is missing or invalid.
    """
    webhook, jobs = _webhook(site), site.settings.jobs
    if jobs.url is None:
        return None
    work = [_examination(site, service, webhook), _check(site, checks, webhook)]
    work += [_telling(site, webhook)] if webhook else []
    store = JobStore(
        jobs.url,
        schema=jobs.database_schema,
        keep=jobs.keep,
        poll=jobs.poll,
        drain=jobs.drain,
        max_payload=jobs.max_payload,
    )
    runner = site.estate.take(lambda old: old.later.jobs if old.later else None, lambda: Jobs(store, work))
    return DeferredQueue(runner, service.reports, work)


def _examination(site: Site, service: GroundingService, webhook: Webhook | None) -> Work:
    jobs = site.settings.jobs
    patient = replace(service, timeout=jobs.timeout / 2)
    return Work(
        EXAMINATION,
        traced(site.telemetry, EXAMINATION, partial(verify_deferred, patient)),
        attempts=jobs.attempts,
        timeout=jobs.timeout,
        at_once=jobs.at_once,
        then=WEBHOOK if webhook else None,
    )


def _check(site: Site, checks: Checks, webhook: Webhook | None) -> Work:
    jobs = site.settings.jobs
    return Work(
        CHECK,
        traced(site.telemetry, CHECK, partial(checks.finish, seconds=jobs.timeout / 2)),
        attempts=jobs.attempts,
        timeout=jobs.timeout,
        at_once=jobs.at_once,
        then=WEBHOOK if webhook else None,
    )


def _telling(site: Site, webhook: Webhook) -> Work:
    attempts, timeout = site.settings.webhook.attempts, 2 * site.settings.webhook.timeout
    post = traced(site.telemetry, WEBHOOK, webhook.post)
    return Work(WEBHOOK, post, attempts, timeout, at_once=4, first_wait=5.0, longest_wait=3600.0)


def _webhook(site: Site) -> Webhook | None:
    webhook = site.settings.webhook
    if webhook.url is None:
        return None
    secret = site.secret(webhook.secret_env, "webhook.secret_env")
    try:
        return Webhook(webhook.url, secret, site.transport, timeout=webhook.timeout, telemetry=site.telemetry)
    except ValueError as error:
        raise ConfigError([f"webhook.secret_env: {webhook.secret_env} holds no base64 behind whsec_"]) from error
