#!/usr/bin/env python
"""Django's command line; starts or shares the embedded servers when no real ones are configured."""

import os
import sys

from workbench.embedded.servers import needs_servers, share_servers
from workbench.embedded.tables import needs_tables, prepare_tables
from workbench.failures import explain_failure


def main() -> None:
    """Run one management command; what is wrong outside the program is said in a sentence, with exit code 1."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.settings")
    try:
        run()
    except Exception as error:
        sentence = None if "--traceback" in sys.argv else explain_failure(error)
        if sentence is None:
            raise
        sys.exit(f"error: {sentence}")


def run() -> None:
    """Run the command, with a database and a broker behind it for as long as it lasts."""
    from django.core.management import execute_from_command_line  # noqa: PLC0415  settings come first

    if not needs_servers(sys.argv):
        execute_from_command_line(sys.argv)
        return
    with share_servers():
        if needs_tables(sys.argv):
            prepare_tables()
        execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
