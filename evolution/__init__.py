"""The loop: failure cases become reviewed, measured, reversible harness versions. No HTTP, no HTML."""
