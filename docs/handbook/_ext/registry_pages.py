# SPDX-License-Identifier: MIT
"""A page for each encoding of the registry, in both languages: what `posenc list NAME --json` says, and commands.

A new encoding gets its page without a line here. The registry's texts in Chinese are those of two catalogues: the
explorer's, src/explore/zh.po, and the report's, src/train/report/zh.po. Texts that both lack stay in English.
"""
import os
import re
import subprocess
from urllib.parse import quote

from commands import ROOT

PLACES = ("input", "rotary", "score", "weight")
INDICES = {"input": 2, "rotary": 1, "score": 3, "weight": 3}  # of a worked number
# What a picture wants beside the name, so that it takes seconds; the first of these that an encoding has is drawn.
PICTURES = {"bias": "", "heatmap": "", "decay": " --content ones --theta many", "factors": "", "buckets": "", "hierarchy": "",
            "wavelengths": "", "pair": ""}
SECOND = ("buckets", "wavelengths", "curves", "hierarchy")
# Settings for sixteen tokens, where the defaults are for more, or for a grid.
SMALL = {"swin": "window=4x4", "swin_v2": "window=4x4", "absolute_distance": "grid=4x4", "decomposed": "grid=4x4",
         "sinusoidal2d": "height=4,width=4", "hierarchical": "rows=4"}

WORDS = {
    "en": {
        "all": "All encodings", "place": "Place", "paper": "Paper", "models": "Models", "sees": "Scores see",
        "beyond": "Beyond the trained length", "causal": "Needs a causal mask", "yes": "yes", "learns": "Learns", "nothing": "nothing",
        "formula": "Formula",
        "settings": "Settings", "setting": "setting", "takes": "takes", "default": "default", "meaning": "meaning",
        "types": {}, "absent": "absent", "none": "It has no settings of its own.", "common": "Those of every encoding: [](common.md).",
        "params": "Parameters", "param": "parameter", "shape": "shape", "init": "initial values", "trained": "trained",
        "no": "no", "noparams": "It has no parameters.", "tokens": "Token inputs", "token": "input", "channels": "channels", "of": "one for each",
        "query": "query", "key": "key", "tokensnote": "The model makes them from its hidden states: [B, H or G or 1, L, channels], beside q, k and v.",
        "picture": "Picture",
        "drawn": "What an encoding learns is drawn untrained; parameters that start at zero are drawn from N(0,1).",
        "nopicture": "No picture: what it adds depends on the content as well.",
        "measured": "Measured", "rules": "The formulas and rules behind the verdicts: [](../reference/properties.md).",
        "worked": "Worked numbers", "given": "settings, sizes", "value": "value", "source": "source",
        "at": {"input": "position, channel", "rotary": "pair", "score": "head, query, key", "weight": "head, query, key"},
        "workednote": {"input": "The value in one channel of a row.", "rotary": "The frequency of a pair, in radians per position.",
                       "score": "The bias of one query and key (counted from 0, zero vectors).",
                       "weight": "The factor of one query and key (counted from 0)."},
        "workedparams": "Trained parameters hold 0, 1, 2, ... here. The tests hold the library to each number.", "used": "Published models", "model": "model",
        "length": "length", "spec": "SPEC", "code": "In C", "python": "In Python",
        "explore": "Play with it in the explorer", "numbers": "Every letter, and the formula with numbers:",
        "intro": "Every encoding of the registry, in the order of `posenc list`: a page each, with formula, settings, picture, "
                 "measured properties, worked numbers, models and snippets. The pages are made from the registry. "
                 "To choose one: [](../howto/chooser.md). To play with all: {site}`the explorer <explore.html>`.",
        "commonintro": "Every encoding also takes these settings; written as the others, in brackets: `rope[softcap=50]`.",
        "commontitle": "Settings of every encoding", "placename": {p: p for p in PLACES},
        "trying": "Three sizes are small here, so that the program is short; the calls are those of a real one."},
    "zh": {
        "all": "全部编码", "place": "作用位置", "paper": "论文", "models": "使用的模型", "sees": "分数能看到",
        "beyond": "超出训练长度之后", "causal": "需要因果掩码", "yes": "是", "learns": "学习的参数", "nothing": "无",
        "formula": "公式",
        "settings": "设置", "setting": "设置", "takes": "取值", "default": "默认值", "meaning": "含义",
        "types": {"integer": "整数", "real": "实数", "list": "整数列表"}, "absent": "不设", "none": "它没有自己的设置。", "common": "所有编码共有的设置：[](common.md)。",
        "params": "参数", "param": "参数", "shape": "形状", "init": "初始值", "trained": "参与训练",
        "no": "否", "noparams": "它没有参数。", "tokens": "词元输入", "token": "输入", "channels": "通道数", "of": "每个……一份",
        "query": "查询", "key": "键", "tokensnote": "由模型从隐藏状态算出，与 q、k、v 一同给出：[B, H 或 G 或 1, L, 通道数]。",
        "picture": "图像",
        "drawn": "需要学习的编码按未训练的状态画出；初始为零的参数改从 N(0,1) 抽取。",
        "nopicture": "没有图像：它加上的量还取决于内容。",
        "measured": "测得的性质", "rules": "判定所依据的公式与规则见英文页 {en}`properties <reference/properties>`。",
        "worked": "算例", "given": "设置与尺寸", "value": "值", "source": "出处",
        "at": {"input": "位置，通道", "rotary": "通道对", "score": "头，查询，键", "weight": "头，查询，键"},
        "workednote": {"input": "某一行在某个通道上的值。", "rotary": "某一对通道的频率，单位是弧度每位置。",
                       "score": "某个查询与某个键之间的偏置（从 0 数起，向量全为零）。",
                       "weight": "某个查询与某个键之间的因子（从 0 数起）。"},
        "workedparams": "参与训练的参数在这里依次取 0, 1, 2, ……。测试逐一核对这些数值。", "used": "已发布的模型", "model": "模型",
        "length": "长度", "spec": "SPEC", "code": "C 代码", "python": "Python 代码",
        "explore": "在互动页里动手试", "letter": "字母", "numbers": "把数值代入公式（工具的输出是英文）：",
        "intro": "注册表中的全部编码，顺序与 `posenc list` 相同。每种一页：公式、设置、图像、测得的性质、算例、"
                 "使用的模型和代码片段。这些页面由注册表生成。要挑一种，见[](../howto/chooser.md)；"
                 "想动手试，打开{site}`互动页 <explore.html#&lang=zh>`。",
        "commonintro": "每种编码还接受下列设置；写法与其他设置一样，放在方括号里：`rope[softcap=50]`。",
        "commontitle": "所有编码共有的设置", "placename": {"input": "输入", "rotary": "旋转", "score": "分数", "weight": "权重"},
        "trying": "为了简短，这里的尺寸都很小；调用方式与真实程序相同。"}}


