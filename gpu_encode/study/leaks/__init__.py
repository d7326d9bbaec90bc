"""Whether training encodings tell the target of their own rows: read off the scheme, and tried out.

`report.py` has the call; `trials.py` encodes under other targets; `scores.py` asks what a tree reads, `flips.py` what
single targets move; `structure.py` reads the scheme of our encoders, `risks.py` the columns; `verdicts.py` concludes.
"""

from gpu_encode.study.leaks.report import leak_report

__all__ = ["leak_report"]
