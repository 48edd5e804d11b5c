# SPDX-License-Identifier: MIT
"""What PyTorch did beside a mark of ours, for people: at most 80 columns, to be put into the report of ./bench train."""
from textwrap import fill

from children import figures


def paragraph(text):
    return fill(text, 80, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False) + "\n"


def line(row, peer):
    s = {name: 1e3 * value for name, value in peer["seconds"].items()}
    between = f"{figures(s['least'])} - {figures(s['most'])}"
    sentences = figures(row["sentences"] / peer["seconds"]["median"])
    return (f"{peer['label']:18}{figures(s['median']):>9}{between:>18}{peer['tokens_per_second']:>9.0f}{sentences:>9}"
            f"{figures(peer['ratio']):>7}{peer['peak_bytes'] / 2**20:>9.0f}\n")


def said(row, peer):
    """Its settings, and what it computes."""
    label, ours, theirs = peer["label"], row["ours"]["check"], peer["check"]
    out = paragraph(f"{label} {peer['version']} ({peer['python']}): {peer['settings']}")
    if not peer["agrees"]:
        out += paragraph(f"warning: {label} does NOT compute the same, see --json")
    pairs = (f"{name} {ours[key]:.5f} {theirs[key]:.5f}"
             for name, key in (("loss", "loss"), ("norm", "norm"), ("after an update", "next")))
    out += paragraph(f"without dropout, ours and {label}: {', '.join(pairs)}")
    if row["device"] == "cpu":
        out += f"page faults a step, {label}: {peer['faults_per_step']:.0f}\n"
    return out


def summary(rows):
    """A line for each mark; nothing for one that is not there whole."""
    if len(rows) < 2:
        return ""
    out = f"\n{'tokens a second':22}{'ours':>9}  {'beside':27}{'ratio':>8}{'floor, %':>12}\n"
    for row in filter(lambda row: row["complete"], rows):
        share = f"{100 * row['floor']['share_of_step']:>12.0f}\n"
        ours = f"{row['mark']:16}{row['precision']:6}{row['ours']['tokens_per_second']:9.0f}  "
        for peer in row["peers"]:
            out += f"{ours}{peer['label']:18}{peer['tokens_per_second']:9.0f}{figures(peer['ratio']):>8}{share}"
        if not row["peers"]:
            out += f"{ours}{'':35}{share}"
    return out