CATALOGUES = ("src/train/report/zh.po", "src/explore/zh.po")


def rows(path):
    """[(msgid, msgstr)] of a catalogue whose rows have a line for each."""
    plain = lambda text: re.sub(r"\\(.)", r"\1", text)
    return [(plain(a), plain(b)) for a, b in re.findall(r'^msgid "(.+)"\nmsgstr "(.*)"$', (ROOT / path).read_text(), re.M)]


def speaker(lang):
    """A function that says a text of the registry in this language: one without a row stays in English."""
    known = {a: b for path in CATALOGUES for a, b in rows(path)} if lang == "zh" else {}
    return lambda text: known.get(text, text)


def cell(text):
    return re.sub(r"([|*_<>\[\]{}$\\`])", r"\\\1", str(text)).replace("\n", " ")


def table(heads, rows):
    out = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join(out + ["| " + " | ".join(row) + " |" for row in rows])


def paper(text):
    return re.sub(r"arXiv:(\d+\.\d+)", r"[arXiv:\1](https://arxiv.org/abs/\1)", text)


def takes(s, w):
    """What a setting may be: its words, or a kind of number and its bounds."""
    limits = s["range"] or ""
    if s["type"] in ("word", "flag", "map"):
        return cell(limits.replace("|", ", "))
    low, _, high = limits.partition("..")
    if low.endswith("<"):
        bounds = f"> {low[:-1]}" + (f", ≤ {high}" if high else "")
    else:
        bounds = f"{low} … {high}" if high else f"≥ {low}" if low else ""
    return f"{w['types'].get(s['type'], s['type'])} {cell(bounds)}".strip()


def settings(rows, w, say):
    return table([w[k] for k in ("setting", "takes", "default", "meaning")],
                 [(f"`{s['name']}`", takes(s, w), w["absent"] if s["default"] in (None, "") else cell(s["default"]),
                   cell(say(s["meaning"]))) for s in rows])


