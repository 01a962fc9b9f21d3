"""How the documentation is built: `python -m sphinx -W -b html docs docs/_build/html`, with the package importable.

Pages need no network when read: mathematics becomes MathML here, and nothing is loaded from another host. Code cells
run at every build, and an error in one of them fails it.
"""

import importlib
import sys
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert

import tpr_attention

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "tpr-attention"
release = version = tpr_attention.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "equations", "explorer_page"]
exclude_patterns = ["_build", "jupyter_execute"]
default_role = "py:obj"
smartquotes = False

html_theme = "furo"
html_title = f"tpr-attention {release}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_copyright = False

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
myst_update_mathjax = False
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_output_stderr = "warn"
nb_render_markdown_format = "myst"  # tables that cells make

autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
autodoc_preserve_defaults = True
add_module_names = False
# What a page refers to by its full name exists. Types of other libraries and names of arguments are no links.
nitpicky = True
nitpick_ignore_regex = [("py:class", ".*"), ("py:obj", r"(?!tpr_attention\.).*")]
toc_object_entries_show_parents = "hide"
python_maximum_signature_line_length = 88
python_trailing_comma_in_multi_line_signatures = False
python_use_unqualified_type_names = True


def visit_math(translator, node):
    """LaTeX to MathML, which browsers draw themselves."""
    block = isinstance(node, nodes.math_block)
    mathml = convert(node.astext(), display="block" if block else "inline")
    translator.body.append(f'<div class="math">{mathml}</div>' if block else mathml)
    raise nodes.SkipNode


PUBLIC = (
    "functional",
    "functional.action",
    "nn",
    "generators",
    "tasks",
    "tasks.task",
    "tasks.composition",
    "tasks.composition.sprites",
    "models",
    "models.build",
    "models.contract",
)
# Of these, only entry points are in the reference.
CHOSEN = ("models.composition", "models.images", "tasks.images", "training", "runner", "report", "studies")


def check_api_is_complete(app, env):
    """Every public name, and nothing else, is in the reference; members of classes are not counted."""
    entries = env.domaindata["py"]["objects"].items()
    kinds = ("function", "class", "exception", "data", "type")
    found = {name for name, entry in entries if entry.objtype in kinds and not entry.aliased}
    chosen = tuple(f"tpr_attention.{name}." for name in CHOSEN)
    documented = {name for name in found if not name.startswith(chosen)}
    modules = [importlib.import_module(f"tpr_attention.{name}") for name in PUBLIC]
    public = {f"{module.__name__}.{name}" for module in modules for name in module.__all__}
    if documented != public:
        raise ValueError(f"api.md: expected exactly the public names, differs in {sorted(documented ^ public)}")


def setup(app):
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
    app.connect("env-check-consistency", check_api_is_complete)
