"""The harness in git: versions are commits, changes are branches, `main` is what is live."""