def letters(tool, name, w, say):
    """What the letters of its formula mean. In English the tool prints that beside the numbers."""
    shown = next(v["symbols"] for v in tool.json("explain", name).values() if "symbols" in v)
    def meaning(text):
        chosen = re.fullmatch("setting (.+?) = (.+?): (.+)", text)
        return f"设置 {chosen[1]} = {chosen[2]}：{say(chosen[3])}" if chosen else say(text)
    return table([w["letter"], w["meaning"]], [(f"{{f}}`{s['symbol']}`", cell(meaning(s["meaning"]))) for s in shown])


def spec(e):
    return f"{e['name']}[{SMALL[e['name']]}]" if e["name"] in SMALL else e["name"]


def c_snippet(e):
    """A whole program, so that the tests can run it; parameters only where there are any."""
    has = bool(e["params"])
    params = ", .params = params" if has else ""
    head = """#include <posenc/posenc.h>
#include <stdio.h>
#include <stdlib.h>

"""
    sizes = "enum { H = 4, L = 16, D = 16 };\n"
    make = """    posenc_encoding  *e;
    posenc_plan      *plan;
    posenc_workspace  work;
    posenc_error      err;
    if (posenc_encoding_create(&e, "%s", NULL, &err) ||
        posenc_plan_create(&plan, e, &dims, %s, &err) ||
        posenc_workspace_create(&work, plan, %s, NULL, &err))
        return fprintf(stderr, "%%s\\n", err.message), 1;
"""
    init = """
    const int      count  = posenc_param_count(e);
    posenc_tensor *params = calloc((size_t)count + 1, sizeof *params);
    for (int i = 0; i < count; i++) { /* room for each; filled below */
        int64_t shape[POSENC_MAX_DIMS], n = 1;
        int32_t ndim;
        if (posenc_param_shape(e, &dims, i, &ndim, shape, &err))
            return fprintf(stderr, "%s\\n", err.message), 1;
        for (int axis = 0; axis < ndim; axis++)
            n *= shape[axis];
        params[i] = posenc_tensor_contiguous(malloc((size_t)n * sizeof(float)), POSENC_DTYPE_F32,
                                             ndim, shape);
    }
    if (posenc_param_init(e, &dims, params, 0, &err))
        return fprintf(stderr, "%s\\n", err.message), 1;
""" if has else ""
    tail = """
    if (%s)
        return fprintf(stderr, "%%s\\n", err.message), 1;
    printf("%%g\\n", %s);
%s    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
    return 0;
}
"""
    release = "    for (int i = 0; i < count; i++)\n        free(params[i].data);\n    free(params);\n" if has else ""
    dims = "    const posenc_dims dims = {.B = 1, .H = H, .Lq = L, .Lk = L, .D = D};\n"
    if e["place"] == "input":
        width = "    const int64_t    width = posenc_rows_width(plan), shape[] = {1, L, width};\n" \
                "    float           *rows  = calloc((size_t)(L * width), sizeof *rows);\n" \
                "    posenc_tensor    y     = posenc_tensor_contiguous(rows, POSENC_DTYPE_F32, 3, shape);\n"
        where = "posenc_positions_range(0, 1)"
        if e["name"] == "complex_order":
            width += "    static int64_t   at[L][2]; /* (id of the word, position) */\n" \
                     "    const int64_t    ids[] = {1, L, 2};\n" \
                     "    for (int i = 0; i < L; i++)\n        at[i][0] = 7, at[i][1] = i;\n"
            where = "posenc_positions_array(posenc_tensor_contiguous(at, POSENC_DTYPE_I64, 3, ids))"
        run = f"    const posenc_rows_in in = {{.size = sizeof in, .pos = {where}{params}}};"
        body = make % (spec(e), "NULL", "POSENC_RUN_ROWS") + init + "\n" + width + run
        return head + sizes + "\nint main(void)\n{\n" + dims + body + tail % (
            "posenc_rows(plan, &in, &y, &work, &err)", "rows[width]", release + "    free(rows);\n")
    needed = [t for t in e["tokens"] if t["needed"]]
    if needed:
        head = head.replace("\n", "\n#include <posenc/registry.h>\n", 1)  # of posenc_token_shape
        params += ", .tokens = tokens"
        init += """
    posenc_tensor tokens[%d]; /* what the model makes of its hidden states */
    for (int i = 0; i < posenc_token_count(e); i++) {
        int64_t shape[4], n;
        if (posenc_token_shape(e, &dims, i, shape, &err))
            return fprintf(stderr, "%%s\\n", err.message), 1;
        n = shape[0] * shape[1] * shape[2] * shape[3];
        float *numbers = malloc((size_t)n * sizeof *numbers);
        for (int64_t j = 0; j < n; j++)
            numbers[j] = (float)(j %% 5) / 5;
        tokens[i] = posenc_tensor_contiguous(numbers, POSENC_DTYPE_F32, 4, shape);
    }
""" % len(needed)
        release += "    for (int i = 0; i < posenc_token_count(e); i++)\n        free(tokens[i].data);\n"
    data = "static float q[H * L * D], k[H * L * D], v[H * L * D], o[H * L * D];\n"
    fill = """    const int64_t     shape[] = {1, H, L, D};
    posenc_tensor     Q = posenc_tensor_contiguous(q, POSENC_DTYPE_F32, 4, shape), K = Q, V = Q, O = Q;
    K.data = k, V.data = v, O.data = o;
    for (int i = 0; i < H * L * D; i++)
        q[i] = k[i] = (float)(i % 7) / 7, v[i] = (float)(i / D % L);
"""
    options = "&options" if e["causal_only"] else "NULL"
    mask = "    posenc_options    options = posenc_options_default();\n    options.mask = POSENC_MASK_CAUSAL;\n" if e["causal_only"] else ""
    run = f"    const posenc_attend_in  in  = {{.size = sizeof in, .q = Q, .k = K, .v = V{params}}};\n" \
          "    const posenc_attend_out out = {.size = sizeof out, .o = O};"
    return head + sizes + data + "\nint main(void)\n{\n" + dims + fill + mask \
        + make % (spec(e), options, "POSENC_RUN_ATTEND") + init + "\n" + run + tail % (
            "posenc_attend(plan, &in, &out, &work, &err)", "o[0]", release)


