"""Every test runs with the shapes of all signatures checked, by the import hook of jaxtyping."""

from jaxtyping import install_import_hook

install_import_hook("tpr_attention", "beartype.beartype")
