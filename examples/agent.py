#!/usr/bin/env python3
"""What a server of examples/rollout.yaml runs: an agent that reads its configuration, applies it, and reports.

Where to read is in its user data; where to report, the handle of a wait condition, the template fills in.
"""

import http.server
import json
import os
import threading
import time
import urllib.request

HANDLE = json.loads(r"""$signal""")["alarm_url"]
ID = os.environ["HOMEOSTAT_SERVER_ID"]  # elsewhere: `uuid` of http://169.254.169.254/openstack/latest/meta_data.json
NUMBER = int(os.environ["HOMEOSTAT_NAME"].rpartition("-")[2])
POLL_S = 0.5
state = {"number": NUMBER, "release": None, "share": None, "at": 0.0, "seen": [], "failed": []}


def read(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


def apply(config):
    """Take over a configuration; the weight of this server is that of its place among five."""
    weights = [int(each) for each in config["weights"]]
    state["seen"].append(config["release"])
    state.update(release=config["release"], share=None, at=time.time())
    state["share"] = sum(weights) / weights[NUMBER % len(weights)]


def report(status, reason):
    body = json.dumps({"id": ID, "data": ID, "status": status, "reason": reason}).encode()
    request = urllib.request.Request(HANDLE, body, {"Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=10).read()


def follow():
    """Read again and again, apply what is new, and report it; what could not be reported is tried again."""
    with open(os.path.join(os.environ["HOMEOSTAT_FILES"], "cfn-init-data")) as file:
        url = json.load(file)["os-collect-config"]["request"]["metadata_url"]
    done = None
    while True:
        try:
            found = read(url)
            config = {name: found[name] for name in ("release", "weights")}
            if config != done:
                try:
                    apply(config)
                except (ArithmeticError, ValueError) as error:
                    state["failed"].append({"release": config["release"], "at": time.time()})
                    report("FAILURE", f"release {config['release']}: {error}")
                else:
                    report("SUCCESS", f"serves release {config['release']}")
                done = config
        except OSError as error:
            print(f"tried again: {error}", flush=True)
        time.sleep(POLL_S)


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        page = json.dumps(state).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_):
        """Each look at it would fill the console."""


threading.Thread(target=follow, daemon=True).start()
http.server.ThreadingHTTPServer((os.environ["HOMEOSTAT_ADDRESS"], 8000), Page).serve_forever()
