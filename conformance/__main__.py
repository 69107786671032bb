"""Tries the templates of a folder and compares what becomes of them with what is expected.

Exit code: 0 all is as expected, 1 something is not, 2 wrong usage.
"""

import argparse
import json
import logging
import sys
from pathlib import Path

from conformance import expected, report
from conformance.corpus import Corpus
from conformance.trial import trial

EPILOG = """
Examples:
  python -m conformance ../corpus
  python -m conformance ../corpus --only heat-templates/hot --json outcomes.json
  python -m conformance ../corpus --faults 1
  python -m conformance ../corpus --record          writes docs/reference/conformance.md
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m conformance", description=__doc__, epilog=EPILOG, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "corpus", type=Path, help="folder of templates; what is directly below it counts as repositories"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="only templates with TEXT in their paths")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every outcome there, one JSON object a line")
    parser.add_argument("--faults", type=int, metavar="SEED", help="on a cloud that often does not do as it is told")
    parser.add_argument(
        "--record", action="store_true", help=f"keep the summary in {report.RESULTS.name}, and write the page"
    )
    given = parser.parse_args()
    if not given.corpus.is_dir():
        parser.error(f"there is no folder {given.corpus}: name a folder of templates")
    if given.record and (given.only or given.faults is not None):
        parser.error("--record is for all templates on a good cloud: leave --only and --faults out")
    logging.basicConfig(level=logging.CRITICAL)
    entries = expected.by_path(expected.load())
    found = []
    for case in Corpus(given.corpus).cases(given.only):
        each = expected.judged(case, trial(case, given.faults), entries)
        found.append(each)
        if each.wrong:
            print(f"{case.path}: {each.wrong}", flush=True)
    if given.json is not None:
        lines = (json.dumps({**each.outcome.as_json(), "kind": each.kind, "wrong": each.wrong}) for each in found)
        given.json.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    summary = report.summary(found)
    if given.record:
        report.record(summary)
    print(report.table(summary))
    return 1 if any(each.wrong for each in found) else 0


if __name__ == "__main__":
    sys.exit(main())
