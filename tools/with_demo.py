"""Run a command while the proxy serves the demo model; the base URL is in the variable GROUNDWIRE_URL."""

from __future__ import annotations

import os
import subprocess
import sys

from groundwire.demo.show import demo_proxy

if __name__ == "__main__":
    with demo_proxy() as url:
        done = subprocess.run(sys.argv[1:], env=os.environ | {"GROUNDWIRE_URL": url}, check=False)  # noqa: S603
    sys.exit(done.returncode)
