"""How the site is built: ``sphinx-build -W docs site``. Nothing is fetched; a broken link or an unlisted page fails."""

project = "evaluatorq"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = "evaluatorq"
html_copy_source = False
html_show_sphinx = html_show_copyright = False
html_theme_options = {"light_css_variables": {"color-brand-primary": "#0b57b0", "color-brand-content": "#0b57b0"}}
myst_heading_anchors = 3
nitpicky = True