def python_snippet(e):
    name = spec(e)
    if e["place"] == "input":
        lines = ["import posenc", "", f'e = posenc.Encoding("{name}")']
        arguments = "range(16), 64"
        if e["name"] == "complex_order":
            arguments = "[[7, p] for p in range(16)], 32"  # (id of the word, position)
        width = 32 if e["name"] == "complex_order" else 64
        params = f", params=e.init(d_model={width}, L=16)" if e["params"] else ""
        return "\n".join(lines + [f"rows = posenc.encode(e, {arguments}{params})", "print(rows.shape)"])
    lines = ["import numpy as np, posenc", "", f'e = posenc.Encoding("{name}")',
             'q, k, v = np.random.default_rng(0).standard_normal((3, 1, 4, 16, 16)).astype("float32")  # [B,H,L,D]']
    if e["place"] == "rotary":
        lines.append("rotated_q, rotated_k = posenc.rotate(q, k, e)")
    causal = ", causal=True" if e["causal_only"] else ""
    params = ", params=e.init(H=4, D=16, L=16)" if e["params"] else ""
    needed = {t["name"]: next((s["default"] for s in e["settings"] if s["name"] == t["channels"]), t["channels"]) for t in e["tokens"] if t["needed"]}
    if needed:
        # "D", the width of a head, is 16 here, and its rows have unit length, as path's must
        each = ", ".join(f'"{name}": np.full((1, 4, 16, {16 if n == "D" else n}), {0.25 if n == "D" else 1}, "float32")' for name, n in needed.items())
        lines.append(f"tokens = {{{each}}}  # [B,H,L,channels]: what the model makes of its hidden states")
        params += ", tokens=tokens"
    return "\n".join(lines + [f"o = posenc.attend(q, k, v, e{causal}{params})", "print(o.shape)"])


def picture(e):
    kinds = [k for k in PICTURES if k in e["pictures"]][:1]
    kinds += [k for k in SECOND if k in e["pictures"] and k not in kinds][:1]
    return [f"```{{posenc}} plot {k} {e['name']}{PICTURES.get(k, '')}\n```\n" for k in kinds]


