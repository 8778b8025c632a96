"""``python3 -s -m workers.agent``: the supervisor of a task container's agents."""

from __future__ import annotations

import sys

from workers.agent.supervisor import main

sys.exit(main())
