# The service with the drivers of PostgreSQL and Redis: settings by environment variables, data in /data.
#   docker build -t toolserver . && docker run -p 8080:8080 -v toolserver:/data toolserver
FROM python:3.11-slim-bookworm AS build
WORKDIR /src
COPY constraints.txt requirements-server.txt ./
RUN python -m venv --without-pip /opt/toolserver \
    && pip --python /opt/toolserver/bin/python install --no-cache-dir --require-hashes --no-deps -r requirements-server.txt \
    && pip install --no-cache-dir --constraint constraints.txt hatchling editables
COPY . .
RUN pip wheel --no-cache-dir --no-build-isolation --no-deps --wheel-dir /wheels . \
    && pip --python /opt/toolserver/bin/python install --no-cache-dir --no-deps /wheels/*.whl

# What runs has neither pip nor a compiler; nobody but root can change it.
FROM python:3.11-slim-bookworm
RUN useradd --system --uid 10001 --user-group --no-create-home toolserver \
    && install --directory --owner toolserver --mode 0700 /data \
    && pip uninstall --yes --root-user-action ignore setuptools wheel pip
COPY --from=build /opt/toolserver /opt/toolserver
ENV PATH=/opt/toolserver/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    TOOLSERVER_HOST=0.0.0.0 \
    TOOLSERVER_DATA_DIR=/data \
    TOOLSERVER_METRICS__PORT=9464
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 8080 9464
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/readyz', timeout=4)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["toolserver"]
CMD ["serve", "--server", "uvicorn"]
