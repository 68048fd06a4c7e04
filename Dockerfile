# syntax=docker/dockerfile:1
FROM python:3.13-slim AS build
RUN pip install --no-cache-dir 'uv>=0.5'
WORKDIR /app
ENV UV_LINK_MODE=copy UV_COMPILE_BYTECODE=1
COPY pyproject.toml uv.lock README.md LICENSE NOTICE ./
RUN uv sync --frozen --no-dev --extra all --no-install-project
COPY proxy ./proxy
RUN uv sync --frozen --no-dev --extra all --no-editable

FROM python:3.13-slim
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin groundwire \
    && install --directory --owner=10001 --group=10001 /var/lib/groundwire
COPY --from=build /app/.venv /app/.venv
COPY config.yaml /etc/groundwire/config.yaml
ENV PATH=/app/.venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1 GROUNDWIRE_SERVER__HOST=0.0.0.0
USER 10001
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=3s --start-period=10s CMD ["python", "-c", \
  "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/healthz', timeout=2)"]
# Nothing is written but what the settings name, for which /var/lib/groundwire is there as a place for a volume. The root
# file system can be read-only: docker run --read-only
ENTRYPOINT ["groundwire"]
CMD ["serve", "--config", "/etc/groundwire/config.yaml"]
