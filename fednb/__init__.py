"""fednb: four papers on federated learning with shifted features, side by side and reproducible.

import fednb
federation = fednb.load("shifted_digits")
study = fednb.Study(fednb.Recipe(algorithm="fedavg").vary(augmentations=[[], ["fedrdn"]]))
results = study.run()
"""

import importlib
import os

# Tensors of 2 MB and more on huge pages, where Linux lends them on request; torch reads this at its first tensor.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

_WHERE = {
    "check_parameters": "fednb.parameters",
    "load": "fednb.datasets",
    "notebook": "fednb.report.page",
    "methods_from": "fednb.registry",
    "Federation": "fednb.federation",
    "Site": "fednb.federation",
    "Split": "fednb.federation",
    "FederatedRun": "fednb.loop.loop",
    "Method": "fednb.methods.hooks",
    "Recipe": "fednb.recipe",
    "Store": "fednb.records.store",
    "Study": "fednb.study",
    "FednbError": "fednb.errors",
}
__all__ = sorted(_WHERE)
__version__ = "0.1.0"


def __getattr__(name: str):
    if name not in _WHERE:
        raise AttributeError(f"module fednb has no attribute {name!r}")
    return getattr(importlib.import_module(_WHERE[name]), name)


def __dir__():
    return sorted([*globals(), *__all__])
