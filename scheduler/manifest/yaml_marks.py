"""YAML text to a document with marks. The only module that imports ``yaml``.

Scalars mean what PyYAML's safe loader makes of them (YAML 1.1), since the identity of a
condition depends on it; but a key may stand once, dates and tags are refused, and nesting
and aliases are bounded before anything is built.
"""

from __future__ import annotations

import math
from typing import Any

import yaml

from scheduler.manifest.document import MAX_CHARS, MAX_DEPTH, MAX_VALUES, Document
from scheduler.manifest.faults import ManifestError, ManifestFault, Mark, Place, field_text

_TAG = "tag:yaml.org,2002:"
_SCALARS = frozenset({f"{_TAG}{kind}" for kind in ("null", "bool", "int", "float", "str")})
_MERGE = f"{_TAG}merge"


def read_yaml(text: str, file: str) -> Document:
    """Reads one YAML document; an empty one is null.

    Raises:
        ManifestError: not YAML, a key stands twice, or a value is not plain data.
    """
    try:
        _refuse_depth(text, file)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        raise ManifestError([_syntax_fault(error, file)]) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        message = f"character U+{_code(error):04X} may not stand in YAML"
        raise ManifestError([ManifestFault(file, line, "", message)]) from error
    builder = _Builder(file)
    if node is None:
        return Document(file, None, {}, {(): Mark(1, 1)})
    data = builder.build(node, ())
    if builder.faults:
        raise ManifestError(builder.faults)
    return Document(file, data, builder.keys, builder.values)


def _code(error: yaml.reader.ReaderError) -> int:
    return error.character if isinstance(error.character, int) else ord(error.character)


def _syntax_fault(error: yaml.MarkedYAMLError, file: str) -> ManifestFault:
    # Not str(error): it quotes the line, and an endpoint file may hold what must not be shown.
    mark = error.problem_mark or error.context_mark
    line = None if mark is None else mark.line + 1
    parts = [part for part in (error.context, error.problem) if part]
    if error.problem and r"'\t'" in error.problem:
        parts = ["a tab stands where YAML takes spaces only"]
    return ManifestFault(file, line, "", f"not YAML: {', '.join(parts)}")


def _refuse_depth(text: str, file: str) -> None:
    """Stops at the first event too deep or too many: composing would recurse into it."""
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise ManifestError([_bound_fault(event, file, f"more than {MAX_DEPTH} levels deep")])
        if count > 2 * MAX_VALUES:
            raise ManifestError([_bound_fault(event, file, f"more than {MAX_VALUES} values")])


def _bound_fault(found: Any, file: str, what: str) -> ManifestFault:
    return ManifestFault(file, found.start_mark.line + 1, "", f"a manifest may not be {what}")


class _Builder:
    """Nodes to plain data, with a mark for every key and value."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.keys: dict[Place, Mark] = {}
        self.values: dict[Place, Mark] = {}
        self.faults: list[ManifestFault] = []
        self._scalars = yaml.constructor.SafeConstructor()
        self._count = 0
        self._chars = 0
        self._merging = 0

    def build(self, node: yaml.Node, place: Place) -> Any:
        """The data of a node; faults are kept, and null stands for what has one."""
        self.values[place] = _mark(node)
        self._bound(node, len(place))
        if isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
            return [self.build(child, (*place, index)) for index, child in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode) and node.tag in _SCALARS:
            return self._scalar(node, place)
        return self._refuse(node, place, _kind_message(node))

    def _bound(self, node: yaml.Node, depth: int) -> None:
        """Aliases multiply values, and one may hold itself: both end here, at once."""
        self._count += 1
        if isinstance(node, yaml.ScalarNode):
            self._chars += len(node.value)
        if self._count > MAX_VALUES or self._chars > MAX_CHARS:
            what = f"more than {MAX_VALUES} values or {MAX_CHARS} characters, aliases written out"
            raise ManifestError([_bound_fault(node, self.file, what)])
        if depth > MAX_DEPTH:
            what = f"more than {MAX_DEPTH} levels deep"
            raise ManifestError([_bound_fault(node, self.file, what)])

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key_node, value_node in reversed(node.value):
            if key_node.tag == _MERGE:
                self._merge(value_node, place, data)
        own: dict[str, Mark] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                continue
            if key_node.tag != f"{_TAG}str":
                self._refuse(key_node, place, "a key must be text: put it in quotes")
                continue
            key = str(key_node.value)
            here = (*place, key)
            if key in own:
                message = f"this key stands twice; the first is on line {own[key].line}"
                self._refuse(key_node, here, message)
                continue
            own[key] = self.keys[here] = _mark(key_node)
            data[key] = self.build(value_node, here)
        return data

    def _merge(self, node: yaml.Node, place: Place, data: dict[str, Any]) -> None:
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        self._merging += 1
        for source in reversed(sources):
            self._bound(source, self._merging)
            if isinstance(source, yaml.MappingNode):
                data.update(self._mapping(source, place))
            else:
                self._refuse(source, place, "'<<' takes in mappings only")
        self._merging -= 1

    def _scalar(self, node: yaml.ScalarNode, place: Place) -> Any:
        if node.tag == f"{_TAG}str":
            return self._text(node, place)
        try:
            value = self._scalars.construct_object(node)
        except ValueError:
            return self._refuse(node, place, "a number that cannot be read")
        if isinstance(value, float) and not math.isfinite(value):
            return self._refuse(node, place, "a number must be finite")
        return value

    def _text(self, node: yaml.ScalarNode, place: Place) -> Any:
        text = str(node.value)
        try:
            text.encode()
        except UnicodeEncodeError:
            return self._refuse(node, place, "text with half of a surrogate pair")
        return text

    def _refuse(self, node: yaml.Node, place: Place, message: str) -> None:
        line = _mark(node).line
        self.faults.append(ManifestFault(self.file, line, field_text(place), message))


def _kind_message(node: yaml.Node) -> str:
    if node.tag == f"{_TAG}timestamp":
        return "a date is not plain data: put it in quotes"
    kind = str(node.tag).removeprefix(_TAG)
    return f"values of the kind {kind!r} are not read: text, numbers, lists and mappings are"


def _mark(node: yaml.Node) -> Mark:
    return Mark(node.start_mark.line + 1, node.start_mark.column + 1)
