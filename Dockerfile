# The server with everything that PDF books need. Mount the project at /project:
#   docker build -t local-vector-search-mcp .
#   docker run --rm -i --user "$(id -u):$(id -g)" -v "$PWD:/project" local-vector-search-mcp
FROM python:3.11-slim-bookworm AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN python -m pip wheel --no-cache-dir --wheel-dir /wheels .

FROM python:3.11-slim-bookworm
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0 fonts-dejavu-core fonts-noto-core \
    && rm -rf /var/lib/apt/lists/*
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    python -m pip install --no-cache-dir --no-index --find-links /wheels local-vector-search-mcp \
    && useradd --create-home --uid 1000 user
USER user
WORKDIR /project
ENTRYPOINT ["local-vector-search-mcp"]
