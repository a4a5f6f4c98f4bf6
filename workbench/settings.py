"""All settings, from the environment with defaults that need nothing installed.

Embedded servers under `var/` stand in wherever `DATABASE_URL` or `CELERY_BROKER_URL` is not set.
"""

from pathlib import Path
from typing import Any

from django.utils.translation import gettext_lazy as _
from kombu import Queue

from workbench.embedded.paths import broker_socket, database_socket_directory, var_directory
from workbench.environment import Environment, check_var
from workbench.secret_key import load_secret_key

env = Environment()

BASE_DIR = Path(__file__).resolve().parent.parent
# Values of the environment win over those of the file.
if (BASE_DIR / ".env").is_file():
    Environment.read_env(BASE_DIR / ".env")

EMBEDDED_DATABASE = not env.str("DATABASE_URL", default="")
EMBEDDED_BROKER = not env.str("CELERY_BROKER_URL", default="")

# Everything the installation owns: embedded servers, harness repositories, logs, generated secrets.
VAR_DIR = check_var(var_directory())
# Bare git repositories of the harnesses; web and workers must share it.
REPOSITORIES_DIR = Path(env.str("REPOSITORIES_DIR", default=str(VAR_DIR / "repositories")))
# Uploads that wait to be imported; web and workers must share it.
IMPORTS_DIR = Path(env.str("IMPORTS_DIR", default=str(VAR_DIR / "imports")))
DEFAULT_HARNESS = env.str("DEFAULT_HARNESS", default="live_commerce")

DEBUG = env.bool("DEBUG", default=False)
SECRET_KEY = env.str("SECRET_KEY", default="") or load_secret_key(VAR_DIR)
# The loopback names always: health checks use them.
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", *env.list("ALLOWED_HOSTS", default=[])]
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_htmx",
    "template_partials",
    # For the files of its documentation page.
    "ninja",
    "django_celery_beat",
    "evolution",
    "workbench",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "workbench.middleware.ContentSecurityPolicyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "workbench.middleware.RefuseNulMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "workbench.middleware.SignInAgainMiddleware",
    # Sign-in is required everywhere unless a view says otherwise with `login_not_required`.
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "workbench.middleware.UnreadableRepositoryMiddleware",
]

ROOT_URLCONF = "workbench.urls"
WSGI_APPLICATION = "workbench.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

EMBEDDED_DATABASE_SETTINGS = {
    "ENGINE": "django.db.backends.postgresql",
    "NAME": "workbench",
    "USER": "workbench",
    "HOST": str(database_socket_directory(VAR_DIR)),
}
DATABASES: dict[str, dict[str, Any]] = {
    "default": EMBEDDED_DATABASE_SETTINGS if EMBEDDED_DATABASE else env.database("DATABASE_URL")
}
DATABASES["default"]["CONN_MAX_AGE"] = env.int("CONN_MAX_AGE", default=60)
DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"

