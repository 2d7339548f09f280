# SPDX-License-Identifier: LGPL-2.1-or-later
"""Which metrics and labels an expression of PromQL names.

Not a parser of the language, of which `promtool check rules` would say more: it knows what names stand for what. A character
or a function that it does not know is refused, so that nothing is passed over.
"""

import dataclasses
import re

TOKEN = re.compile(r"""(?P<space>\s+)|(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<range>\[[^\]]*\])|(?P<number>\d[\d.]*(?:e\d+)?)
                       |(?P<name>[a-zA-Z_:][\w:]*)|(?P<operator>=~|!~|[=!<>]=|[-{}(),=<>+*/%^])""", re.VERBOSE)
AGGREGATIONS = {"avg", "bottomk", "count", "group", "max", "min", "quantile", "stddev", "sum", "topk"}
FUNCTIONS = {"abs", "absent", "clamp_max", "clamp_min", "delta", "increase", "label_replace", "max_over_time", "predict_linear", "rate",
             "scalar", "sort_desc", "time", "vector"}
OPERATORS = {"and", "bool", "or", "unless"}
LABEL_LISTS = {"by", "group_left", "group_right", "ignoring", "on", "without"}


@dataclasses.dataclass
class Selector:
  metric: str
  matchers: list = dataclasses.field(default_factory=list)  # (label, operator, value)


@dataclasses.dataclass
class Names:
  selectors: list  # of Selector
  labels: set  # that series are grouped or joined by, or that are replaced: each has to be one of the series', or made
  made: set  # by label_replace


class Unknown(ValueError):
  """What this module does not know."""


def tokens(expression):
  at, found = 0, []
  while at < len(expression):
    match = TOKEN.match(expression, at)
    if not match:
      raise Unknown(f"'{expression[at]}' in {expression}")
    at = match.end()
    if match.lastgroup not in ("space", "range", "number"):
      found.append((match.lastgroup, match[0]))
  return [*found, ("end", "")]


def names(expression):
  reader = _Reader(expression)
  reader.read()
  return Names(reader.selectors, reader.labels, reader.made)


class _Reader:
  def __init__(self, expression):
    self._expression = expression
    self._tokens = tokens(expression)
    self._at = 0
    self._calls = []  # of each open parenthesis: the function before it, and the strings that are its own arguments
    self.selectors, self.labels, self.made = [], set(), set()

  def read(self):
    while self._tokens[self._at][0] != "end":
      kind, text = self._next()
      if kind == "name":
        self._name(text)
      elif text == "(":
        self._calls.append(("", []))
      elif text == ")":
        self._close()
      elif kind == "string":
        self._calls[-1][1].append(text[1:-1])
      elif text in "{}":
        raise Unknown(f"'{text}' without a metric in {self._expression}")
    if self._calls:
      raise Unknown(f"a parenthesis is open at the end of {self._expression}")

  def _next(self):
    self._at += 1
    return self._tokens[self._at - 1]

  def _is_next(self, text):
    return self._tokens[self._at][1] == text

  def _name(self, text):
    if text in LABEL_LISTS:
      self.labels.update(self._list() if self._is_next("(") else ())
    elif text in AGGREGATIONS and not self._is_next("{"):
      pass
    elif self._is_next("("):
      if text not in FUNCTIONS and text not in OPERATORS:
        raise Unknown(f"function {text} in {self._expression}")
      if text in FUNCTIONS:
        self._next()
        self._calls.append((text, []))
    elif text not in OPERATORS:
      self.selectors.append(Selector(text, self._matchers() if self._is_next("{") else []))

  def _list(self):
    """What stands between parentheses."""
    self._next()
    found = []
    while not self._is_next(")"):
      kind, text = self._next()
      if kind == "end":
        raise Unknown(f"a list of labels is open at the end of {self._expression}")
      found += [text] if kind == "name" else []
    self._next()
    return found

  def _matchers(self):
    self._next()
    found = []
    while not self._is_next("}"):
      (kind, label), (_, operator), (value_kind, value) = self._next(), self._next(), self._next()
      if kind != "name" or value_kind != "string":
        raise Unknown(f"a matcher in {self._expression}")
      found.append((label, operator, value[1:-1]))
      if self._is_next(","):
        self._next()
    self._next()
    return found

  def _close(self):
    if not self._calls:
      raise Unknown(f"a parenthesis too many in {self._expression}")
    function, strings = self._calls.pop()
    if function == "label_replace":
      made, _, source, _ = strings
      self.made.add(made)
      self.labels.add(source)
