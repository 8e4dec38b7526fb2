# The image of docker-compose.yml: graphrun, and the application's own folders beside it. A project of yours replaces
# the COPY of the source by `pip install graphrun[postgres,flower]` and keeps the rest.
FROM python:3.12-slim

WORKDIR /app
COPY pyproject.toml README.md LICENSE ./
COPY graphrun graphrun
RUN pip install --no-cache-dir '.[postgres,flower]' && useradd --system --no-create-home graphrun

COPY config config
COPY tasks tasks
COPY examples examples

USER graphrun
CMD ["graphrun", "--help"]
