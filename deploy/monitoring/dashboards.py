"""Writes the dashboards; a test fails while the files differ from what this would write.

Run ``.venv/bin/python -m deploy.monitoring.dashboards`` after a change. Every expression is run
against a real Prometheus by ``tests/monitoring``.
"""

from __future__ import annotations

from pathlib import Path

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from deploy.monitoring.panels import (
    CAUSE_LINK,
    CONDITION_LINK,
    REPORT_LINK,
    SWEEP_LINK,
    bars,
    board,
    chart,
    figure,
    rows,
)

FOLDER = Path(__file__).parent / "grafana" / "dashboards"
S = 'sweep="$sweep"'
BAD = ((1.0, "orange"),)
WORSE = ((1.0, "red"),)


def recent(counter: str, labels: str = "") -> str:
    """What a counter has counted lately; see the head of the recording rules."""
    one = f"{counter}{{{labels}}}" if labels else counter
    return f"(({one} - {one} offset 10m >= 0) or {one})"


def quantile(share: float, histogram: str, by: str, labels: str = "") -> str:
    """A quantile of what a histogram has counted since its process began."""
    return f"histogram_quantile({share}, sum by ({by}, le) ({histogram}_bucket{{{labels}}})) >= 0"


def sweep() -> dashboard.Dashboard:
    """Is the sweep healthy, and is a bad number the model's or ours?"""
    made = board(
        "apiary-sweep",
        "Apiary / Sweep",
        "Is the sweep healthy, and is a bad number the model's or ours?",
        of_sweep=True,
    )

    def blamed(who: str) -> str:
        return f'sum(apiary:failures:count{{{S}, blame="{who}"}}) or vector(0)'

    for panel in (
        figure(
            "Progress", "Settled of all attempts.", f"apiary_sweep_progress_ratio{{{S}}}",
            unit="percentunit", link=SWEEP_LINK,
        ),
        figure(
            "Time left", "At the rate of the last minute.", f"apiary_sweep_eta_seconds{{{S}}}",
            unit="s",
        ),
        figure(
            "Rate", "Attempts settled a minute.", f"apiary_sweep_attempts_per_minute{{{S}}}"
        ),
        figure(
            "Lowest coverage", "Of any condition: attempts with a verdict of those settled.",
            f"min(apiary_coverage_ratio{{{S}}})", unit="percentunit",
            steps=((0.0, "red"), (0.9, "green")), link=REPORT_LINK,
        ),
        figure(
            "Budget spent", "The largest of the budget's figures; empty: there is no budget.",
            f"apiary_sweep_budget_ratio{{{S}}}", unit="percentunit",
            steps=((0.9, "orange"), (1.0, "red")),
        ),
        figure(
            "Nodes at work", "That take trials.", f'apiary_nodes{{{S}, state="serving"}}',
            steps=((0.0, "red"), (1.0, "green")),
        ),
        figure(
            "The model's failures", "Settled attempts; they are scored.", blamed("model"),
            steps=((1.0, "blue"),), link=SWEEP_LINK,
        ),
        figure(
            "The harness' failures", "Attempts given up; ours to mend, and no statement about "
            "the model.", blamed("harness"), steps=WORSE, link=SWEEP_LINK,
        ),
        figure(
            "Providers' failures", "Attempts given up because an endpoint failed.",
            blamed("provider"), steps=BAD, link=SWEEP_LINK,
        ),
        figure(
            "Tasks' failures", "Attempts given up because a verifier failed.", blamed("task"),
            steps=BAD, link=SWEEP_LINK,
        ),
        figure(
            "Unclassified", "Failures that nobody understood: a bug of Apiary's.",
            blamed("unclassified"), steps=WORSE, link=SWEEP_LINK,
        ),
        figure(
            "Leases expired", "That ended without their node's word, under this driver.",
            f"apiary_leases_expired_total{{{S}}}", steps=BAD,
        ),
        chart(
            "Failures by cause", "Settled attempts that are no pass, stacked: whose doing it was.",
            (f"sum by (blame, cause) (apiary:failures:count{{{S}}})", "{{blame}}: {{cause}}"),
            stacked=True, link=CAUSE_LINK,
        ),
        chart(
            "Tries by blame", "Every try that ended under this driver, those that were tried "
            "again too.",
            (f"sum by (blame) (apiary_tries_total{{{S}}})", "{{blame}}"),
            stacked=True,
        ),
        chart(
            "Blame of the last ten minutes", "Share of the tries that ended; above 10 % of the "
            "harness' or 20 % of providers' an alert fires.",
            (f'apiary:tries_recent:share{{{S}, blame!="none"}}', "{{blame}}"),
            unit="percentunit", most=1,
        ),
        chart(
            "Attempts by state", "Each attempt is in exactly one.",
            (f"sum by (state) (apiary_queue_attempts{{{S}}})", "{{state}}"),
            stacked=True, link=SWEEP_LINK,
        ),
        bars(
            "Verdicts by condition", "Settled attempts.",
            (
                f'sum by (condition, verdict) (apiary_attempts{{{S}, state=~"committed|dead"}})',
                "{{condition}}: {{verdict}}",
            ),
            link=CONDITION_LINK,
        ),
        chart(
            "Coverage", "Attempts with a verdict of those settled; below the gate the report has "
            "bounds in place of a headline.",
            (f"apiary_coverage_ratio{{{S}}}", "{{condition}}"),
            (f"apiary_coverage_gate_ratio{{{S}}}", "the gate"),
            unit="percentunit", most=1, link=REPORT_LINK,
        ),
        chart(
            "Verdicts under this driver", "Commits since it began.",
            (f"sum by (verdict) (apiary_trials_total{{{S}}})", "{{verdict}}"),
        ),
        chart(
            "Time of a try", "Over all phases, since the driver began.",
            (quantile(0.5, "apiary_trial_seconds", "sweep", S), "median"),
            (quantile(0.95, "apiary_trial_seconds", "sweep", S), "95 %"),
            unit="s",
        ),
        rows(
            "Failures by task", "Settled attempts that are no pass, the most first.",
            f"topk(50, sum by (condition, task, blame, cause) (apiary_attempts{{{S}, "
            'state=~"committed|dead", blame!~"|none"}))',
            link=SWEEP_LINK,
        ),
    ):  # fmt: skip
        made.with_panel(panel)
    return made


