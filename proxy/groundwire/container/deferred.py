"""Build the background jobs and the webhook for their results."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from groundwire.container.context import BuildContext
from groundwire.container.resources import ProcessResources
from groundwire.errors import ConfigError
from groundwire.gateway.checks import Checks
from groundwire.gateway.deferred import CHECK, EXAMINATION, WEBHOOK, DeferredQueue, traced
from groundwire.gateway.service import GroundingService
from groundwire.gateway.session import verify_deferred
from groundwire.storage.transact import JobStore, Work
from groundwire.upstream.webhook import Webhook


def build_deferred(
    context: BuildContext, service: GroundingService, checks: Checks, resources: ProcessResources
) -> DeferredQueue | None:
    """Build the job runner and its kinds of work, which use longer time-outs; None without a job store.

    Raises ConfigError when a secret is missing or invalid.
    """
    webhook, jobs = _webhook(context), context.settings.jobs
    if jobs.url is None:
        return None
    work = [_examination(context, service, webhook), _check(context, checks, webhook)]
    work += [_delivery(context, webhook)] if webhook else []
    store = JobStore(
        jobs.url,
        schema=jobs.database_schema,
        keep=jobs.keep,
        poll=jobs.poll,
        drain=jobs.drain,
        max_payload=jobs.max_payload,
    )
    return DeferredQueue(resources.jobs(store, work), service.reports, work)


def _examination(context: BuildContext, service: GroundingService, webhook: Webhook | None) -> Work:
    jobs = context.settings.jobs
    patient = replace(service, timeout=jobs.timeout / 2)
    return Work(
        EXAMINATION,
        traced(context.telemetry, EXAMINATION, partial(verify_deferred, patient)),
        attempts=jobs.attempts,
        timeout=jobs.timeout,
        at_once=jobs.at_once,
        then=WEBHOOK if webhook else None,
    )


def _check(context: BuildContext, checks: Checks, webhook: Webhook | None) -> Work:
    jobs = context.settings.jobs
    return Work(
        CHECK,
        traced(context.telemetry, CHECK, partial(checks.finish, seconds=jobs.timeout / 2)),
        attempts=jobs.attempts,
        timeout=jobs.timeout,
        at_once=jobs.at_once,
        then=WEBHOOK if webhook else None,
    )


def _delivery(context: BuildContext, webhook: Webhook) -> Work:
    attempts, timeout = context.settings.webhook.attempts, 2 * context.settings.webhook.timeout
    post = traced(context.telemetry, WEBHOOK, webhook.post)
    return Work(WEBHOOK, post, attempts, timeout, at_once=4, first_wait=5.0, longest_wait=3600.0)


def _webhook(context: BuildContext) -> Webhook | None:
    webhook = context.settings.webhook
    if webhook.url is None:
        return None
    secret = context.secret(webhook.secret_env, "webhook.secret_env")
    try:
        return Webhook(webhook.url, secret, context.transport, timeout=webhook.timeout, telemetry=context.telemetry)
    except ValueError as error:
        raise ConfigError([f"webhook.secret_env: {webhook.secret_env} holds no base64 behind whsec_"]) from error
