# ledeline serve, for CPUs; docs/serve.md says how to run it.
FROM python:3.11-slim AS build

# A compiler for the engine; the final image has none.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*

RUN python -m venv /opt/ledeline
ENV PATH=/opt/ledeline/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /build

COPY pyproject.toml constraints.txt README.md ./
COPY src ./src
RUN pip install --constraint constraints.txt '.[serve]'


FROM python:3.11-slim

RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin ledeline
COPY --from=build /opt/ledeline /opt/ledeline
ENV PATH=/opt/ledeline/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1

USER 10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/ready', timeout=4)"]
ENTRYPOINT ["ledeline", "serve"]
CMD ["--host", "0.0.0.0"]