LANGUAGE_CODE = env.str("LANGUAGE_CODE", default="en")
LANGUAGES = [("en", _("English")), ("zh-hans", _("Simplified Chinese"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = env.str("TIME_ZONE", default="UTC")
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = Path(env.str("STATIC_ROOT", default=str(VAR_DIR / "static")))
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
MEDIA_ROOT = VAR_DIR / "media"

# Behind TLS, set HTTPS=1; behind a proxy that sets X-Forwarded-Proto itself, TRUST_PROXY=1 too.
HTTPS = env.bool("HTTPS", default=False)
SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^healthz$"]
SECURE_HSTS_SECONDS = env.int("HSTS_SECONDS", default=31_536_000 if HTTPS else 0)
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
SECURE_HSTS_PRELOAD = HTTPS
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
if env.bool("TRUST_PROXY", default=False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
X_FRAME_OPTIONS = "DENY"

# A message is acknowledged when its task has ended, so a killed worker loses nothing: the broker hands it out again
# after the visibility time-out, and the sweep of leases in the database is quicker than that. A worker takes from
# the first queue as long as there is anything: what people wait for never stands behind an evaluation.
EMBEDDED_BROKER_URL = f"redis+socket://{broker_socket(VAR_DIR)}"
CELERY_BROKER_URL = EMBEDDED_BROKER_URL if EMBEDDED_BROKER else env.broker("CELERY_BROKER_URL")
CELERY_BROKER_TRANSPORT_OPTIONS = {
    # Seconds; above the longest task and the longest countdown.
    "visibility_timeout": env.int("CELERY_VISIBILITY_TIMEOUT", default=3600),
    "unacked_restore_interval": 10,
    "unacked_restore_throttle": False,
    "queue_order_strategy": "priority",
}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_DEFAULT_QUEUE = "workbench"
CELERY_TASK_QUEUES = [Queue("workbench"), Queue("evaluations")]
CELERY_TASK_ROUTES = {"evolution.run_evaluation": {"queue": "evaluations"}}
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_TIME_LIMIT = 3000
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
# On SIGQUIT (SIGTERM under REMAP_SIGTERM) running tasks get this long; what has not ended is handed out again.
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 5
CELERY_WORKER_ENABLE_SOFT_SHUTDOWN_ON_IDLE = False
# A task goes on while the broker is away; its message may be handed out twice then, which leases make harmless.
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_TIMEZONE = TIME_ZONE
CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"
CELERY_BEAT_SCHEDULE = {
    # Takes over what a killed worker left; cheap when there is nothing. A round that was missed is not made up for.
    "sweep": {"task": "evolution.sweep", "schedule": 15.0, "options": {"expires": 15}},
    # New cases are found by a search at once, and quickly once they are in its index.
    "index texts": {"task": "evolution.index_texts", "schedule": 10.0, "options": {"expires": 10}},
    # Traces that were pushed and are quiet now become cases.
    "assemble traces": {"task": "evolution.assemble_traces", "schedule": 5.0, "options": {"expires": 5}},
    # Commits that others put on the branches of proposals: in our repositories, and on their remotes.
    "follow branches": {"task": "evolution.follow_branches", "schedule": 30.0, "options": {"expires": 30}},
    "prune traces": {"task": "evolution.prune_traces", "schedule": 3600.0, "options": {"expires": 3600}},
}

# Of one push, packed and unpacked.
PUSH_MAX_BYTES = env.int("PUSH_MAX_BYTES", default=32 * 1024 * 1024)
# A trace is put together when no span has come for so many seconds, or the first one has waited so long; its spans are
# kept for a while after, as late ones come.
TRACE_QUIET_SECONDS = env.float("TRACE_QUIET_SECONDS", default=5.0)
TRACE_LONGEST_WAIT_SECONDS = env.float("TRACE_LONGEST_WAIT_SECONDS", default=60.0)
TRACE_KEPT_HOURS = env.float("TRACE_KEPT_HOURS", default=24.0)

# An OpenAI-compatible endpoint. Without one, the rehearsal model serves every role.
LLM_BASE_URL = env.str("LLM_BASE_URL", default="")
LLM_API_KEY = env.str("LLM_API_KEY", default="")
LLM_MODEL = env.str("LLM_MODEL", default="")
LLM_MODEL_POLICY = env.str("LLM_MODEL_POLICY", default="") or LLM_MODEL
LLM_MODEL_JUDGE = env.str("LLM_MODEL_JUDGE", default="") or LLM_MODEL
LLM_MODEL_DIAGNOSER = env.str("LLM_MODEL_DIAGNOSER", default="") or LLM_MODEL
LLM_MODEL_EDITOR = env.str("LLM_MODEL_EDITOR", default="") or LLM_MODEL
LLM_MODEL_USER = env.str("LLM_MODEL_USER", default="") or LLM_MODEL
# More endpoints, by role and with what they call a model; evolution/adapters/endpoints.py says what an entry holds.
LLM_ENDPOINTS = env.json_list("LLM_ENDPOINTS")
# Calls that all processes together have under way at LLM_BASE_URL, and begin per minute, and their tokens; 0 is no
# limit.
LLM_CONCURRENCY = env.int("LLM_CONCURRENCY", default=0)
LLM_REQUESTS_PER_MINUTE = env.int("LLM_REQUESTS_PER_MINUTE", default=0)
LLM_TOKENS_PER_MINUTE = env.int("LLM_TOKENS_PER_MINUTE", default=0)
# Whether each repeat is sent a seed of its own.
LLM_SEED = env.bool("LLM_SEED", default=True)
# Of one call from beginning to end, retries not counted; and of reaching the server.
LLM_TIMEOUT_SECONDS = env.float("LLM_TIMEOUT_SECONDS", default=60.0)
LLM_CONNECT_SECONDS = env.float("LLM_CONNECT_SECONDS", default=10.0)
# How often a call is tried again, and how long it waits in all while no endpoint takes calls.
LLM_MAX_RETRIES = env.int("LLM_MAX_RETRIES", default=4)
LLM_MAX_WAIT_SECONDS = env.float("LLM_MAX_WAIT_SECONDS", default=60.0)
# Tokens of cases and files that one diagnosis shows the model, as far as they can be estimated.
DIAGNOSIS_TOKENS = env.int("DIAGNOSIS_TOKENS", default=32_000)
# How many tokens of the harness's files the editor is shown; those that a change is about come in any case.
DRAFT_TOKENS = env.int("DRAFT_TOKENS", default=40_000)
# What models cost per million tokens, by the name that figures are recorded under:
# {"model": {"input": 2.5, "output": 10, "cached_input": 1.25}}. A model that is not there has no known price.
MODEL_PRICES = env.json_object("MODEL_PRICES")
MODEL_CURRENCY = env.str("MODEL_CURRENCY", default="") or "USD"
# Whether evaluations keep the answers of models and are answered from kept ones.
EVALUATION_CACHE = env.bool("EVALUATION_CACHE", default=True)
# Seconds that the rehearsal model waits before each answer, to rehearse long evaluations with.
REHEARSAL_DELAY_SECONDS = env.float("REHEARSAL_DELAY_SECONDS", default=0.0)

# What tools of harnesses may reach, which is nothing unless it stands here, since a model drafts them. Hosts: NAME or
# NAME:PORT for https, http://NAME:PORT without encryption. Commands that start MCP servers: a list of whole command
# lines. Secrets for headers, each with the hosts that may get it: evolution/adapters/tool_access.py has the form.
TOOL_HOSTS = env.list("TOOL_HOSTS", default=[])
TOOL_COMMANDS = env.json("TOOL_COMMANDS", default=[])
TOOL_SECRETS = env.json("TOOL_SECRETS", default={})
# Whether tools of the kinds http and mcp may reach the world in evaluations, as far as TOOL_HOSTS and its like go;
# else they answer from the cases' fixtures alone, and a measurement can be repeated.
EVALUATION_LIVE_TOOLS = env.bool("EVALUATION_LIVE_TOOLS", default=False)
# Where the repositories of harnesses are fetched from and pushed to, by harness name; evolution/adapters/remotes.py
# has the form. None by default: no harness reaches out.
HARNESS_REMOTES = env.json("HARNESS_REMOTES", default={})
# Seconds between two looks at the remotes of harnesses with proposals under review; 0 looks only when asked to.
REMOTE_FETCH_SECONDS = env.float("REMOTE_FETCH_SECONDS", default=300.0)
if REMOTE_FETCH_SECONDS:
    CELERY_BEAT_SCHEDULE["fetch branches"] = {
        "task": "evolution.fetch_branches",
        "schedule": REMOTE_FETCH_SECONDS,
        "options": {"expires": REMOTE_FETCH_SECONDS},
    }
# Cases of an evaluation that are under way at once, in all processes, where it does not say otherwise itself.
EVALUATION_CONCURRENCY = env.int("EVALUATION_CONCURRENCY", default=32)
# Tasks that are sent for an evaluation at the start; each of them works on as much of it as it can.
EVALUATION_TASKS = env.int("EVALUATION_TASKS", default=16)
# Seconds after which a task of an evaluation gives way to what else waits for a worker.
EVALUATION_TASK_SECONDS = env.float("EVALUATION_TASK_SECONDS", default=60.0)
# Seconds for which workers keep what they have made while the database is away.
EVALUATION_DATABASE_PATIENCE = env.float("EVALUATION_DATABASE_PATIENCE", default=120.0)
# How often what failed of an outage is tried again by itself before an evaluation ends with errors.
EVALUATION_RETRY_ROUNDS = env.int("EVALUATION_RETRY_ROUNDS", default=1)
# A worker renews its hold on a task of an evaluation three times as often; this long after it dies another takes over.
EVALUATION_LEASE_SECONDS = env.float("EVALUATION_LEASE_SECONDS", default=30.0)

# Empty: the multilingual encoder whose weights ship with its package. Else any sentence-transformers model.
EMBEDDING_MODEL = env.str("EMBEDDING_MODEL", default="")

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{levelname} {name}: {message}", "style": "{"}},
    "filters": {
        "rounds": {
            "()": "workbench.quiet_rounds.QuietRounds",
            "tasks": [entry["task"] for entry in CELERY_BEAT_SCHEDULE.values()],
        }
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": env.str("LOG_LEVEL", default="INFO")},
    "loggers": {
        # One line per request to a model is no news.
        "httpx2": {"level": "WARNING"},
        # Neither is what beat does every few seconds.
        "celery.beat": {"filters": ["rounds"]},
        "celery.worker.strategy": {"filters": ["rounds"]},
        "celery.app.trace": {"filters": ["rounds"]},
        "django.server": {"handlers": ["console"], "propagate": False},
    },
}