def models() -> dashboard.Dashboard:
    """What the models do, what they cost, and how their endpoints bear it."""
    made = board(
        "apiary-models",
        "Apiary / Models",
        "Pass rates with intervals, cost, tokens, latency and throttling.",
        of_sweep=True,
    )
    for panel in (
        chart(
            "Pass rate", "Of the attempts with a verdict, with Wilson's interval at 95 %. It takes "
            "attempts as independent; the report clusters them by task.",
            (f"apiary:pass_rate:low{{{S}}}", "{{condition}}: low"),
            (f"apiary:pass_rate:ratio{{{S}}}", "{{condition}}"),
            (f"apiary:pass_rate:high{{{S}}}", "{{condition}}: high"),
            unit="percentunit", most=1, link=CONDITION_LINK,
        ),
        bars(
            "Score", "Mean of the workflow tasks' rates, over settled attempts. Strict: what is "
            "invalid counts as failed.",
            (f"apiary_score{{{S}}}", "{{condition}}: {{rule}}"),
            unit="percentunit", link=REPORT_LINK,
        ),
        chart(
            "Cost by condition", "Of ended tries under this driver, where usage is known.",
            (f"apiary_sweep_cost_usd_total{{{S}}}", "{{condition}}"), unit="currencyUSD",
        ),
        chart(
            "Cost by endpoint", "Of all requests of the sweep's nodes that are there.",
            (f"sum by (endpoint) (apiary_model_cost_usd_total{{{S}}})", "{{endpoint}}"),
            unit="currencyUSD",
        ),
        chart(
            "Tokens", "As providers report them, by all of the sweep's nodes that are there.",
            (
                f"sum by (endpoint, kind) (apiary_model_tokens_total{{{S}}})",
                "{{endpoint}}: {{kind}}",
            ),
        ),
        chart(
            "Requests of the last ten minutes", "By how they ended.",
            (
                f"sum by (endpoint, result) (apiary:model_requests_recent:count{{{S}}}) > 0",
                "{{endpoint}}: {{result}}",
            ),
            stacked=True,
        ),
        chart(
            "Latency, median", "Of forwarded requests of the last ten minutes.",
            (f"apiary:model_latency_seconds:p50{{{S}}}", "{{endpoint}}"), unit="s",
        ),
        chart(
            "Latency, 95 %", "Of forwarded requests of the last ten minutes.",
            (f"apiary:model_latency_seconds:p95{{{S}}}", "{{endpoint}}"), unit="s",
        ),
        chart(
            "Throttled", "Share of the requests of the last ten minutes that the rate limit "
            "refused; above 20 % an alert fires.",
            (f"apiary:model_throttled:share{{{S}}}", "{{endpoint}}"), unit="percentunit", most=1,
        ),
        chart(
            "Permits", "Requests that may be under way, lent to all nodes; empty: no account is "
            "limited.",
            (f"sum by (endpoint) (apiary_model_permits{{{S}}})", "{{endpoint}}"),
        ),
        chart(
            "Parked endpoints", "1 while an endpoint is down and what uses it waits.",
            (f"apiary_endpoint_parked{{{S}}}", "{{endpoint}}"), most=1,
        ),
    ):  # fmt: skip
        made.with_panel(panel)
    return made


