"""Whether training encodings reveal the target of their own rows, from the scheme and by trials.

`report.py` has the public function.  `trials.py` encodes with other targets; `scores.py` measures how well a tree
predicts them, and `flips.py` finds the encodings that the change of one target changes.  `structure.py` reads the
scheme of our encoders, `risks.py` looks at the columns, and `verdicts.py` draws the conclusion.
"""

from gpu_encode.study.leaks.report import leak_report

__all__ = ["leak_report"]
