"""The kinds of panels that the dashboards are made of, and what all dashboards have in common."""

from __future__ import annotations

from typing import TypeVar

from grafana_foundation_sdk.builders import (
    bargauge,
    common,
    dashboard,
    prometheus,
    stat,
    table,
    timeseries,
)
from grafana_foundation_sdk.models.common import (
    GraphDrawStyle,
    LegendDisplayMode,
    LegendPlacement,
    SortOrder,
    StackingMode,
    TooltipDisplayMode,
    VizOrientation,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardLinkType,
    DataSourceRef,
    DataTransformerConfig,
    Threshold,
    ThresholdsMode,
    VariableHide,
    VariableRefresh,
    VariableSort,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
SWEEP_PAGE = "${serve}/sweeps/${sweep}"
"""Of ``apiary serve``: the sweep with its attempts, from each of which its evidence is reached."""

Query = tuple[str, str]
"""An expression, and what its series are called in the legend."""
Link = tuple[str, str]
"""A title and an address."""

SWEEP_LINK: Link = ("The sweep's attempts", SWEEP_PAGE)
REPORT_LINK: Link = ("The report", f"{SWEEP_PAGE}/report")
CAUSE_LINK: Link = ("Attempts with this cause", f"{SWEEP_PAGE}?cause=${{__field.labels.cause}}")
CONDITION_LINK: Link = (
    "Attempts of this condition",
    f"{SWEEP_PAGE}?condition=${{__field.labels.condition}}",
)

P = TypeVar("P", timeseries.Panel, stat.Panel, table.Panel, bargauge.Panel)


def chart(
    title: str,
    help_text: str,
    *queries: Query,
    unit: str = "short",
    stacked: bool = False,
    width: int = 12,
    most: float | None = None,
    link: Link | None = None,
) -> timeseries.Panel:
    """Values over time; ``stacked`` where they add up to something."""
    made = timeseries.Panel().legend(
        common.VizLegendOptions()
        .display_mode(LegendDisplayMode.TABLE)
        .placement(LegendPlacement.BOTTOM)
        .show_legend(True)
        .calcs(["lastNotNull"])
    )
    made.tooltip(
        common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING)
    )
    made.min(0)
    if most is not None:
        made.max(most)
    if stacked:
        made.stacking(common.StackingConfig().mode(StackingMode.NORMAL)).fill_opacity(40)
    made.draw_style(GraphDrawStyle.LINE).line_width(1)
    return _filled(made, title, help_text, queries, unit, width, 8, link)


def figure(
    title: str,
    help_text: str,
    query: str,
    *,
    unit: str = "short",
    width: int = 4,
    steps: tuple[tuple[float, str], ...] = (),
    link: Link | None = None,
) -> stat.Panel:
    """One number as it is now; ``steps`` are values and the colour from each on."""
    made = stat.Panel().reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    made.thresholds(_steps(steps))
    return _filled(made, title, help_text, ((query, ""),), unit, width, 4, link)


def bars(
    title: str,
    help_text: str,
    *queries: Query,
    unit: str = "short",
    width: int = 12,
    link: Link | None = None,
) -> bargauge.Panel:
    """Values as they are now, side by side."""
    made = bargauge.Panel().orientation(VizOrientation.HORIZONTAL)
    made.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"])).min(0)
    return _filled(made, title, help_text, queries, unit, width, 8, link)


def rows(
    title: str,
    help_text: str,
    query: str,
    *,
    hide: tuple[str, ...] = (),
    unit: str = "short",
    width: int = 24,
    link: Link | None = None,
) -> table.Panel:
    """Series as they are now, a row each."""
    made = table.Panel().with_transformation(
        DataTransformerConfig(
            id_val="organize",
            options={"excludeByName": dict.fromkeys(("Time", *hide), True)},
        )
    )
    made.sort_by([common.TableSortByFieldState().display_name("Value").desc(True)])
    return _filled(made, title, help_text, ((query, ""),), unit, width, 8, link, as_table=True)


def board(uid: str, title: str, help_text: str, *, of_sweep: bool) -> dashboard.Dashboard:
    """An empty dashboard; ``of_sweep``: it shows one sweep at a time."""
    made = dashboard.Dashboard(title).uid(uid).description(help_text).tags(["apiary"]).editable()
    made.refresh("10s").time("now-1h", "now").timezone("browser")
    made.with_variable(
        dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus")
    )
    if of_sweep:
        made.with_variable(
            dashboard.QueryVariable("sweep")
            .label("Sweep")
            .datasource(SOURCE)
            .query("label_values(apiary_sweep_progress_ratio, sweep)")
            .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
            .sort(VariableSort.ALPHABETICAL_DESC)
        )
    made.with_variable(
        dashboard.TextBoxVariable("serve")
        .label("apiary serve")
        .description("Where `apiary serve` shows sweeps, attempts and their evidence.")
        .default_value("http://localhost:8420")
        .hide(VariableHide.DONT_HIDE)
    )
    made.link(
        dashboard.DashboardLink("Apiary")
        .type(DashboardLinkType.DASHBOARDS)
        .tags(["apiary"])
        .as_dropdown(True)
        .include_vars(True)
        .keep_time(True)
    )
    where = SWEEP_LINK if of_sweep else ("All sweeps", "${serve}/")
    made.link(_link(where))
    if of_sweep:
        made.link(_link(REPORT_LINK))
    return made


def _filled(
    made: P,
    title: str,
    help_text: str,
    queries: tuple[Query, ...],
    unit: str,
    width: int,
    height: int,
    link: Link | None,
    *,
    as_table: bool = False,
) -> P:
    made.title(title).description(help_text).datasource(SOURCE).unit(unit)
    made.span(width).height(height)
    for number, (expression, legend) in enumerate(queries):
        query = prometheus.Dataquery().expr(expression).ref_id("ABCDEFGH"[number])
        query.datasource(SOURCE)
        if legend:
            query.legend_format(legend)
        if as_table:
            query.instant().format(PromQueryFormat.TABLE)
        else:
            query.range()
        made.with_target(query)
    if link is not None:
        made.links([_link(link)]) if "__field" not in link[1] else made.data_links([_link(link)])
    return made


def _link(link: Link) -> dashboard.DashboardLink:
    title, address = link
    return (
        dashboard.DashboardLink(title).type(DashboardLinkType.LINK).url(address).target_blank(True)
    )


def _steps(steps: tuple[tuple[float, str], ...]) -> dashboard.ThresholdsConfig:
    made = [Threshold(value=None, color="text")]  # type: ignore[arg-type]  # the lowest has none
    made += [Threshold(value=value, color=color) for value, color in steps]
    return dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(made)
