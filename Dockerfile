# HookViz as one image. From the top of the repository:
#   docker build -t hookviz --build-arg MODELS="resnet18 mobilenet_v2" .
#   docker run --rm -p 8501:8501 hookviz            then http://localhost:8501
# docs/hosting.md goes on from there. What changes seldom comes first, so that a build after a
# change of the code takes the packages from the cache.

FROM python:3.11-slim-bookworm AS packages
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
# pip stays outside: the environment that ships has no installer in it
RUN python -m venv --without-pip /opt/hookviz
COPY requirements.txt requirements.lock ./
RUN --mount=type=cache,target=/root/.cache/pip \
    pip --python /opt/hookviz install --require-hashes --no-deps --only-binary :all: \
      -r requirements.lock
# torch and torchvision come from PyTorch's own index, whose CPU wheels do without 4 GB of CUDA
# and are other files than PyPI's of the same version: hence no hashes for these two. For NVIDIA:
#   --build-arg TORCH_INDEX=https://download.pytorch.org/whl/cu130
# An empty TORCH_INDEX takes what pip's own index has. The packages' own tests and C headers stay
# behind.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN --mount=type=cache,target=/root/.cache/pip \
    grep -E '^torch(vision)?==' requirements.txt > torch.txt && \
    pip --python /opt/hookviz install --only-binary :all: \
      ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} -r torch.txt && \
    pip --python /opt/hookviz check && \
    find /opt/hookviz/lib -type d '(' -name tests -o -name include ')' -prune -exec rm -r {} +

# What is in the image, for whoever must know: a CycloneDX list of the Python packages.
FROM packages AS sbom
ARG CYCLONEDX=7.5.0
RUN --mount=type=cache,target=/root/.cache/pip \
    python -m venv --without-pip /opt/sbom && \
    pip --python /opt/sbom install "cyclonedx-bom==$CYCLONEDX" && \
    /opt/sbom/bin/cyclonedx-py environment --output-reproducible --of JSON \
      -o /sbom.cdx.json /opt/hookviz/bin/python

# The code, compiled here because nothing can be written where it runs.
FROM packages AS code
WORKDIR /app
COPY app.py ./
COPY .streamlit .streamlit
COPY assets assets
COPY hookviz hookviz
RUN /opt/hookviz/bin/python -m compileall -q --invalidation-mode unchecked-hash app.py hookviz

# Weights, downloaded once a machine and verified by the hash in their names. What can't be
# downloaded is left out, and the build's output says so.
FROM code AS weights
ARG MODELS=""
ARG WEIGHTS_URL=""
RUN --mount=type=cache,target=/downloads \
    mkdir -p /weights/hub/checkpoints && \
    if [ -n "$MODELS" ]; then \
      TORCH_HOME=/downloads /opt/hookviz/bin/python -m hookviz fetch --optional \
        ${WEIGHTS_URL:+--weights-url "$WEIGHTS_URL"} $MODELS && \
      TORCH_HOME=/downloads /opt/hookviz/bin/python -c "import shutil, sys; \
from hookviz.models import catalog; \
specs = map(catalog.find_model, sys.argv[1:]); \
files = [catalog.weights_path(spec.name) for spec in specs if spec.download_bytes]; \
[shutil.copyfile(file, '/weights/hub/checkpoints/' + file.name) for file in files \
if file.is_file()]" $MODELS && \
      TORCH_HOME=/weights /opt/hookviz/bin/python -m hookviz fetch --check; \
    fi

FROM python:3.11-slim-bookworm
LABEL org.opencontainers.image.title="HookViz" \
      org.opencontainers.image.description="See what a convolutional network computes" \
      org.opencontainers.image.licenses="MIT AND Apache-2.0"
# a fixed number, so that whoever mounts a folder knows whose it must be
RUN useradd --uid 10001 --user-group --create-home --shell /usr/sbin/nologin app
COPY --from=packages /opt/hookviz /opt/hookviz
COPY --from=sbom /sbom.cdx.json /opt/hookviz/sbom.cdx.json
COPY --from=weights --chown=10001:10001 /weights /home/app/.cache/torch
COPY --from=code /app /app
# Only /tmp and TORCH_HOME are ever written to: the rest may be read-only.
# Without a name of its own (browser.serverAddress) Streamlit asks a web service for the machine's
# public address at each start.
ENV PATH=/opt/hookviz/bin:$PATH \
    HOME=/home/app \
    TORCH_HOME=/home/app/.cache/torch \
    MPLCONFIGDIR=/tmp/matplotlib \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    STREAMLIT_SERVER_ADDRESS=0.0.0.0 \
    STREAMLIT_SERVER_PORT=8501 \
    STREAMLIT_BROWSER_SERVER_ADDRESS=localhost \
    STREAMLIT_BROWSER_GATHER_USAGE_STATS=false
WORKDIR /app
USER 10001:10001
EXPOSE 8501
STOPSIGNAL SIGTERM
# The path runs the page's script and captures with the engine; 503 where either fails. Python
# itself asks, because the image has no curl.
HEALTHCHECK --interval=30s --timeout=15s --start-period=60s --retries=3 \
  CMD ["python", "-I", "-c", "import urllib.request as web; web.urlopen('http://127.0.0.1:8501/health/deep', timeout=12)"]
# in this form the server itself is process 1, so that SIGTERM reaches it
CMD ["python", "-m", "streamlit", "run", "app.py"]
