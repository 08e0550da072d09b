# SPDX-License-Identifier: MIT
"""The handbook's settings for Sphinx; build.py says by the environment which tool draws and in which language."""
import logging
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))
from commands import Tool  # noqa: E402

language = {"en": "en", "zh": "zh_CN"}[os.environ["HANDBOOK_LANGUAGE"]]
posenc_tool = Tool(os.environ["HANDBOOK_TOOL"], os.environ["HANDBOOK_FIGURES"])
if language == "zh_CN":
    try:
        import jieba  # finds the words of a Chinese page for its search
        jieba.setLogLevel(logging.WARNING)
    except ImportError:
        pass
project, author = "posenc", "posenc"
html_title = {"en": "posenc handbook", "zh_CN": "posenc 手册"}[language]
extensions = ["myst_parser", "sphinx_copybutton", "posenc_handbook"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # pages of docs/ that skip a level
highlight_language = "none"
html_theme = "furo"
html_static_path = [str(HERE / "_static")]
html_css_files = ["handbook.css"]
html_show_copyright = html_show_sphinx = html_copy_source = html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True, "announcement": " "}  # posenc_handbook.py writes the link into it
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_copy_empty_lines = False
