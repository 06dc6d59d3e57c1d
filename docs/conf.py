"""How the site is built: ``sphinx-build -W docs site``. Nothing is fetched; a broken link or an unlisted page fails."""

from pathlib import Path

from sphinx.application import Sphinx

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

REACHABLE = {
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    'class="caption" role="heading">': 'class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Pages">',
    '<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="On this page">',
    'id="furo-main-content">\n          \n<noscript>': 'id="furo-main-content">\n<h1>Search</h1>\n<noscript>',
}
"""What the theme leaves out: whatever scrolls is reached by keyboard, headings have levels, landmarks have names."""


def make_reachable(app: Sphinx, failure: Exception | None) -> None:
    """Puts it into the pages that were written."""
    for page in Path(app.outdir).glob("*.html") if failure is None else ():
        text = page.read_text(encoding="utf-8")
        for written, reachable in REACHABLE.items():
            text = text.replace(written, reachable)
        page.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Registers what is done after a build."""
    app.connect("build-finished", make_reachable)
