"""What gunicorn serves."""

import os
from importlib import import_module

from django.conf import settings
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.settings")

application = get_wsgi_application()
# Django loads the pages at the first request; here it is before gunicorn forks, so its workers share them.
import_module(settings.ROOT_URLCONF)
# Heavy, so commands and workers do without; the board needs them.
for _name in ("scipy.stats", "statsmodels.stats.proportion"):
    import_module(_name)