def cluster() -> dashboard.Dashboard:
    """The machines: what they run, and where the time goes."""
    made = board(
        "apiary-cluster",
        "Apiary / Cluster",
        "Nodes, slots, containers, phase times, image builds and the store.",
        of_sweep=True,
    )
    for panel in (
        chart(
            "Nodes", "As the driver has them.",
            (f"apiary_nodes{{{S}}}", "{{state}}"), stacked=True,
        ),
        chart(
            "Trials and slots", "What runs, and what may run at once.",
            (f"sum by (node) (apiary_trials_running{{{S}}})", "{{node}}: running"),
            (f"sum by (node) (apiary_slots{{{S}}})", "{{node}}: slots"),
        ),
        chart(
            "Slots in use", "Of each node.", (f"apiary:slots_used:ratio{{{S}}}", "{{node}}"),
            unit="percentunit", most=1,
        ),
        chart(
            "Containers", "Started and not removed.",
            (f"sum by (node) (apiary_containers{{{S}}})", "{{node}}"),
        ),
        chart(
            "Phases of a try, median", "Since the driver began.",
            (f"apiary:phase_seconds:p50{{{S}}}", "{{phase}}"), unit="s",
        ),
        chart(
            "Phases of a try, 95 %", "Since the driver began.",
            (f"apiary:phase_seconds:p95{{{S}}}", "{{phase}}"), unit="s",
        ),
        chart(
            "Container engine, 95 %", "Time of one request of the last ten minutes.",
            (f"apiary:container_op_seconds:p95{{{S}}}", "{{op}}"), unit="s",
        ),
        chart(
            "Image builds", "Count and mean time since the node began.",
            (f"sum by (node) (apiary_image_build_seconds_count{{{S}}})", "{{node}}: builds"),
            (
                f"sum by (node) (apiary_image_build_seconds_sum{{{S}}}) "
                f"/ (sum by (node) (apiary_image_build_seconds_count{{{S}}}) > 0)",
                "{{node}}: mean seconds",
            ),
        ),
        chart(
            "Store, 95 %", "Time of one call of the last ten minutes.",
            (f"apiary:store_op_seconds:p95{{{S}}}", "{{op}}"), unit="s",
        ),
        chart(
            "Store errors", "Of the last ten minutes; above 5 an alert fires.",
            (f"apiary:store_errors_recent:count{{{S}}}", "{{node}}"),
        ),
        chart(
            "Events at the relays", "Of the last ten minutes, by whether they were accepted.",
            (
                f"sum by (node, accepted) ({recent('apiary_relay_events_total', S)})",
                "{{node}}: accepted {{accepted}}",
            ),
        ),
        chart(
            "Connections to the relays", "Open now.",
            (f"sum by (node) (apiary_relay_connections{{{S}}})", "{{node}}"),
        ),
        chart(
            "Disk free", "Where the node's trials write; below 10 GB an alert fires.",
            (f"min by (node) (apiary_disk_free_bytes{{{S}}})", "{{node}}"), unit="bytes",
        ),
        chart(
            "Reaped", "Things of dead runs that were removed, since the node began.",
            (f"sum by (node, kind) (apiary_reaped_total{{{S}}})", "{{node}}: {{kind}}"),
        ),
        rows(
            "What runs", "Version and Python of every node.",
            f"max by (node, instance, version, python) (apiary_build_info{{{S}}})", width=12,
        ),
        rows(
            "Scraped", "1: driver or node answers Prometheus.",
            'max by (role, node, sweep, instance) (up{job="apiary"})', width=12,
        ),
    ):  # fmt: skip
        made.with_panel(panel)
    return made


def trends() -> dashboard.Dashboard:
    """From run to run of a timetable."""
    made = board(
        "apiary-trends",
        "Apiary / Trends",
        "Series of scheduled sweeps: are they on time, and is anything worse than before?",
        of_sweep=False,
    ).time("now-90d", "now")
    for panel in (
        bars(
            "Since the last success", "A bar of more than one and a quarter periods is late.",
            (
                "(time() - apiary_schedule_last_success_timestamp_seconds) "
                "/ apiary_schedule_period_seconds",
                "{{series}}",
            ),
            unit="percentunit",
        ),
        bars(
            "Regressions", "Behaviours of the last run that are worse than in the baseline.",
            ("apiary_series_regressions", "{{series}}"), link=("The runs", "${serve}/"),
        ),
        chart(
            "Pass rate", "Of each run, by condition.",
            ("apiary_series_pass_ratio", "{{series}}: {{condition}}"),
            unit="percentunit", most=1, width=24, link=("The runs", "${serve}/"),
        ),
        chart(
            "Regressions over time", "Against the baseline of each run.",
            ("apiary_series_regressions", "{{series}}"),
        ),
        chart(
            "Lateness over time", "Since the last success, in periods.",
            (
                "(time() - apiary_schedule_last_success_timestamp_seconds) "
                "/ apiary_schedule_period_seconds",
                "{{series}}",
            ),
        ),
    ):  # fmt: skip
        made.with_panel(panel)
    return made


BOARDS = {"sweep": sweep, "models": models, "cluster": cluster, "trends": trends}


def text(name: str) -> str:
    """The content of a dashboard's file."""
    made = BOARDS[name]().build()
    for number, panel in enumerate(made.panels or (), 1):
        panel.id_val = number  # type: ignore[union-attr]  # there are no rows among them
    return JSONEncoder(sort_keys=True, indent=1).encode(made) + "\n"


def main() -> None:
    """Writes all of them."""
    for name in BOARDS:
        (FOLDER / f"{name}.json").write_text(text(name), "utf-8")


if __name__ == "__main__":
    main()
