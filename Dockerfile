FROM python:3.11-slim AS environment

RUN python -m venv /opt/venv
COPY requirements.txt /tmp/
# PyTorch's default build for x86-64 brings gigabytes of CUDA: give PyTorch's CPU wheel index to leave it out.
ARG PIP_EXTRA_INDEX_URL=
RUN PIP_EXTRA_INDEX_URL="${PIP_EXTRA_INDEX_URL}" /opt/venv/bin/pip install --no-cache-dir -r /tmp/requirements.txt


FROM python:3.11-slim

# git runs the harness repositories.
RUN apt-get update \
    && apt-get install -y --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --create-home --uid 10001 workbench \
    && install -d -o workbench -g workbench /srv/workbench /srv/workbench/var /srv/workbench/var/repositories /srv/workbench/var/imports

COPY --from=environment /opt/venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    DJANGO_SETTINGS_MODULE=workbench.settings \
    STATIC_ROOT=/srv/workbench/static-collected

WORKDIR /srv/workbench
COPY --chown=workbench:workbench . .
USER workbench
# The key is only for this command; a container gets its own from the environment.
RUN SECRET_KEY=build python manage.py collectstatic --no-input

EXPOSE 8000
CMD ["gunicorn", "workbench.wsgi:application", "--bind", "0.0.0.0:8000", "--workers", "2", "--threads", "4", \
     "--preload", "--no-control-socket", "--worker-tmp-dir", "/dev/shm"]
