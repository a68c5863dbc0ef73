"""A Sphinx extension: formulas as MathML, which every browser draws itself, without a script or a font of ours."""

import re

TAG = re.compile(r"\\tag\{(.*?)\}")


def setup(app) -> dict:
    """Sphinx calls this; ``html_math_renderer = "mathml"`` then uses it."""
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def mathml(latex: str, block: bool = False) -> str:
    """One formula as ``<math>``; its ``\\tag`` stands beside it. ValueError for LaTeX that is not understood."""
    from math_core import LatexError, LatexToMathML

    number = TAG.search(latex)
    try:
        made = LatexToMathML().convert_with_local_state(TAG.sub("", latex).strip(), displaystyle=block)
    except LatexError as error:
        raise ValueError(f"no formula: {latex!r} ({error}); write LaTeX of mathematics.") from error
    return made + (f'<span class="tag">({number[1]})</span>' if number else "")


def _inline(self, node) -> None:
    from docutils.nodes import SkipNode

    self.body.append(mathml(node.astext()))
    raise SkipNode


def _block(self, node) -> None:
    from docutils.nodes import SkipNode

    for formula in re.split(r"\n\s*\n", node.astext().strip()):
        self.body.append(f'<div class="formula">{mathml(formula, block=True)}</div>\n')
    raise SkipNode