def page(e, lang, say, models, learns, tool):
    w = WORDS[lang]
    facts = [(w["place"], f"{w['placename'][e['place']]}" + (f" (`{e['place']}`)" if lang == "zh" else "")),
             (w["paper"], paper(say(e["paper"]))), (w["models"], cell(say(e["models"] or "-"))),
             (w["learns"], w["nothing"] if learns == "nothing" else cell(learns)),
             (w["sees"], say(e["scores_see"])), (w["beyond"], say(e["beyond"]))]
    if e["causal_only"]:
        facts.append((w["causal"], w["yes"]))
    out = [f"# {cell(e['name'])}: {say(e['title'])}\n",
           "\n".join(f"- **{a}**{'：' if lang == 'zh' else ': '}{b}" for a, b in facts) + "\n",
           f"**{{site}}`{w['explore']} <explore.html#{quote(e['name'])}{'&lang=zh' if lang == 'zh' else ''}>`** "
           f"(`posenc explore {e['name']} -o page.html`)\n",
           f"## {w['formula']}\n", "```{formula}\n" + e["formula"] + "\n```\n",
           *([letters(tool, e["name"], w, say) + "\n"] if "letter" in w else []),
           w["numbers"] + "\n", f"```{{posenc}} explain {e['name']}\n```\n",
           f"## {w['settings']}\n", settings(e["settings"], w, say) if e["settings"] else w["none"], "\n" + w["common"] + "\n",
           f"## {w['params']}\n"]
    if e["params"]:
        out += [table([w[k] for k in ("param", "shape", "init", "trained", "meaning")],
                      [(f"`{p['name']}`", f"[{cell(p['shape'])}]", cell(say(p["init"])), w["yes"] if p["trainable"] else w["no"],
                        cell(say(p["meaning"]))) for p in e["params"]]), ""]
    else:
        out.append(w["noparams"] + "\n")
    if e["tokens"]:
        out += [f"## {w['tokens']}\n", w["tokensnote"] + "\n",
                table([w[k] for k in ("token", "channels", "of", "meaning")],
                      [(f"`{t['name']}`", cell(t["channels"]), w[t["of"]], cell(say(t["meaning"]))) for t in e["tokens"]]), ""]
    drawn = picture(e)
    out += [f"## {w['picture']}\n", *(drawn or [w["nopicture"] + "\n"])]
    if drawn and any(p["trainable"] for p in e["params"]):
        out.append(w["drawn"] + "\n")
    out += [f"## {w['measured']}\n", f"```{{posenc}} properties {e['name']}\n```\n", w["rules"] + "\n"]
    if e["examples"]:
        out += [f"## {w['worked']}\n",
                w["workednote"][e["place"]] + " " + w["workedparams"] + "\n",
                table([w["given"], w["at"][e["place"]], w["value"], w["source"]],
                      [(cell(x["settings"]) or "-", ", ".join(f"{i:g}" for i in x["at"][:INDICES[e["place"]]]), f"{x['value']:.10g}", cell(say(x["source"])))
                       for x in e["examples"]]), ""]
    if models:
        out += [f"## {w['used']}\n",
                table([w[k] for k in ("model", "length", "spec", "source")],
                      [(cell(m["model"]), str(m["length"] or "-"), f"`{m['spec']}`", cell(m["source"])) for m in models]), ""]
    out += [f"## {w['code']}\n", "```c\n" + c_snippet(e) + "```\n", w["trying"] + "\n",
            f"## {w['python']}\n", "```python\n" + python_snippet(e) + "\n```\n"]
    return "\n".join(out)


def write(tool, folder, lang):
    w, say = WORDS[lang], speaker(lang)
    folder.mkdir(parents=True)
    entries, models = tool.json("list"), {}
    wide = subprocess.run([tool.path, "list"], check=True, capture_output=True, text=True, env=dict(os.environ, COLUMNS="400")).stdout
    learns = dict(re.findall(r"^(\w+) +(?:input|rotary|score|weight) +learns ([^;\n]+)", wide, re.M))  # with default settings
    for m in tool.json("list", "--models"):
        for part in re.sub(r"\[.*?\]", "", m["spec"]).split("+"):
            models.setdefault(part, []).append(m)
    for e in entries:
        (folder / f"{e['name']}.md").write_text(page(e, lang, say, models.get(e["name"], []), learns[e["name"]], tool))
    (folder / "common.md").write_text(f"# {w['commontitle']}\n\n{w['commonintro']}\n\n" + settings(entries[0]["common_settings"], w, say) + "\n")
    rows = [(f"[{cell(e['name'])}]({e['name']}.md)", w["placename"][e["place"]],
             say(e["title"]), cell(say(e["models"] or "-"))) for e in entries]
    heads = [{"en": "encoding", "zh": "编码"}[lang], w["place"].lower(), {"en": "what it is", "zh": "是什么"}[lang], w["models"].lower()]
    names = "\n".join(f"{e['name']} <{e['name']}>" for e in entries)
    (folder / "index.md").write_text(f"# {w['all']}\n\n{w['intro']}\n\n{table(heads, rows)}\n\n"
                                     f"```{{toctree}}\n:hidden:\n\n{names}\ncommon\n```\n")
