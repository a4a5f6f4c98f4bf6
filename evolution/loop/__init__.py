"""The loop, one module per stage. A stage takes its adapters as arguments, and knows no task and no page.

    cases ----------> clusters ----------> diagnosis ----------> proposals
      ^  imports,        embed, group,        sample, ask,          edit on a branch,
      |  evaluations     recognise            verify quotes         manifest; people confirm
      |                                                                  |
      |                                                                  v
    promotion <------ regressions <--------------------------------- evaluation
      merge, release,    flips, verdict                              base and candidate,
      roll back, stop                                                every (case, repeat) once

Beside the stages: `repositories` opens a harness's git repository, `runners` says which agent is measured, `datasets`
imports known cases, `masking` takes personal data and secrets out of failures, and `jobs` keeps the progress of long
work.
"""
