"""Tests of mcp_lite.py, in the order of its sections: T5 tests section 5.

`python -m pytest` runs them; nothing but pytest is needed, and no plugins. Rules of this file: what
goes over the wire stands literally in the test; nothing sleeps, no port is fixed, nothing of ours
is mocked; every limit is tested at the limit and one past it; the name of a test is the sentence
it protects. A section's tests use nothing but T0 and the sections up to the tested one, so that
both files can be cut at the same place (T99 does so).
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import concurrent.futures
import contextlib
import dataclasses
import datetime
import doctest
import enum
import functools
import gc
import io
import itertools
import json
import logging
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import symtable
import sys
import threading
import time
import tokenize
import types
import typing
import uuid

import pytest

import mcp_lite as m

HERE = pathlib.Path(__file__).resolve().parent

###############################################################################
# T0. Tools
###############################################################################


def rng(name):
    """Return a random generator that gives every run, on every Python, the same sequence."""
    return random.Random(f"mcp_lite {name}")


def cuttings(data):
    """Yield `data` in pieces, in every way that a network may deliver it.

    Whole; byte by byte; in two pieces, cut everywhere; in three, cut everywhere, if it is short; in
    seeded random pieces, some of them empty, since an empty read must not be taken for the end.
    """
    yield [data]
    if len(data) <= 100_000:
        yield [data[i : i + 1] for i in range(len(data))]
    if len(data) <= 2000:
        yield from ([data[:i], data[i:]] for i in range(1, len(data)))
    if len(data) <= 40:
        for i in range(1, len(data)):
            yield from ([data[:i], data[i:j], data[j:]] for j in range(i, len(data)))
    dice = rng(f"cuttings {len(data)}")
    for _ in range(20):
        cuts = sorted(dice.choices(range(len(data) + 1), k=dice.randint(1, 12)))
        yield [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)])]


def comparable(item):
    """Return something that is equal for equal items, also for classes without `==`."""
    if isinstance(item, Exception):
        return (type(item), str(item), getattr(item, "http_status", None))
    if type(item).__eq__ is object.__eq__ and hasattr(type(item), "__slots__"):
        return (type(item), [comparable(getattr(item, name)) for name in type(item).__slots__])
    return (type(item), item)


def merged(items):
    """Join adjacent pieces of bytes: the pieces of one body, however it was cut."""
    out = []
    for item in items:
        if isinstance(item, bytes) and out and isinstance(out[-1], bytes):
            out[-1] += item
        else:
            out.append(item)
    return out


def feed_pieces(decoder, pieces, eof):
    """Return (items, error): what a decoder makes of the pieces, and the ProtocolError or None."""
    items = []
    try:
        for piece in pieces:
            items += decoder.feed(piece)
        # The error that follows complete items is raised by the call after the one that gave them.
        items += decoder.feed(b"")
        if eof:
            items += decoder.eof()
            items += decoder.eof()
    except m.ProtocolError as exc:
        return items, exc
    return items, None


def feed_every_way(make_decoder, data, *, eof=False, exact=False):
    """Feed `data` in every cutting to a new decoder each; return the items, the same each time.

    Where the items of two cuttings differ only in how bytes are split, as the pieces of a body may
    be, adjacent pieces are joined, in what is returned too. `exact=True` forbids that.
    """
    runs = []
    for pieces in cuttings(data):
        items, error = feed_pieces(make_decoder(), pieces, eof)
        assert error is None, f"{error!r} for {pieces!r}"[:2000]
        runs.append((items, pieces))
    first = runs[0][0]
    if not exact and any(len(items) != len(first) for items, _ in runs):
        runs = [(merged(items), pieces) for items, pieces in runs]
        first = runs[0][0]
    expected = [comparable(item) for item in first]
    for items, pieces in runs:
        assert [comparable(item) for item in items] == expected, f"cut as {pieces!r}"[:2000]
    return first


def errors_every_way(make_decoder, data, *, eof=False, same=True):
    """Feed `data` in every cutting; return the ProtocolError that ends each of them.

    The items before it must agree, and (unless `same=False`) class, message and HTTP status of the
    error too. A decoder that has failed goes on failing, with the same error.
    """
    runs = []
    for pieces in cuttings(data):
        decoder = make_decoder()
        items, error = feed_pieces(decoder, pieces, eof)
        assert error is not None, f"no error, but {items!r} for {pieces!r}"[:2000]
        for again in (lambda d=decoder: d.feed(b"x"), decoder.eof):
            with pytest.raises(type(error)) as caught:
                again()
            assert str(caught.value) == str(error)
        runs.append(([comparable(item) for item in merged(items)], error, pieces))
    first_items, first, _ = runs[0]
    for items, error, pieces in runs:
        assert items == first_items, f"cut as {pieces!r}"[:2000]
        assert not same or comparable(error) == comparable(first), f"cut as {pieces!r}"[:2000]
    return first


def open_descriptors():
    """Return {descriptor: what it is} of this process; nothing where /proc does not exist."""
    found = {}
    with contextlib.suppress(FileNotFoundError):
        for fd in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):  # the descriptor of this very listing
                found[int(fd)] = os.readlink(f"/proc/self/fd/{fd}")
    return found


def child_processes():
    """Return {pid: command line} of this process's children; nothing where /proc does not exist."""
    found = {}
    for listing in pathlib.Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for pid in listing.read_text().split():
                command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
                found[int(pid)] = command.replace(b"\0", b" ").decode(errors="replace")
    return found


def lasting_threads():
    """Return the names of the threads that would keep this process from ending."""
    return {t.ident: t.name for t in threading.enumerate() if not t.daemon}


class Complaints(logging.Handler):
    """Collect what asyncio complains of: its log at ERROR, and its loop's exception handler."""

    def __init__(self):
        super().__init__(logging.ERROR)
        self.texts = []

    def emit(self, record):
        self.texts.append(self.format(record))

    def from_loop(self, loop, context):
        exc = context.get("exception")
        self.texts.append(f"{context['message']}: {exc!r} {context.get('future') or ''}")


async def within(coro, seconds):
    """Return the result of `coro`; fail after `seconds`, or if it leaves a task behind."""
    task = asyncio.ensure_future(coro)
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if not done:
        stacks = io.StringIO()
        for other in asyncio.all_tasks() - {asyncio.current_task()}:
            other.print_stack(file=stacks)
        task.cancel()
        await asyncio.wait({task}, timeout=2)
        pytest.fail(f"not done after {seconds} s\n{stacks.getvalue()}")
    for _ in range(10):  # the last steps of tasks that were cancelled, of transports that close
        await asyncio.sleep(0)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    if not task.cancelled() and task.exception() is None:  # otherwise that is the news
        assert not left, f"tasks left behind: {left}"
    return task.result()


def run(coro, *, seconds=20):
    """Run a coroutine in a loop of its own, in debug mode; return its result.

    Fails after `seconds`, and when it leaves a task, a file descriptor, a child process or a
    non-daemon thread behind, or makes asyncio complain (a task whose exception nobody looked at,
    say).
    """
    complaints = Complaints()
    before = (open_descriptors(), child_processes(), lasting_threads())

    async def main():
        asyncio.get_running_loop().set_exception_handler(complaints.from_loop)
        return await within(coro, seconds)

    log = logging.getLogger("asyncio")
    log.addHandler(complaints)
    try:
        result = asyncio.run(main(), debug=True)
        check_nothing_left(before)
        gc.collect()  # what was dropped without a look complains now, not in another test
    finally:
        log.removeHandler(complaints)
    assert not complaints.texts, "asyncio complained:\n" + "\n".join(complaints.texts)
    return result


def check_nothing_left(before):
    """Fail if there are descriptors, children or threads that were not there before."""
    deadline = time.monotonic() + 2  # a reaped child and a joined thread take a moment to vanish
    while True:
        now = (open_descriptors(), child_processes(), lasting_threads())
        new = [{k: v for k, v in b.items() if a.get(k) != v} for a, b in zip(before, now)]
        if not any(new):
            return
        if time.monotonic() > deadline:
            pytest.fail("left behind: descriptors {}, children {}, threads {}".format(*new))
        time.sleep(0.005)


class TestTools:
    """The net has no holes: what the other tests rely on fails when it should."""

    def test_run_notices_a_task_that_is_left_behind(self):
        async def leave():
            self.task = asyncio.ensure_future(asyncio.sleep(60))

        with pytest.raises(AssertionError, match="tasks left behind"):
            run(leave())

    def test_run_notices_an_exception_that_nobody_looked_at(self):
        async def fail():
            raise ValueError("unseen")

        async def drop():
            asyncio.ensure_future(fail())  # noqa: RUF006 -- dropping it is the point

        with pytest.raises(AssertionError, match="never retrieved: ValueError"):
            run(drop())

    def test_run_gives_up_at_its_deadline(self):
        with pytest.raises(pytest.fail.Exception, match="not done after"):
            run(asyncio.sleep(60), seconds=0.01)

    def test_a_decoder_that_depends_on_the_cut_is_noticed(self):
        class Broken:
            def feed(self, data):
                return [data] if data else []

        with pytest.raises(AssertionError, match="cut as"):
            feed_every_way(Broken, b"one\ntwo\n", exact=True)


###############################################################################
# T5. JSON Schema
###############################################################################

# The tables follow the text of JSON Schema 2020-12 (core and validation), keyword by keyword:
# (schema, values that it admits, values that it does not).
VERDICTS = [
    (True, [None, {}, []], []),
    (False, [], [None, 1, {}]),
    ({}, [None, 1, "x"], []),
    # validation 6.1: any type
    ({"type": "integer"}, [1, -3, 1.0, 10**400], [1.5, True, "1", None, [1]]),
    ({"type": "number"}, [1, 1.5], [True, "1"]),
    ({"type": "boolean"}, [True, False], [0, 1, "true"]),
    ({"type": "null"}, [None], [0, "", False]),
    ({"type": ["string", "null"]}, ["", None], [0, []]),
    ({"enum": [1, "a", None, [1, {"x": 1}]]}, [1, 1.0, "a", None, [1.0, {"x": 1}]], [True, "1", [1]]),
    ({"enum": []}, [], [None]),
    ({"const": False}, [False], [0, None]),
    ({"const": 0}, [0, 0.0, -0.0], [False]),
    ({"const": {"a": [1, 2]}}, [{"a": [1, 2.0]}], [{"a": [2, 1]}, {"a": [1, 2], "b": 1}]),
    ({"const": 2**53}, [2**53, float(2**53)], [2**53 + 1]),
    # 6.2: numbers
    ({"multipleOf": 2}, [4, 4.0, 0, -2, "x"], [3, 2.5]),
    ({"multipleOf": 0.01}, [4.02, 0.07, 3], [4.021]),
    ({"multipleOf": 1e-8}, [12391239123], []),
    ({"multipleOf": 0.5}, [1e308, 2.5], [0.3]),
    ({"minimum": 1.5}, [1.5, 2, "0", None, True], [1, 1.4]),
    ({"maximum": 3}, [3, 3.0, -5], [3.1, 4]),
    ({"exclusiveMinimum": 3}, [3.1], [3, 2]),
    ({"exclusiveMaximum": 3}, [2], [3, 3.0]),
    # 6.3: strings; a length counts characters, not bytes or surrogates
    ({"minLength": 2}, ["ab", "\U0001f600x", 1], ["a", "\U0001f600"]),
    ({"maxLength": 1.0}, ["", "\U0001f600"], ["ab"]),
    ({"pattern": "^a*$"}, ["aa", "", 1], ["ab", "a\n"]),
    ({"pattern": "b"}, ["abc"], ["ac"]),
    ({"pattern": "^\\d+$"}, ["12"], ["\u0662"]),
    ({"pattern": "^(?<a>x)\\k<a>[[$|~&]$"}, ["xx[", "xx$"], ["xx", "xxx"]),
    # 6.4: arrays
    ({"minItems": 1}, [[1], {}, ""], [[]]),
    ({"maxItems": 1}, [[1], []], [[1, 2]]),
    ({"uniqueItems": True}, [[1, True, "1", [1], None, 0, False]], [[1, 1.0], [{"a": 1, "b": 2}, {"b": 2, "a": 1}]]),
    ({"uniqueItems": False}, [[1, 1]], []),
    ({"contains": {"const": 1}}, [[2, 1], {}], [[], [2, True]]),
    ({"contains": {"const": 1}, "minContains": 2, "maxContains": 3}, [[1, 1], [1, 1, 1]], [[1], [1] * 4]),
    ({"contains": {"const": 1}, "minContains": 0}, [[]], []),
    ({"minContains": 2}, [[]], []),
    # 6.5: objects
    ({"minProperties": 1}, [{"a": 1}, []], [{}]),
    ({"maxProperties": 1}, [{"a": 1}, {}], [{"a": 1, "b": 2}]),
    ({"required": ["a"]}, [{"a": None}, [], "a"], [{}, {"b": 1}]),
    ({"dependentRequired": {"a": ["b"]}}, [{}, {"b": 1}, {"a": 1, "b": 1}], [{"a": 1}]),
    # core 10.2: in place
    ({"allOf": [{"type": "integer"}, {"minimum": 2}]}, [2], [1, "x"]),
    ({"anyOf": [{"type": "integer"}, {"minimum": 2}]}, [1, 2.5, "x"], [1.5]),
    ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, [1, 2.5], [3, 1.5]),
    ({"not": {"type": "integer"}}, ["x"], [1]),
    ({"if": {"minimum": 0}, "then": {"multipleOf": 2}, "else": {"maximum": -10}}, [2, -10], [1, -1]),
    ({"then": False, "else": False}, [1], []),
    ({"dependentSchemas": {"a": {"required": ["b"]}}}, [{}, {"a": 1, "b": 1}], [{"a": 1}]),
    # core 10.3: inside
    ({"prefixItems": [{"type": "string"}], "items": False}, [["a"], [], 5], [[1], ["a", 1]]),
    ({"items": {"type": "string"}}, [["a"], {}], [["a", 1]]),
    ({"properties": {"a": {"type": "string"}}}, [{}, {"a": "x", "b": 1}, []], [{"a": 1}]),
    ({"patternProperties": {"^x": {"type": "null"}}}, [{"xa": None, "a": 1}], [{"ax": 1, "xa": 1}]),
    (
        {"properties": {"a": True}, "patternProperties": {"^x": True}, "additionalProperties": False},
        [{"a": 1, "xy": 2}],
        [{"b": 1}],
    ),
    ({"additionalProperties": {"type": "string"}}, [{"a": "x"}], [{"a": 1}]),
    ({"propertyNames": {"maxLength": 1}}, [{"a": 1}], [{"ab": 1}]),
    # core 11: unevaluated
    (
        {"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False},
        [{"a": 1}, {}],
        [{"a": 1, "b": 1}],
    ),
    (
        {
            "anyOf": [{"properties": {"a": {"type": "null"}}}, {"properties": {"b": True}}],
            "unevaluatedProperties": False,
        },
        [{"a": None, "b": 1}, {"b": 1}],
        [{"a": 1, "b": 1}],
    ),
    (
        {"if": {"required": ["a"], "properties": {"a": True}}, "unevaluatedProperties": False},
        [{"a": 1}],
        [{"a": 1, "b": 1}],
    ),
    (
        {"properties": {"a": True}, "allOf": [{"unevaluatedProperties": False}]},
        [{}],
        [{"a": 1}],  # a cousin is not seen
    ),
    (
        {"prefixItems": [True], "contains": {"type": "null"}, "unevaluatedItems": {"type": "string"}},
        [[1, None, "x"]],
        [[1, None, 2]],
    ),
    # core 8.2: references
    ({"$ref": "#/$defs/a%20b~1c~0", "$defs": {"a b/c~": {"type": "null"}}}, [None], [1]),
    ({"$ref": "#x", "$defs": {"a": {"$anchor": "x", "type": "null"}}}, [None], [1]),
    ({"$ref": "#/allOf/0", "allOf": [{"type": "null"}]}, [None], [1]),
    ({"$ref": "#/$defs/a", "minimum": 2, "$defs": {"a": {"type": "integer"}}}, [2], [1, "x"]),
    ({"$ref": "#/unknown/a", "unknown": {"a": {"type": "null"}}}, [None], [1]),
    (
        {"properties": {"next": {"$ref": "#"}, "v": {"type": "integer"}}, "required": ["v"]},
        [{"v": 1, "next": {"v": 2}}],
        [{"v": 1, "next": {}}],
    ),
    (
        {"$id": "http://x.test/a", "$ref": "b", "$defs": {"b": {"$id": "b", "type": "null"}}},
        [None],
        [1],
    ),
    (
        {
            "$id": "http://x.test/strict",
            "$dynamicAnchor": "node",
            "$ref": "tree",
            "unevaluatedProperties": False,
            "$defs": {
                "tree": {
                    "$id": "tree",
                    "$dynamicAnchor": "node",
                    "properties": {"data": True, "kids": {"items": {"$dynamicRef": "#node"}}},
                }
            },
        },
        [{"kids": [{"data": 1}]}],
        [{"kids": [{"daat": 1}]}],
    ),
    # annotations, and what is unknown, say nothing
    ({"format": "email", "title": 5, "x-what": {"type": "null"}}, ["no", 1], []),
    ({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "null"}, [None], [1]),
]

DRAFT_07 = {"$schema": "http://json-schema.org/draft-07/schema#"}
DRAFT_07_VERDICTS = [
    ({"items": [{"type": "null"}], "additionalItems": {"type": "string"}}, [[None, "x"]], [[1], [None, 1]]),
    ({"items": {"type": "null"}, "additionalItems": False}, [[None, None]], [[1]]),
    ({"items": []}, [[1]], []),
    ({"definitions": {"a": {"type": "null"}}, "$ref": "#/definitions/a", "minimum": 9}, [None], [1]),
    ({"dependencies": {"a": ["b"], "c": {"required": ["d"]}}}, [{"b": 1}, {"c": 1, "d": 1}], [{"a": 1}, {"c": 1}]),
    ({"$ref": "#foo", "definitions": {"a": {"$id": "#foo", "type": "null"}}}, [None], [1]),
    ({"contains": {"type": "null"}, "minContains": 2, "unevaluatedItems": False}, [[None, 1]], [[1]]),
    ({"prefixItems": [False], "dependentRequired": {"a": ["b"]}}, [[1], {"a": 1}], []),
]

REPORTS = [
    ({"type": "integer"}, "x", "expected integer, got string"),
    ({"type": ["integer", "null"]}, 1.5, "expected integer or null, got number"),
    ({"properties": {"b": {"type": "integer"}}}, {"b": "x"}, "b: expected integer, got string"),
    ({"required": ["b"]}, {}, "b: is required"),
    (
        {"properties": {"items": {"items": {"properties": {"price": {"minimum": 0}}}}}},
        {"items": [{}, {}, {"price": -1}]},
        "items[2].price: must be at least 0",
    ),
    (
        {"properties": {"name": {}, "age": {}}, "additionalProperties": False},
        {"nmae": 1},
        'nmae: unexpected property; did you mean "name"?',
    ),
    ({"additionalProperties": False}, {"c": 1}, "c: unexpected property"),
    ({"properties": {"a b": {"type": "null"}}}, {"a b": 1}, '["a b"]: expected null, got integer'),
    ({"enum": ["red", "green"]}, "blue", 'expected "red" or "green", got "blue"'),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x", "expected integer or null, got string"),
    ({"oneOf": [{"const": "a"}, {"const": "b"}]}, "c", 'expected "a" or "b", got "c"'),
    (
        {"anyOf": [{"type": "object", "required": ["id"]}, {"type": "null"}]},
        {},
        "id: is required",  # the alternative that was meant, not "matches none of 2"
    ),
    ({"items": {"maxLength": 2}}, ["a", "abc"], "[1]: must have at most 2 characters"),
    ({"uniqueItems": True}, [1, 2, 1], "[2]: is the same as item 0"),
]

UNUSABLE = [
    5, None, [], "x",
    {"type": 5}, {"type": "int"}, {"type": []}, {"type": ["string", 5]}, {"type": [["string"]]},
    {"required": "x"}, {"required": [1]}, {"enum": 5}, {"minimum": "1"}, {"minimum": True},
    {"multipleOf": 0}, {"multipleOf": -1}, {"minLength": -1}, {"minLength": 1.5}, {"maxItems": None},
    {"pattern": 5}, {"pattern": "("}, {"pattern": "\\p{L}"}, {"patternProperties": {"(": True}},
    {"uniqueItems": "yes"}, {"properties": []}, {"properties": {"a": 5}}, {"items": [True]},
    {"items": 5}, {"allOf": []}, {"anyOf": {}}, {"oneOf": [5]}, {"not": None}, {"if": 5},
    {"contains": True, "minContains": "1"}, {"dependentRequired": {"a": [1]}}, {"dependentSchemas": 1},
    {"additionalProperties": 5}, {"propertyNames": 5}, {"prefixItems": {}},
    {"unevaluatedItems": 5}, {"unevaluatedProperties": []},
    {"$ref": 5}, {"$ref": "#/nowhere"}, {"$ref": "#nowhere"}, {"$ref": "#/type", "type": "null"},
    {"$ref": "http://x.test/schema"}, {"$ref": "other.json"}, {"$ref": "http://[", "$id": "http://x"},
    {"$id": 5}, {"$anchor": 5}, {"$dynamicRef": "#nowhere"},
    {"$schema": 5}, {"$schema": "http://json-schema.org/draft-04/schema#"}, {"$schema": "x"},
    {"properties": {"a": {"items": {"type": "nothing"}}}},
]  # fmt: skip


def nested_schema(depth):
    schema = {}
    for _ in range(depth):
        schema = {"items": schema}
    return schema


def nested_array(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


class TestValidation:
    """JSON Schema 2020-12, and draft-07 where it is declared."""

    @pytest.mark.parametrize("schema, good, bad", VERDICTS, ids=repr)
    def test_keyword_admits_what_the_specification_says(self, schema, good, bad):
        validator = m.compile_schema(schema)
        assert [value for value in good if validator.errors(value)] == []
        assert [value for value in bad if not validator.errors(value)] == []

    @pytest.mark.parametrize("schema, good, bad", DRAFT_07_VERDICTS, ids=repr)
    def test_draft_07_is_understood_where_it_is_declared(self, schema, good, bad):
        validator = m.compile_schema({**DRAFT_07, **schema})
        assert [value for value in good if validator.errors(value)] == []
        assert [value for value in bad if not validator.errors(value)] == []

    @pytest.mark.parametrize("schema, value, report", REPORTS)
    def test_failure_names_the_path_and_what_was_expected(self, schema, value, report):
        with pytest.raises(m.SchemaError) as caught:
            m.compile_schema(schema).check(value)
        assert str(caught.value) == report

    @pytest.mark.parametrize("schema", UNUSABLE, ids=repr)
    def test_unusable_schema_is_refused_when_compiled(self, schema):
        with pytest.raises(m.SchemaError):
            m.compile_schema(schema)

    def test_unusable_schema_is_refused_with_place_and_remedy(self):
        with pytest.raises(m.SchemaError, match=r"^#/properties/a: type must be one or more of"):
            m.compile_schema({"properties": {"a": {"type": "int"}}})
        with pytest.raises(m.SchemaError, match=r"not fetched: put it under \$defs"):
            m.compile_schema({"$ref": "http://x.test/schema"})
        with pytest.raises(m.SchemaError, match="use prefixItems"):
            m.compile_schema({"items": [True]})

    def test_all_failures_are_listed_up_to_a_limit(self):
        validator = m.compile_schema({"items": {"type": "null"}})
        assert len(validator.errors([1, 2, 3])) == 3
        assert len(validator.errors([1] * 100)) == m.MAX_FAILURES

    def test_subclasses_of_json_types_are_what_they_inherit(self):
        import collections

        validator = m.compile_schema({"type": "object", "required": ["a"]})
        assert validator.errors(collections.OrderedDict(a=1)) == []
        assert len(validator.errors(collections.OrderedDict())) == 1

    def test_reference_that_leads_to_itself_is_an_error_and_not_a_hang(self):
        for loop in (
            {"$ref": "#"},
            {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
            {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
            {"not": {"$ref": "#"}},
        ):
            validator = m.compile_schema(loop)
            with pytest.raises(m.SchemaError):
                validator.check(1)

    def test_recursion_that_consumes_the_value_is_fine(self):
        validator = m.compile_schema({"type": "array", "items": {"$ref": "#"}})
        validator.check(nested_array(100))


class TestSchemaLimits:
    """Schema and value may be hostile: each limit, at it and one past it."""

    def test_depth_of_a_schema(self):
        m.compile_schema(nested_schema(m.MAX_SCHEMA_DEPTH))
        with pytest.raises(m.SchemaError, match="nested deeper"):
            m.compile_schema(nested_schema(m.MAX_SCHEMA_DEPTH + 1))
        with pytest.raises(m.SchemaError):
            m.compile_schema(nested_schema(100_000))

    def test_number_of_subschemas(self):
        m.compile_schema({"anyOf": [{}] * (m.MAX_SUBSCHEMAS - 1)})
        with pytest.raises(m.SchemaError, match="subschemas"):
            m.compile_schema({"anyOf": [{}] * m.MAX_SUBSCHEMAS})

    def test_depth_of_a_validation(self):
        validator = m.compile_schema({"minItems": 0, "items": {"$ref": "#"}})
        fits = (m.MAX_VALIDATION_DEPTH - 1) // 2
        validator.check(nested_array(fits))
        with pytest.raises(m.SchemaError, match="nested too deeply"):
            validator.check(nested_array(fits + 1))
        with pytest.raises(m.SchemaError):
            validator.check(nested_array(100_000))

    def test_work_of_a_validation(self, monkeypatch):
        validator = m.compile_schema({"items": {"allOf": [{"minimum": 0}]}})
        monkeypatch.setattr(m, "MAX_VALIDATION_STEPS", 2 + 10 + 10 * 3)
        validator.check([1] * 10)
        with pytest.raises(m.SchemaError, match="too much work"):
            validator.check([1] * 11)

    @pytest.mark.parametrize(
        "schema, value",
        [
            ({"anyOf": [{"required": ["x"], "items": {"type": "null"}}] * 3000}, [0] * 3000),
            ({"items": {"anyOf": [{"required": ["x"] * 1000, "minimum": 1}] * 100}}, [0] * 2000),
            ({"allOf": [{"uniqueItems": True}] * 5000}, list(range(20_000))),
            ({"allOf": [{"additionalProperties": {"minimum": 1}}] * 5000}, {str(i): 1 for i in range(20_000)}),
            ({"allOf": [{"enum": [0]}, {"const": [0]}] * 2500}, [0] * 50_000),
            ({"patternProperties": {f"{i}x": True for i in range(5000)}}, {str(i): 1 for i in range(20_000)}),
            ({"allOf": [{"required": [str(i) for i in range(5000)]}] * 2000}, {}),
        ],
    )
    def test_product_of_big_schema_and_big_value_is_not_computed(self, schema, value):
        started = time.perf_counter()
        with contextlib.suppress(m.SchemaError):
            m.compile_schema(schema).check(value)
        assert time.perf_counter() - started < 20

    def test_length_of_a_pattern_and_of_what_it_is_matched_with(self):
        m.compile_schema({"pattern": "a" * m.MAX_PATTERN_CHARS})
        with pytest.raises(m.SchemaError, match="too long"):
            m.compile_schema({"pattern": "a" * (m.MAX_PATTERN_CHARS + 1)})
        validator = m.compile_schema({"pattern": "a$"})
        validator.check("a" * m.MAX_PATTERN_INPUT_CHARS)
        with pytest.raises(m.SchemaError, match="too long for a pattern"):
            validator.check("a" * (m.MAX_PATTERN_INPUT_CHARS + 1))

    def test_shared_and_cyclic_python_objects_are_bounded_too(self):
        schema = {}
        schema["items"] = schema
        with pytest.raises(m.SchemaError):
            m.compile_schema(schema)
        schema = {}
        for _ in range(40):
            schema = {"allOf": [schema, schema]}
        with pytest.raises(m.SchemaError):
            m.compile_schema(schema)

    def test_garbage_gives_schema_errors_and_nothing_else(self):
        """Schemas of keywords with arguments of any make, and values of any make."""
        dice = rng("schemas")
        words = [*m.KEYWORDS, *m.DRAFT_07_KEYWORDS, "$id", "$anchor", "$dynamicAnchor", "$schema"]
        words += ["$defs", "definitions", "then", "else", "minContains", "maxContains"]
        scraps = [None, True, False, 0, -1, 1.5, 1e308, 10**30, "", "a", "#", "#/$defs/a", "(", "[a"]
        scraps += ["string", "object", "http://[", "~2", "#/%zz", "x:y", DRAFT_07["$schema"], "\ud800"]

        def thing(depth):
            roll = dice.random()
            if depth == 0 or roll < 0.3:
                return dice.choice(scraps)
            if roll < 0.5:
                return [thing(depth - 1) for _ in range(dice.randrange(4))]
            if roll < 0.6:
                return {dice.choice("abc"): thing(depth - 1) for _ in range(dice.randrange(4))}
            return {dice.choice(words): thing(depth - 1) for _ in range(dice.randrange(1, 5))}

        compiled = 0
        for _ in range(20_000):
            try:
                validator = m.compile_schema(thing(4))
                compiled += 1
                for _ in range(3):
                    validator.check(thing(3))
            except m.SchemaError:
                pass
        assert compiled > 1000


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.5
    tags: typing.List[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Node:
    value: int
    children: typing.List["Node"] = dataclasses.field(default_factory=list)
    parent: typing.Optional["Node"] = None


@dataclasses.dataclass
class Area:
    width: int
    height: int
    size: int = dataclasses.field(init=False)

    def __post_init__(self):
        if self.width < 0:
            raise ValueError("width is negative")
        self.size = self.width * self.height


class Color(enum.Enum):
    RED = "red"
    GREEN = "green"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Pair(typing.NamedTuple):
    left: int
    right: Color = Color.RED


class Movie(typing.TypedDict):
    title: str


class Film(Movie, total=False):
    when: datetime.date


UserId = typing.NewType("UserId", int)

ANNOTATIONS = [
    (str, {"type": "string"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (bool, {"type": "boolean"}),
    (None, {"type": "null"}),
    (typing.Any, {}),
    (object, {}),
    (list, {"type": "array"}),
    (dict, {"type": "object"}),
    (list[int], {"type": "array", "items": {"type": "integer"}}),
    (typing.Sequence[int], {"type": "array", "items": {"type": "integer"}}),
    (typing.List[typing.Any], {"type": "array"}),
    (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
    (frozenset, {"type": "array", "uniqueItems": True}),
    (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
    (
        tuple[int, str],
        {
            "type": "array",
            "prefixItems": [{"type": "integer"}, {"type": "string"}],
            "minItems": 2,
            "maxItems": 2,
        },
    ),
    (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
    (typing.Mapping[str, typing.Any], {"type": "object"}),
    (dict[Color, int], {
        "type": "object",
        "propertyNames": {"enum": ["red", "green"]},
        "additionalProperties": {"type": "integer"},
    }),
    (typing.Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    (typing.Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
    (typing.Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
    (typing.Literal[1, "b", None], {"type": ["integer", "null", "string"], "enum": [1, "b", None]}),
    (Color, {"type": "string", "enum": ["red", "green"]}),
    (Level, {"type": "integer", "enum": [1, 2]}),
    (datetime.datetime, {"type": "string", "format": "date-time"}),
    (datetime.date, {"type": "string", "format": "date"}),
    (datetime.time, {"type": "string", "format": "time"}),
    (uuid.UUID, {"type": "string", "format": "uuid"}),
    (pathlib.Path, {"type": "string"}),
    (bytes, {"type": "string", "contentEncoding": "base64"}),
    (UserId, {"type": "integer"}),
    (typing.Annotated[int, "how many"], {"type": "integer", "description": "how many"}),
    (
        typing.Annotated[int, {"minimum": 1}, "n", object()],
        {"type": "integer", "minimum": 1, "description": "n"},
    ),
    (typing.Annotated[str, m.Header("Region")], {"type": "string", "x-mcp-header": "Region"}),
    (
        Point,
        {
            "type": "object",
            "properties": {
                "x": {"type": "integer"},
                "y": {"type": "number", "default": 0.5},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["x"],
            "additionalProperties": False,
        },
    ),
    (
        Pair,
        {
            "type": "object",
            "properties": {
                "left": {"type": "integer"},
                "right": {"type": "string", "enum": ["red", "green"], "default": "red"},
            },
            "required": ["left"],
            "additionalProperties": False,
        },
    ),
    (
        Film,
        {
            "type": "object",
            "properties": {"title": {"type": "string"}, "when": {"type": "string", "format": "date"}},
            "required": ["title"],
        },
    ),
    (
        Node,
        {
            "$ref": "#/$defs/Node",
            "$defs": {
                "Node": {
                    "type": "object",
                    "properties": {
                        "value": {"type": "integer"},
                        "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
                        "parent": {
                            "anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}],
                            "default": None,
                        },
                    },
                    "required": ["value"],
                    "additionalProperties": False,
                }
            },
        },
    ),
]

MOMENT = datetime.datetime(2026, 7, 28, 10, 0, 0, 500000, datetime.timezone.utc)
# (annotation, JSON, the Python value, the JSON of that if it differs)
CONVERSIONS = [
    (int, 3.0, 3),
    (list[int], [1.0, 2], [1, 2]),
    (float, 1, 1),
    (bytes, "aGk=", b"hi"),
    (pathlib.PurePosixPath, "/a/b", pathlib.PurePosixPath("/a/b")),
    (uuid.UUID, "12345678-1234-5678-1234-567812345678", uuid.UUID(int=0x12345678123456781234567812345678)),
    (datetime.datetime, "2026-07-28T10:00:00.5Z", MOMENT, "2026-07-28T10:00:00.500000+00:00"),
    (datetime.datetime, "2026-07-28T10:00:00.500000+00:00", MOMENT),
    (datetime.date, "2026-07-28", datetime.date(2026, 7, 28)),
    (datetime.time, "10:30:00Z", datetime.time(10, 30, tzinfo=datetime.timezone.utc), "10:30:00+00:00"),
    (Color, "green", Color.GREEN),
    (Level, 2, Level.HIGH),
    (typing.Literal[Color.RED], "red", Color.RED),
    (set[str], ["b", "a"], {"a", "b"}, ["a", "b"]),
    (tuple[int, ...], [1, 2], (1, 2)),
    (tuple[Color, bytes], ["red", "aGk="], (Color.RED, b"hi")),
    (dict[Color, bytes], {"red": "aGk="}, {Color.RED: b"hi"}),
    (typing.Optional[datetime.date], None, None),
    (typing.Optional[datetime.date], "2026-07-28", datetime.date(2026, 7, 28)),
    (typing.Union[Point, Pair], {"left": 1}, Pair(1), {"left": 1, "right": "red"}),
    (typing.Union[int, str], "3", "3"),
    (Point, {"x": 1}, Point(1), {"x": 1, "y": 0.5, "tags": []}),
    (Film, {"title": "M", "when": "1931-05-11"}, {"title": "M", "when": datetime.date(1931, 5, 11)}),
    (
        Node,
        {"value": 1, "children": [{"value": 2, "children": [], "parent": None}], "parent": None},
        Node(1, [Node(2)]),
    ),
    (UserId, 5, 5),
    (typing.Annotated[Color, "which"], "red", Color.RED),
]


class TestAnnotations:
    """schema_of(), converter_of(), to_json(): three readings of one annotation."""

    @pytest.mark.parametrize("annotation, schema", ANNOTATIONS, ids=repr)
    def test_annotation_has_this_schema(self, annotation, schema):
        assert m.schema_of(annotation) == schema
        m.compile_schema(schema)

    @pytest.mark.parametrize("row", CONVERSIONS, ids=repr)
    def test_value_crosses_and_comes_back(self, row):
        annotation, given, value = row[:3]
        m.compile_schema(m.schema_of(annotation)).check(given)
        convert = m.converter_of(annotation) or (lambda json: json)
        assert convert(given) == value and type(convert(given)) is type(value)
        back = m.to_json(value)
        assert back == (row[3] if len(row) > 3 else given)
        m.compile_schema(m.schema_of(annotation, output=True)).check(back)
        json.dumps(back, allow_nan=False)

    @pytest.mark.parametrize(
        "annotation", [str, list[str], dict[str, typing.Any], typing.Optional[bool], Movie.__base__, list]
    )
    def test_plain_json_needs_no_converter(self, annotation):
        assert m.converter_of(annotation) is None

    @pytest.mark.parametrize(
        "annotation, given, report",
        [
            (bytes, "a", "is not usable: "),
            (datetime.date, "tomorrow", "is not usable: "),
            (Area, {"width": -1, "height": 1}, "is not usable: width is negative"),
            (list[Area], [{"width": 1, "height": 1}, {"width": -1, "height": 1}], "[1]: is not usable"),
            (dict[str, list[datetime.date]], {"a": ["2026-01-01", "x"]}, "a[1]: is not usable"),
            (typing.Optional[uuid.UUID], "x", "is not usable: "),
        ],
    )
    def test_failed_conversion_is_a_schema_error_with_its_path(self, annotation, given, report):
        with pytest.raises(m.SchemaError) as caught:
            m.converter_of(annotation)(given)
        assert str(caught.value).startswith(report)

    @pytest.mark.parametrize(
        "annotation", [threading.Thread, dict[int, str], typing.Callable[[], int], typing.TypeVar("T"), 5]
    )
    def test_annotation_that_json_cannot_say_is_a_type_error(self, annotation):
        with pytest.raises(TypeError):
            m.schema_of(annotation)

    def test_value_that_json_cannot_say_is_a_type_error_with_its_path(self):
        with pytest.raises(TypeError, match=r"^object at a\[1\]\.b has no JSON form"):
            m.to_json({"a": [1, {"b": object()}]})
        loop = []
        loop.append(loop)
        with pytest.raises(TypeError, match="contains itself"):
            m.to_json(loop)

    def test_plain_values_are_left_as_they_are_and_subclasses_made_plain(self):
        class Text(str):
            def __str__(self):
                return "something else"

        for value in (None, True, 1, 1.5, "x", [1, [2]], {"a": {"b": []}}):
            assert m.to_json(value) == value
        assert type(m.to_json(Text("x"))) is str and m.to_json(Text("x")) == "x"
        assert type(m.to_json(Level.LOW)) is int
        assert m.to_json(range(3)) == [0, 1, 2]
        assert m.to_json(Area(2, 3)) == {"width": 2, "height": 3, "size": 6}

    def test_result_that_is_no_object_is_wrapped(self):
        assert m.output_schema_of(Point)[0]["required"] == ["x", "y", "tags"]
        assert m.output_schema_of(Area)[0]["required"] == ["width", "height", "size"]
        assert m.output_schema_of(dict[str, int])[1] is False
        assert m.output_schema_of(list[int]) == (
            {
                "type": "object",
                "properties": {"result": {"type": "array", "items": {"type": "integer"}}},
                "required": ["result"],
            },
            True,
        )
        schema, wrapped = m.output_schema_of(Node)
        assert schema["type"] == "object" and "Node" in schema["$defs"] and not wrapped
        m.compile_schema(schema).check(m.to_json(Node(1, [Node(2)])))
        schema, wrapped = m.output_schema_of(typing.Optional[Node])
        assert wrapped and "Node" in schema["$defs"]
        m.compile_schema(schema).check({"result": m.to_json(Node(1))})

    @pytest.mark.parametrize(
        "annotation",
        [m.EMPTY, None, typing.Any, Color, list[Color], typing.Optional[Color], typing.Annotated[Color, "x"]],
    )
    def test_result_without_a_schema(self, annotation):
        assert m.output_schema_of(annotation, (Color,)) == (None, False)


class FakeContext:
    """Stands for the class Context of section 15."""


def annotated_in_strings(a: "int", b: "typing.Optional[Node]" = None, *, c: typing.List["Point"] = ()): ...


def google_style(a: int, b: typing.Annotated[int, "explicit"] = 1, **rest: str) -> int:
    """Add two numbers.

    At length.

    Args:
        a (int): the first: a number
            that goes on

            and on
        b: the second
        **rest: ignored

    Returns:
        the sum
    """


def numpy_style(a, b=1):
    """Add two numbers.

    Parameters
    ----------
    a : int
        the first
    b
        the second
        number

    Returns
    -------
    int
        the sum
    """


def rest_style(a, b=1):
    """Add two numbers.

    :param a: the first
    :param int b: the second
        number
    :type a: int
    :returns: the sum
    """


class Callables:
    """Say it."""

    def method(self, a: int):
        """Do it."""
        return self, a

    @classmethod
    def of_class(cls, a: int): ...

    @staticmethod
    def static(a: int): ...

    def __call__(self, a: int): ...


def wrapped(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs)

    return wrapper


def positional(ctx: FakeContext, a: int, b: bytes = b"", c: int = 3, /, d: int = 4):
    return ctx, a, b, c, d


def hints_hidden_from_us(a: int, ctx: m.NoSuchModule.FakeContext): ...


def optional_context(ctx: FakeContext | None, a: int = 1): ...


def run_source(source):
    """Execute `source` without this file's `from __future__`; return its names."""
    names = {"__name__": __name__, "typing": typing, "FakeContext": FakeContext}
    exec(compile(source, "<test>", "exec", dont_inherit=True), names)
    return names


class TestSignatures:
    """What a function says about its arguments."""

    def test_parameters_become_an_object(self):
        assert m.signature_of(google_style).schema == {
            "type": "object",
            "properties": {
                "a": {"type": "integer", "description": "the first: a number that goes on and on"},
                "b": {"type": "integer", "description": "explicit", "default": 1},
            },
            "required": ["a"],
            "additionalProperties": True,
        }
        assert m.signature_of(google_style).returns is int
        assert m.signature_of(numpy_style).returns is m.EMPTY

    @pytest.mark.parametrize("fn", [google_style, numpy_style, rest_style])
    def test_docstring_is_divided_into_description_and_parameters(self, fn):
        signature = m.signature_of(fn)
        assert signature.description.startswith("Add two numbers.")
        assert "first" not in signature.description and "second" not in signature.description
        assert "the sum" in signature.description
        assert signature.schema["properties"]["a"]["description"].startswith("the first")
        if fn is not google_style:
            assert signature.schema["properties"]["b"]["description"] == "the second number"

    def test_annotations_in_strings_are_resolved(self):
        schema = m.signature_of(annotated_in_strings).schema
        assert schema["properties"]["a"] == {"type": "integer"}
        assert schema["properties"]["b"]["anyOf"] == [{"$ref": "#/$defs/Node"}, {"type": "null"}]
        assert schema["properties"]["c"]["items"]["required"] == ["x"]
        assert list(schema["$defs"]) == ["Node"]
        m.compile_schema(schema).check({"a": 1, "b": {"value": 1, "children": [{"value": 2}]}})

    @pytest.mark.parametrize(
        "fn, doc",
        [
            (Callables().method, "Do it."),
            (Callables.of_class, ""),
            (Callables.static, ""),
            (Callables(), "Say it."),
            (wrapped(Callables().method), "Do it."),
            (functools.partial(Callables.method, Callables()), "Do it."),
        ],
    )
    def test_everything_that_can_be_called_has_a_signature(self, fn, doc):
        signature = m.signature_of(fn)
        assert signature.schema["properties"] == {"a": {"type": "integer"}}
        assert signature.description == doc

    def test_argument_that_a_partial_has_bound_is_not_the_models(self):
        signature = m.signature_of(functools.partial(numpy_style, b=5))
        assert list(signature.schema["properties"]) == ["a"]
        with pytest.raises(m.SchemaError, match="unexpected"):
            m.compile_schema(signature.schema).check({"a": 1, "b": 6})

    def test_positional_only_parameters_are_passed_by_position(self):
        signature = m.signature_of(positional, FakeContext)
        assert signature.context == "ctx" and signature.schema["required"] == ["a"]
        args, kwargs = signature.call_args({"a": 1.0, "c": 5, "d": 6}, "the context")
        assert positional(*args, **kwargs) == ("the context", 1, b"", 5, 6)
        assert type(args[1]) is int
        args, kwargs = signature.call_args({"a": 1, "b": "aGk="}, "the context")
        assert positional(*args, **kwargs) == ("the context", 1, b"hi", 3, 4)

    @pytest.mark.parametrize("fn", [optional_context, hints_hidden_from_us])
    def test_context_is_found_by_its_name_where_it_cannot_be_evaluated(self, fn):
        signature = m.signature_of(fn, FakeContext)
        assert signature.context == "ctx"
        assert list(signature.schema["properties"]) == ["a"]

    def test_arguments_cannot_replace_the_context(self):
        def fn(ctx: FakeContext, **rest): ...

        fn.__annotations__["ctx"] = FakeContext
        signature = m.signature_of(fn, FakeContext)
        assert signature.call_args({"ctx": "theirs"}, "ours") == ([], {"ctx": "ours"})

    def test_bind_leaves_the_arguments_alone_and_names_the_path(self):
        names = run_source("import datetime\ndef f(a: list[datetime.date], b: int = 0): ...")
        signature = m.signature_of(names["f"])
        given = {"a": ["2026-01-01"]}
        assert signature.bind(given) == {"a": [datetime.date(2026, 1, 1)]}
        assert given == {"a": ["2026-01-01"]}
        with pytest.raises(m.SchemaError, match=r"^a\[0\]: is not usable"):
            signature.bind({"a": ["x"]})

    @pytest.mark.parametrize(
        "source, default",
        [
            ("def f(a: int = 5): ...", {"default": 5}),
            ("def f(a: int = None): ...", {}),
            ("def f(a: typing.Optional[int] = None): ...", {"default": None}),
            ("def f(a: float = float('nan')): ...", {}),
            ("def f(a=object()): ...", {}),
            ("def f(a: bytes = b'hi'): ...", {"default": "aGk="}),
        ],
    )
    def test_default_is_told_where_json_can(self, source, default):
        signature = m.signature_of(run_source(source)["f"])
        schema = signature.schema["properties"]["a"]
        assert {k: v for k, v in schema.items() if k == "default"} == default
        assert "required" not in signature.schema

    @pytest.mark.parametrize(
        "source, words",
        [
            ("def f(x: 'Nowhere'): ...", ["f()", "'x'", "Nowhere", "module level", "input_schema="]),
            ("def f(x: 'int +'): ...", ["f()", "'x'", "input_schema="]),
            ("class A: ...\ndef f(x: A): ...", ["f()", "'x'", "dataclass", "input_schema="]),
            ("def f(*x): ...", ["f()", "'x'", "list", "input_schema="]),
            ("def f(a: FakeContext, b: FakeContext): ...", ["f()", "'b'", "'a'"]),
            ("def f() -> 'Nowhere': ...", ["f()", "result", "Nowhere"]),
            ("def f(x: dict[int, str]): ...", ["f()", "'x'", "strings"]),
            ("def f(x: [int]): ...", ["f()", "'x'"]),
        ],
    )
    def test_what_json_cannot_fill_is_refused_at_registration(self, source, words):
        with pytest.raises(TypeError) as caught:
            m.signature_of(run_source(source)["f"], FakeContext)
        assert [word for word in words if word not in str(caught.value)] == []

    @pytest.mark.skipif(sys.version_info >= (3, 10), reason="evaluated there")
    def test_union_in_a_string_has_a_remedy_on_python_39(self):
        with pytest.raises(TypeError, match=r"'x'.*write Optional\[int\]"):
            m.signature_of(run_source("def f(x: 'int | None'): ...")["f"])

    @pytest.mark.skipif(sys.version_info < (3, 10), reason="no such syntax")
    def test_union_with_a_bar(self):
        names = run_source("def f(x: int | None, y: 'list[str] | int' = 1): ...")
        schema = m.signature_of(names["f"]).schema["properties"]
        assert schema["x"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
        assert schema["y"]["anyOf"][0]["type"] == "array"

    @pytest.mark.skipif(sys.version_info < (3, 11), reason="no such names")
    def test_required_and_not_required(self):
        source = (
            "class T(typing.TypedDict):\n  a: int\n  b: typing.NotRequired[bytes]\n"
            "class S(T, total=False):\n  c: typing.Required['int']\n"
            "  d: 'typing.Annotated[typing.Required[int], 0]'\n  e: int\n"
        )
        names = run_source(source)
        assert m.schema_of(names["S"])["required"] == ["a", "c", "d"]
        assert m.converter_of(names["T"])({"a": 1.0, "b": "aGk="}) == {"a": 1, "b": b"hi"}

    @pytest.mark.skipif(sys.version_info < (3, 12), reason="no such syntax")
    def test_type_statement_may_be_recursive(self):
        names = run_source("type Tree = dict[str, Tree] | int\ntype Id = int\ndef f(t: Tree, i: Id): ...")
        signature = m.signature_of(names["f"])
        assert signature.schema["properties"] == {
            "t": {"$ref": "#/$defs/Tree"},
            "i": {"type": "integer"},
        }
        m.compile_schema(signature.schema).check({"t": {"a": {"b": 1}}, "i": 1})
        assert signature.bind({"t": {"a": {"b": 1.0}}, "i": 2.0}) == {"t": {"a": {"b": 1}}, "i": 2}


RELAXED = [
    ({"type": "integer"}, "3", 3),
    ({"type": "integer"}, "-3", -3),
    ({"type": "integer"}, "3.0", 3.0),
    ({"type": "integer"}, "3.5", "3.5"),
    ({"type": "integer"}, "+3", "+3"),
    ({"type": "integer"}, " 3", " 3"),
    ({"type": "integer"}, "\u0663", "\u0663"),
    ({"type": "integer"}, "1_0", "1_0"),
    ({"type": "integer"}, "9" * (m.MAX_INT_DIGITS + 1), "9" * (m.MAX_INT_DIGITS + 1)),
    ({"type": "number"}, "2.5e1", 25.0),
    ({"type": "number"}, "NaN", "NaN"),
    ({"type": "boolean"}, "true", True),
    ({"type": "boolean"}, "True", "True"),
    ({"type": "boolean"}, "1", "1"),
    ({"type": "array"}, "[1, 2]", [1, 2]),
    ({"type": "object"}, '{"a": 1}', {"a": 1}),
    ({"type": "object"}, "[1]", "[1]"),
    ({"type": "object"}, "{", "{"),
    ({"type": "array"}, "[" * 1000, "[" * 1000),
    ({"type": ["integer", "null"]}, "null", None),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "3", 3),
    ({"enum": [1, 2]}, "2", 2),
    ({"$ref": "#/$defs/N"}, '{"v": 1}', {"v": 1}),
    # where a string may be meant, it is
    ({"type": "string"}, "3", "3"),
    ({}, "3", "3"),
    (True, "3", "3"),
    ({"type": ["integer", "string"]}, "3", "3"),
    ({"anyOf": [{"type": "integer"}, {}]}, "3", "3"),
    ({"enum": [1, "x"]}, "1", "1"),
    ({"const": "x"}, "1", "1"),
    ({"$ref": "#/$defs/S"}, "3", "3"),
    ({"$ref": "http://x.test/"}, "3", "3"),
    ({"type": "integer"}, 3, 3),
]


class TestLenientInput:
    """Models send "3" for 3: understood where nothing else can be meant."""

    @pytest.mark.parametrize("schema, given, meant", RELAXED, ids=repr)
    def test_string_is_read_where_the_schema_admits_no_string(self, schema, given, meant):
        defs = {"N": {"type": "object"}, "S": {"type": "string"}}
        relaxed = m.relax({"a": given}, {"properties": {"a": schema}, "$defs": defs})
        assert relaxed == {"a": meant} and type(relaxed["a"]) is type(meant)

    def test_null_for_what_may_be_absent_is_absent(self):
        optional = {"properties": {"a": {"type": "integer"}}}
        assert m.relax({"a": None, "b": None}, optional) == {"b": None}
        assert m.relax({"a": None}, {**optional, "required": ["a"]}) == {"a": None}
        assert m.relax({"a": None}, {"properties": {"a": {"type": ["null"]}}}) == {"a": None}

    def test_valid_arguments_are_never_changed(self):
        """Seeded: whatever a schema admits, relax() returns as it is."""
        dice = rng("relax")
        kinds = ["null", "boolean", "integer", "number", "string", "array", "object"]
        values = [None, True, 3, 2.5, "3", "true", "null", "[]", "{}", [], {}]
        for _ in range(2000):
            some = dice.sample(kinds, dice.randint(1, 3))
            forms = [{"type": some}, {"anyOf": [{"type": kind} for kind in some]}]
            schema = {"properties": {"a": dice.choice(forms)}}
            given = {"a": dice.choice(values)}
            if not m.compile_schema(schema).errors(given):
                assert m.relax(given, schema) == given


###############################################################################
# T6. URI templates and cursors
###############################################################################


class TestTemplates:
    """RFC 6570, as far as resource templates need it."""

    @pytest.mark.parametrize(
        "template, uri, values",
        [
            ("note://{name}", "note://a", {"name": "a"}),
            ("note://{name}", "note://", None),
            ("note://{name}", "note://a/b", None),
            ("note://{name}", "note://a?b", None),
            ("note://{name}", "note://a#b", None),
            ("note://{name}", "note://a%3Fb", {"name": "a?b"}),
            ("note://{name}", "NOTE://a", None),
            ("note://{name}", "xnote://a", None),
            ("note://all", "note://all", {}),
            ("note://all", "note://al", None),
            ("x://{a}/{b}", "x://1/2", {"a": "1", "b": "2"}),
            ("x://{a}/{b}", "x://1//2", None),
            ("x://{a}/b/{c}/d", "x://1/b/2/d", {"a": "1", "c": "2"}),
            ("x://{a}/b/{c}/d", "x://1/b/2/d/", None),
            ("x://{a,b}", "x://1,2,3", {"a": "1", "b": "2,3"}),
            ("x://{a}-{b}", "x://1-2-3", {"a": "1", "b": "2-3"}),
            ("x://{a}-{b}", "x://-2", None),
            ("x://{a}-{b}", "x://--2", {"a": "-", "b": "2"}),
            ("x://{a}.{b}.z", "x://1.z.z", {"a": "1", "b": "z"}),
            ("x://{a}.{b}.z", "x://1.z", None),
            ("x://u{/a,b}", "x://u/1/2", {"a": "1", "b": "2"}),
            ("x://f{.ext}", "x://f.tar.gz", {"ext": "tar.gz"}),
            ("file:///{path*}", "file:///a/b/c", {"path": "a/b/c"}),
            ("file:///{+path}", "file:///a/b?c#d", {"path": "a/b?c#d"}),
            ("file://{+path}", "file:///a/b", {"path": "/a/b"}),
            ("file:/{/path*}", "file://a/b", {"path": "a/b"}),
            ("file:///{path*}", "file:///", None),
            ("x://{+p}/info", "x://a/info/info", {"p": "a/info"}),
            ("x://{+p}/info", "x:///info", None),
            ("x://{+p}/{name}.txt", "x://a/b/c.txt", {"p": "a/b", "name": "c"}),
            ("x://{repo}/{+p}/{name}@{rev}", "x://r/a/b/c@d@e", {"repo": "r", "p": "a/b"}),
            ("x://s{?q,lang}", "x://s", {}),
            ("x://s{?q,lang}", "x://s?", {}),
            ("x://s{?q,lang}", "x://s?q=a%26b", {"q": "a&b"}),
            ("x://s{?q,lang}", "x://s?lang=en&q=a+b=c/../d", {"q": "a+b=c/../d", "lang": "en"}),
            ("x://s{?q,lang}", "x://s?q", {"q": ""}),
            ("x://s{?q,lang}", "x://s?q=1&q=2", None),
            ("x://s{?q,lang}", "x://s?q=1&other=2", None),
            ("x://s{?q,lang}", "x://s?q=1&", None),
            ("x://s/{a}{?q}", "x://s/1?q=2", {"a": "1", "q": "2"}),
            ("x://s?q={q}", "x://s?q=1", {"q": "1"}),
            ("x://é/{a}", "x://%C3%A9/ü", {"a": "ü"}),
            ("x://é/{a}", "x://é/%C3%BC", {"a": "ü"}),
            ("x://{a}", "x://a b", {"a": "a b"}),
        ],
    )
    def test_a_uri_matches_in_one_way_or_not_at_all(self, template, uri, values):
        """RFC 6570 §3.2, read backwards."""
        if values is not None and "rev}" in template:
            values = {**values, "name": "c@d", "rev": "e"}
        assert m.Template(template).match(uri) == values

    @pytest.mark.parametrize(
        "template, uri",
        [
            ("x://{a}", "x://..%2Fpasswd"),
            ("x://{a}", "x://a%2Fb"),
            ("x://{a}", "x://a%2fb"),
            ("x://{a}", "x://.."),
            ("x://{a}", "x://%2E%2e"),
            ("x://{a}", "x://."),
            ("x://{a}", "x://a%5Cb"),
            ("x://{a}", "x://..\\b"),
            ("x://{+p}", "x://a/../../etc"),
            ("x://{+p}", "x://a/%2E%2E/etc"),
            ("x://{+p}", "x://.."),
            ("x://{p*}", "x://a%5C..%5Cb"),
            ("x://{p*}", "x:///etc/passwd"),
            ("x:///{p*}", "x:////etc/passwd"),
            ("file:///{p*}", "file:////etc/passwd"),
            ("x:///{p*}", "x:///%2Fetc/passwd"),
        ],
    )
    def test_no_value_leaves_its_folder(self, template, uri):
        """Rule 2: a handler may be `open(root / name)`."""
        assert m.Template(template).match(uri) is None

    @pytest.mark.parametrize("name", ["a..b", "...", "..a", ".a", "a."])
    def test_dots_within_a_name_are_only_dots(self, name):
        assert m.Template("x://{a}").match(f"x://{name}") == {"a": name}
        assert m.Template("x://{+a}").match(f"x://d/{name}") == {"a": f"d/{name}"}

    def test_values_are_decoded_exactly_once(self):
        assert m.Template("x://{a}").match("x://%2541") == {"a": "%41"}
        assert m.Template("x://{a}").match("x://%252F") == {"a": "%2F"}

    @pytest.mark.parametrize("bad", ["%", "%4", "%zz", "%+1", "%FF", "%C3", "%ED%A0%80", "\ud800"])
    def test_bad_escapes_do_not_match(self, bad):
        """UTF-8 is strict: no lone surrogates, no overlong or cut sequences."""
        for template in ("x://{a}", "x://{+a}"):
            assert m.Template(template).match(f"x://n{bad}") is None
        assert m.Template("x://n{?a}").match(f"x://n?a={bad}") is None

    @pytest.mark.parametrize(
        "template, remedy",
        [
            ("{name}", "begin with a scheme"),
            ("/users/{id}", "begin with a scheme"),
            ("", "begin with a scheme"),
            ("x://{", "brace"),
            ("x://}", "brace"),
            ("x://{a", "brace"),
            ("x://{{a}}", "brace"),
            ("x://{}", "write {name}"),
            ("x://{a,}", "write {name}"),
            ("x://{a b}", "write {name}"),
            ("x://{a.b}", "write {name}"),
            ("x://{1}", "write {name}"),
            ("x://{a:3}", "write {name}"),
            ("x://{é}", "write {name}"),
            ("x://{#a}", "write {name}"),
            ("x://{;a}", "write {name}"),
            ("x://s?a=1{&b}", "write {name}"),
            ("x://{a**}", "write {name}"),
            ("x://s{?a*}", "write {name}"),
            ("x://s{?a}/b", "write {?a,b} once, at the end"),
            ("x://s{?}", "write {name}"),
            ("x://s{?a", "write {?a,b} once, at the end"),
            ("x://s?{?a}", "write {?a,b} once, at the end"),
            ("x://s{?a}{?b}", "write {name}"),
            ("x://{a}{b}", "put text between"),
            ("x://{+a,b}", "one may have"),
            ("x://{+a}/{b*}", "one may have"),
            ("x://{a}/{a}", "each variable once"),
            ("x://{a}{?a}", "each variable once"),
        ],
    )
    def test_a_bad_template_is_refused_with_a_remedy(self, template, remedy):
        with pytest.raises(ValueError) as caught:
            m.Template(template)
        assert remedy in str(caught.value)
        assert repr(template) in str(caught.value)

    def test_a_template_has_limits(self):
        text = "x://{a}".ljust(m.MAX_TEMPLATE_CHARS, "b")
        assert m.Template(text).names == ["a"]
        with pytest.raises(ValueError, match=str(m.MAX_TEMPLATE_CHARS)):
            m.Template(text + "b")
        names = [f"v{i}" for i in range(m.MAX_TEMPLATE_NAMES + 1)]
        assert m.Template("x://{" + ",".join(names[:-1]) + "}").names == names[:-1]
        with pytest.raises(ValueError, match=str(m.MAX_TEMPLATE_NAMES)):
            m.Template("x://{" + ",".join(names) + "}")

    def test_a_uri_has_a_limit(self):
        uri = "x://".ljust(m.MAX_URI_CHARS, "a")
        assert m.Template("x://{a}").match(uri) == {"a": uri[4:]}
        assert m.Template("x://{a}").match(uri + "a") is None

    def test_matching_takes_linear_time(self):
        """CVE-2026-0621: a regular expression made of a template can be made to hang."""
        names = [f"v{i}" for i in range(m.MAX_TEMPLATE_NAMES - 2)]
        template = m.Template("x://{" + ",".join(names) + "}/{+p}a{q}!")
        began = time.process_time()
        for uri in ("x://" + "," * 8000, "x://" + "a" * 8000, "x://" + ",a/" * 2600 + "a"):
            assert template.match(uri) is None
        assert time.process_time() - began < 1  # it takes some 3 ms; exponential is for ever

    @pytest.mark.parametrize(
        "template, values, uri",
        [
            ("x://{a}", {"a": "1/2 é"}, "x://1%2F2%20%C3%A9"),
            ("x://{+a}", {"a": "1/2?3"}, "x://1/2?3"),
            ("x://{+a}{?q}", {"a": "1/2?3", "q": "?"}, "x://1/2%3F3?q=%3F"),
            ("x://{a*}", {"a": "1/2?3%41"}, "x://1/2%3F3%2541"),
            ("x://u{/a,b}{.c}", {"a": "1", "b": "2", "c": "3"}, "x://u/1/2.3"),
            ("x://s{?q,r}", {}, "x://s"),
            ("x://s{?q,r}", {"r": "a&b=c"}, "x://s?r=a%26b%3Dc"),
        ],
    )
    def test_expansion_escapes_what_the_place_requires_and_matches_back(
        self, template, values, uri
    ):
        """RFC 6570 §3.2; it differs where "%41" in a value would pass unescaped."""
        assert m.Template(template).expand(values) == uri
        back = m.Template(template).match(uri)
        assert back == (values if "1/2 é" not in values.values() else None)

    def test_expansion_names_the_missing_value(self):
        with pytest.raises(ValueError, match="'b'"):
            m.Template("x://{a}/{b}").expand({"a": "1"})

    def test_what_a_client_expands_the_server_takes_apart(self):
        dice, template = rng("templates"), m.Template("x://{a}/d/{+p}/e/{b}{?q}")
        for _ in range(500):
            text = "".join(dice.choices("ab%?#&=é \U0001f600+,.", k=dice.randint(1, 8)))
            values = {"a": text, "p": f"x/{text}/y", "b": text + "z", "q": text}
            if text not in (".", ".."):
                assert template.match(template.expand(values)) == values

    def test_garbage_matches_or_does_not_and_never_raises(self):
        dice = rng("uris")
        templates = [m.Template(t) for t in ("x:{a}", "x:{+a}", "x:{a}.{+b},{c}{?d}", "x:{?a}")]
        for _ in range(3000):
            uri = "x:" + "".join(dice.choices("a%2F/.,?&=\\é\ud800\0\n", k=dice.randint(0, 12)))
            for template in templates:
                values = template.match(uri)
                assert values is None or set(values) <= set(template.names)


class TestCursors:
    """spec: server/utilities/pagination"""

    @staticmethod
    def pages(registry, size, between=lambda: None):
        cursor = None
        while True:
            items, cursor = m.page("tools/list", registry.items(), cursor, size)
            yield items
            if cursor is None:
                return
            between()

    @pytest.mark.parametrize(
        "count, sizes", [(0, [0]), (1, [1]), (2, [2]), (3, [2, 1]), (4, [2, 2]), (5, [2, 2, 1])]
    )
    def test_the_last_page_has_no_cursor(self, count, sizes):
        registry = {i: f"tool{i}" for i in range(count)}
        pages = list(self.pages(registry, 2))
        assert [len(items) for items in pages] == sizes
        assert sum(pages, []) == list(registry.values())

    def test_a_cursor_survives_insertions_and_removals(self):
        """What existed throughout is told exactly once, also if the item of the cursor goes."""
        for seed in range(200):
            dice = rng(f"pages {seed}")
            serials = iter(range(100, 10_000))
            registry = {i: i for i in range(dice.randint(1, 30))}
            removed = set()

            def change(dice=dice, registry=registry, removed=removed, serials=serials):
                for gone in dice.sample(sorted(registry), min(len(registry), 2)):
                    removed.add(gone)
                    del registry[gone]
                if dice.random() < 0.5:
                    new = next(serials)
                    registry[new] = new

            told = sum(self.pages(registry, dice.randint(1, 4), change), [])
            assert len(told) == len(set(told))
            assert set(registry) <= set(told)
            assert told == sorted(told)

    def test_a_cursor_belongs_to_its_list(self):
        cursor = m.encode_cursor("tools/list", 3)
        assert m.decode_cursor("tools/list", cursor) == 3
        with pytest.raises(m.RPCError):
            m.decode_cursor("prompts/list", cursor)

    @pytest.mark.parametrize(
        "cursor",
        ["", "x", "dG9vbHMvbGlzdDo0Mg==", "dG9vbHMvbGlzdDo0Mh", "dG9vbHMvbGlzdDo0M", "é", "\ud800"]
        + ["dG9vbHM6", "dG9vbHMvbGlzdDorNQ", "dG9vbHMvbGlzdDrZow", "a" * 10_000]
        + [5, True, ["a"], {}, {"a": 1}, 1.5, "dG9vbHMvbGlzdDo5" + "OTk5" * 2000],
    )
    def test_an_invalid_cursor_is_an_error(self, cursor):
        """spec: server/utilities/pagination#error-handling"""
        with pytest.raises(m.RPCError) as caught:
            m.page("tools/list", [(1, "a")], cursor, 10)
        assert caught.value.code == -32602
        assert "tools/list" in caught.value.message


###############################################################################
# T8. HTTP/1.1
###############################################################################


class EagerRequests(m.RequestDecoder):
    """Resumes at once: all pipelined requests are items, so that every cutting gives the same."""

    def feed(self, data):
        return self.drain(super().feed(data))

    def eof(self):
        return self.drain(super().eof())

    def drain(self, items):
        more = items
        while more:
            try:
                more = self.resume()
            except m.ProtocolError:  # raised again by the next call
                break
            items = items + more
        return items


class HeadFirst(m.ResponseDecoder):
    """Puts the head before the pieces of the body, so that both are compared."""

    def __init__(self, method="GET"):
        self.told = False
        super().__init__(method)

    def feed(self, data):
        return self.tell(super().feed, data)

    def eof(self):
        return self.tell(super().eof)

    def tell(self, call, *args):
        items = []
        try:
            items = call(*args)
        except m.ProtocolError:
            if self.head is None or self.told:
                raise
        if self.head is not None and not self.told:
            self.told = True
            items = [self.head, *items]
        return items


def requests_in(data, **options):
    """Return (method, target, headers, body) of the requests in `data`, however it is cut."""
    pairs = feed_every_way(EagerRequests, data, **options)
    return [(head.method, head.target, head.headers, body) for head, body in pairs]


HOST = b"Host: a\r\n"


class TestRequests:
    """RFC 9112 §2, §3, §6, §7: what a server reads."""

    @pytest.mark.parametrize(
        "data, expected",
        [
            (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", ("GET", "/", {"host": "a"}, b"")),
            (
                b"POST /mcp?x=%20 HTTP/1.1\r\nhOST:a:80\r\nCONTENT-LENGTH: 5\r\n\r\nhello",
                ("POST", "/mcp?x=%20", {"host": "a:80", "content-length": "5"}, b"hello"),
            ),
            # a body may look like anything
            (
                b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18\r\n\r\nGET / HTTP/1.1\r\n\r\n",
                ("POST", "/", {"host": "a", "content-length": "18"}, b"GET / HTTP/1.1\r\n\r\n"),
            ),
            (
                b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 000\r\n\r\n",
                ("POST", "/", {"host": "a", "content-length": "000"}, b""),
            ),
            # RFC 9112 §2.2: one empty line before a request is passed over
            (b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", ("GET", "/", {"host": "a"}, b"")),
            # §2.3: a higher minor version is 1.1; HTTP/1.0 needs no Host
            (b"GET / HTTP/1.7\r\nHost: a\r\n\r\n", ("GET", "/", {"host": "a"}, b"")),
            (b"GET / HTTP/1.0\r\n\r\n", ("GET", "/", {}, b"")),
            # §3.2: the forms of a target
            (b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", ("OPTIONS", "*", {"host": "a"}, b"")),
            (
                b"GET http://b:1/p?q HTTP/1.1\r\nHost: a\r\n\r\n",
                ("GET", "/p?q", {"host": "b:1"}, b""),
            ),
            (b"GET HTTPS://b HTTP/1.1\r\nHost: a\r\n\r\n", ("GET", "/", {"host": "b"}, b"")),
            (b"GET http://b?q HTTP/1.0\r\n\r\n", ("GET", "/?q", {"host": "b"}, b"")),
            (b"GET //b/c HTTP/1.1\r\nHost: a\r\n\r\n", ("GET", "//b/c", {"host": "a"}, b"")),
            # RFC 9110 §5.5: blanks around a value are not part of it; bytes over 127 are opaque
            (
                b"GET / HTTP/1.1\r\nHost: \t [::1]:8000\t \r\nX:\r\nY: a\tb \xe9\r\n\r\n",
                ("GET", "/", {"host": "[::1]:8000", "x": "", "y": "a\tb \xe9"}, b""),
            ),
            # §5.3: lists over several lines
            (
                b"GET / HTTP/1.1\r\nAccept: a/b\r\nHost: a\r\naccept:c/d, e/f\r\n\r\n",
                ("GET", "/", {"accept": "a/b, c/d, e/f", "host": "a"}, b""),
            ),
            (b"QUERY!x / HTTP/1.1\r\nHost: a\r\n\r\n", ("QUERY!x", "/", {"host": "a"}, b"")),
        ],
    )
    def test_a_request_however_it_is_cut(self, data, expected):
        assert requests_in(data) == [expected]

    @pytest.mark.parametrize(
        "body, expected",
        [
            (b"0\r\n\r\n", b""),
            (b"5\r\nhello\r\n0\r\n\r\n", b"hello"),
            (b"00005\r\nhello\r\n1\r\n \r\n000\r\n\r\n", b"hello "),
            (b"a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", b"0123456789" * 2),
            (b"2\r\n\r\n\r\n0\r\n\r\n", b"\r\n"),
            # RFC 9112 §7.1.1: extensions are ignored; §7.1.2: so are trailers
            (b'5;a=1;b="x;y" ; c\r\nhello\r\n0 ;last\r\n\r\n', b"hello"),
            (b"1\r\nx\r\n0\r\nContent-Length: 9\r\nHost: evil\r\n\r\n", b"x"),
        ],
    )
    def test_a_chunked_body_however_it_is_cut(self, body, expected):
        """RFC 9112 §7.1"""
        head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"
        headers = {"host": "a", "transfer-encoding": "Chunked"}
        assert requests_in(head + body) == [("POST", "/", headers, expected)]

    def test_pipelined_requests_come_in_order(self):
        data = (
            b"POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"
            b"GET /2 HTTP/1.1\r\nHost: a\r\n\r\n\r\n"
            b"POST /3 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
            b"GET /4 HTTP/1.1\r\nHost: a\r\n\r\n"
        )
        found = [(target, body) for _, target, _, body in requests_in(data, eof=True)]
        assert found == [("/1", b"{}"), ("/2", b""), ("/3", b"x"), ("/4", b"")]

    def test_nothing_is_parsed_ahead_of_the_request_being_served(self):
        decoder = m.RequestDecoder()
        get = b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n"
        [(head, _)] = decoder.feed(get % 1 + get % 2)
        assert head.target == "/1" and bytes(decoder.buffer) == get % 2
        assert decoder.feed(b"nonsense\n") == [] and decoder.eof() == []
        [(head, _)] = decoder.resume()
        assert head.target == "/2"
        with pytest.raises(m.ProtocolError):
            decoder.resume()

    def test_the_head_is_there_before_the_body(self):
        decoder = m.RequestDecoder()
        assert decoder.feed(b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n") == []
        assert decoder.head is None
        assert decoder.feed(b"Content-Length: 1\r\n\r\n") == []
        assert decoder.head.target == "/" and m.wants_continue(decoder.head)
        [(head, body)] = decoder.feed(b"x")
        assert head.target == "/" and body == b"x" and decoder.head is None

    @pytest.mark.parametrize("data", [b"", b"\r\n", b"GET / HTTP/1.0\r\n\r\n"])
    def test_the_end_between_requests_is_no_error(self, data):
        assert len(feed_every_way(EagerRequests, data, eof=True)) == data.count(b"GET")

    @pytest.mark.parametrize(
        "data",
        [
            b"G",
            b"\r",
            b"\r\n\r",
            b"GET / HTTP/1.1\r\nHost: a\r\n",
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{",
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{",
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r",
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        ],
    )
    def test_the_end_inside_a_request_is_an_error(self, data):
        """RFC 9112 §8"""
        assert "ended inside" in str(errors_every_way(EagerRequests, data, eof=True))

    def test_good_requests_before_a_bad_one_are_served(self):
        data = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n\r\n"
        error = errors_every_way(EagerRequests, data)
        assert (error.http_status, str(error)) == (400, "the header host is missing")


# RFC 9112 §11.2: request smuggling lives where two readers of the same bytes disagree. Each row is
# something that a reader somewhere accepts.
SMUGGLING = [
    # the request line
    (400, b" GET / HTTP/1.1\r\nHost: a\r\n\r\n", "request line"),
    (400, b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "request line"),
    (400, b"\r\n\r\n", "request line"),
    (400, b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "request line"),
    (400, b"GET /\tHTTP/1.1\r\nHost: a\r\n\r\n", "request line"),
    (400, b"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", "request line"),
    (400, b"GET / x HTTP/1.1\r\nHost: a\r\n\r\n", "request line"),
    (400, b"GET /\r\n\r\n", "request line"),
    (400, b"GET\r\nHost: a\r\n\r\n", "request line"),
    (400, b"G\xcbT / HTTP/1.1\r\nHost: a\r\n\r\n", "request line"),
    (400, b"GE(T / HTTP/1.1\r\nHost: a\r\n\r\n", "request line"),
    (400, b"GET /\xe9 HTTP/1.1\r\nHost: a\r\n\r\n", "request line"),
    (400, b"GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n", "request line"),
    (400, b"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", "request line"),
    (400, b"GET / http/1.1\r\nHost: a\r\n\r\n", "request line"),
    (400, b"GET / HTTP/1.1x\r\nHost: a\r\n\r\n", "request line"),
    (400, b"GET / HTTP/11\r\nHost: a\r\n\r\n", "request line"),
    (400, b"GET / HTTP/1.\xb2\r\nHost: a\r\n\r\n", "request line"),
    (505, b"GET / HTTP/0.9\r\nHost: a\r\n\r\n", "HTTP/0.9"),
    (505, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/2.0"),
    # the target
    (501, b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", "CONNECT"),
    (400, b"GET a HTTP/1.1\r\nHost: a\r\n\r\n", "target"),
    (400, b"GET * HTTP/1.1\r\nHost: a\r\n\r\n", "target"),
    (400, b"GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", "target"),
    (400, b"GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n", "the host is not"),
    (400, b"GET http://u:p@a/ HTTP/1.1\r\nHost: a\r\n\r\n", "the host is not"),
    # Host
    (400, b"GET / HTTP/1.1\r\n\r\n", "host is missing"),
    (400, b"GET http://a/ HTTP/1.1\r\n\r\n", "host is missing"),
    (400, b"GET / HTTP/1.1\r\nHost:\r\n\r\n", "the host is not"),
    (400, b"GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", "the host is not"),
    (400, b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "the host is not"),
    (400, b"GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", "the host is not"),
    (400, b"GET / HTTP/1.1\r\nHost: ::1\r\n\r\n", "the host is not"),
    (400, b"GET / HTTP/1.1\r\nHost: a:x\r\n\r\n", "the host is not"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", "host is given twice"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "host is given twice"),
    # header lines
    (400, b"GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n", "line 2 has a space before its colon"),
    (400, b"GET / HTTP/1.1\r\nHost\t: a\r\n\r\n", "line 1 has a space before its colon"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n", "line 3 continues the line"),
    (400, b"GET / HTTP/1.1\r\n Host: a\r\n\r\n", "line 1 continues the line"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\n\tX: b\r\n\r\n", "line 2 continues the line"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n", "line 2 has no colon"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", "line 2 has a name with forbidden"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\nX\x00: b\r\n\r\n", "line 2 has a name with forbidden"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\nX\xaa: b\r\n\r\n", "line 2 has a name with forbidden"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\nX(y): b\r\n\r\n", "line 2 has a name with forbidden"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n", "line 2 has control characters"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: \x0b\r\n\r\n", "line 2 has control characters"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: \x7f\r\n\r\n", "line 2 has control characters"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: b\rc\r\n\r\n", "line 2 has control characters"),
    (400, b"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", "line 1 has control characters"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: b\r\r\n\r\n", "line 2 has control characters"),
    # bare line feeds
    (400, b"GET / HTTP/1.1\nHost: a\n\n", "bare line feed"),
    (400, b"GET / HTTP/1.1\nHost: a\r\n\r\n", "bare line feed"),
    (400, b"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", "bare line feed"),
    (400, b"GET / HTTP/1.1\r\nHost: a\n\r\n\r\n", "bare line feed"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\n\nX: b\r\n\r\n", "bare line feed"),
    (400, b"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "bare line feed"),
    # fields that steer us
    (400, HOST + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\nx", "is given twice"),
    (400, HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nx", "is given twice"),
    (400, HOST + b"Content-Type: a/b\r\nContent-Type: c/d\r\n\r\n", "content-type is given twice"),
    (400, HOST + b"Authorization: a\r\nAuthorization: b\r\n\r\n", "authorization is given twice"),
    (400, HOST + b"Origin: http://a\r\nOrigin: http://b\r\n\r\n", "origin is given twice"),
    (400, HOST + b"Mcp-Session-Id: 1\r\nmcp-session-id: 2\r\n\r\n", "is given twice"),
    (400, HOST + b"Mcp-Method: a\r\nMcp-Method: b\r\n\r\n", "mcp-method is given twice"),
    (400, HOST + b"Mcp-Name: a\r\nMcp-Name: b\r\n\r\n", "mcp-name is given twice"),
    (400, HOST + b"Last-Event-ID: 1\r\nLast-Event-ID: 2\r\n\r\n", "last-event-id is given twice"),
    (
        400,
        HOST + b"MCP-Protocol-Version: 1\r\nMCP-Protocol-Version: 2\r\n\r\n",
        "mcp-protocol-version is given twice",
    ),
    # the length of a body
    (400, HOST + b"Content-Length: +5\r\n\r\nhello", "content-length is not a number"),
    (400, HOST + b"Content-Length: -1\r\n\r\nhello", "content-length is not a number"),
    (400, HOST + b"Content-Length: 5, 5\r\n\r\nhello", "content-length is not a number"),
    (400, HOST + b"Content-Length: 5 5\r\n\r\nhello", "content-length is not a number"),
    (400, HOST + b"Content-Length: 0x5\r\n\r\nhello", "content-length is not a number"),
    (400, HOST + b"Content-Length: 1_0\r\n\r\nhellohello", "content-length is not a number"),
    (400, HOST + b"Content-Length: 5.0\r\n\r\nhello", "content-length is not a number"),
    (400, HOST + b"Content-Length: \xb2\r\n\r\nhe", "content-length is not a number"),
    (400, HOST + b"Content-Length: five\r\n\r\nhello", "content-length is not a number"),
    (400, HOST + b"Content-Length:\r\n\r\n", "content-length is not a number"),
    (400, HOST + b"Content-Length: 00000000000000000005\r\n\r\n", "content-length is not a number"),
    # its coding
    (400, HOST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "exclude each other"),
    (400, HOST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", "exclude each other"),
    (400, HOST + b"Transfer-Encoding: identity\r\nContent-Length: 5\r\n\r\n", "exclude each other"),
    (400, HOST + b"Transfer-Encoding: chunked, chunked\r\n\r\n", "one and last"),
    (
        400,
        HOST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        "one and last",
    ),
    (400, HOST + b"Transfer-Encoding: chunked, identity\r\n\r\n", "one and last"),
    (400, HOST + b"Transfer-Encoding: chunked, gzip\r\n\r\n", "one and last"),
    (400, HOST + b"Transfer-Encoding: gzip\r\n\r\n", "one and last"),
    (400, HOST + b"Transfer-Encoding: xchunked\r\n\r\n", "one and last"),
    (400, HOST + b'Transfer-Encoding: "chunked"\r\n\r\n', "one and last"),
    (400, HOST + b"Transfer-Encoding: chunked;q=1\r\n\r\n", "one and last"),
    (400, HOST + b"Transfer-Encoding: chunked,\r\n\r\n", "one and last"),
    (400, HOST + b"Transfer-Encoding:\r\n\r\n", "one and last"),
    (400, HOST + b"Transfer-Encoding: \x0bchunked\r\n\r\n", "line 2 has control characters"),
    (400, HOST + b"Transfer-Encoding : chunked\r\n\r\n", "line 2 has a space before its colon"),
    (501, HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n", "no transfer-encoding but chunked"),
    (501, HOST + b"Transfer-Encoding: , chunked\r\n\r\n", "no transfer-encoding but chunked"),
    (
        400,
        b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "does not exist in HTTP/1.0",
    ),
]

# What stands where chunks should: RFC 9112 §7.1
BAD_CHUNKS = [
    (b"x\r\n", "does not begin with its size"),
    (b"\r\nhello", "does not begin with its size"),
    (b"0x5\r\nhello\r\n", "does not begin with its size"),
    (b"+5\r\nhello\r\n", "does not begin with its size"),
    (b"-5\r\nhello\r\n", "does not begin with its size"),
    (b" 5\r\nhello\r\n", "does not begin with its size"),
    (b"5 \r\nhello\r\n", "does not begin with its size"),
    (b"1_0\r\nhello\r\n", "does not begin with its size"),
    (b"5\nhello\r\n", "does not begin with its size"),
    (b"5;a\nhello\r\n", "does not begin with its size"),
    (b"5;\x00\r\nhello\r\n", "does not begin with its size"),
    (b"5;a\rb\r\nhello\r\n", "does not begin with its size"),
    (b"\xb2\r\nhe\r\n", "does not begin with its size"),
    (b"00000000000000005\r\nhello\r\n", "does not begin with its size"),
    (b"5\r\nhelloXX", "does not end where its size says"),
    (b"5\r\nhello\n0", "does not end where its size says"),
    (b"5\r\nhello!\r\n", "does not end where its size says"),
    (b"5\r\nhell\r\n0\r\n\r\n", "does not end where its size says"),
    (b"0\r\n\n", "header line 1 ends in a bare line feed"),
    (b"0\r\nX: y\n", "header line 1 ends in a bare line feed"),
    (b"0\r\nGET / HTTP/1.1\r\n", "header line 1 has no colon"),
    (b"0\r\n X: y\r\n", "header line 1 continues the line before it"),
    (b"0\r\nX : y\r\n", "header line 1 has a space before its colon"),
]


class TestStrictness:
    """Issue: strict where leniency is a hole. Research 4.3 and 4.4, rule 2."""

    @pytest.mark.parametrize("status, data, why", SMUGGLING)
    def test_a_doubtful_head_is_refused(self, status, data, why):
        if data.startswith(HOST):
            data = b"POST / HTTP/1.1\r\n" + data
        error = errors_every_way(EagerRequests, data)
        assert why in str(error)
        assert error.http_status == status

    @pytest.mark.parametrize("chunks, why", BAD_CHUNKS)
    def test_a_doubtful_chunk_is_refused(self, chunks, why):
        head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        error = errors_every_way(EagerRequests, head + chunks)
        assert why in str(error) and error.http_status == 400
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert why in str(errors_every_way(HeadFirst, head + chunks))

    def test_after_an_error_nothing_more_is_read(self):
        """CVE-2024-49768, CVE-2022-29361"""
        decoder = m.RequestDecoder()
        with pytest.raises(m.ProtocolError):
            decoder.feed(b"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")
        for call in (decoder.resume, decoder.eof, lambda: decoder.feed(b"\r\n\r\n")):
            with pytest.raises(m.ProtocolError, match="the header host is missing"):
                call()

    def test_error_messages_repeat_no_value(self):
        """What a client sent as a secret does not come back in an answer, nor in a log."""
        for _, data, _ in SMUGGLING:
            with pytest.raises(m.ProtocolError) as caught:
                m.RequestDecoder().feed(data.replace(b"\r\n\r\n", b"\r\nX: secret\n\r\n\r\n"))
            assert "secret" not in str(caught.value) and str(caught.value).isascii()

    def test_a_whole_head_is_judged_as_strictly(self):
        """The same grammar for a block that did not come through a decoder."""
        for line, parse in (
            (b"GET / HTTP/1.0", m.parse_request_head),
            (b"HTTP/1.1 200 OK", m.parse_response_head),
        ):
            parse(line + b"\r\nX: y\r\n\r\n")
            for rest in (
                b"\r\nX: y\nZ: b\r\n\r\n",
                b"\r\nX: y\r\njunk\r\n",
                b"\r\nX: y",
                b"\r\n",
                b"",
            ):
                with pytest.raises(m.ProtocolError):
                    parse(line + rest)


def with_line(size):
    return b"GET /%b HTTP/1.1\r\nHost: a\r\n\r\n" % (b"x" * (size - 16))


def with_head(size):
    head = b"GET / HTTP/1.1\r\nHost: a\r\nX: %b\r\n\r\n"
    return head % (b"x" * (size - len(head) + 2))


def with_fields(count):
    return b"GET / HTTP/1.1\r\nHost: a\r\n%b\r\n" % (b"X: y\r\n" * (count - 1))


def chunked(body):
    return b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + body


def with_extension(size):
    return chunked(b"1;%b\r\nx\r\n0\r\n\r\n" % (b"x" * (size - 4)))


def with_trailer(size):
    return chunked(b"0\r\nX: y\r\nX: %b\r\n\r\n" % (b"x" * (size - 13)))


class TestLimits:
    """Every limit at the limit, and one past it."""

    @pytest.mark.parametrize(
        "make, limit, status",
        [
            (with_line, m.MAX_START_LINE_BYTES, 414),
            (with_head, m.MAX_HEAD_BYTES, 431),
            (with_fields, m.MAX_FIELDS, 431),
            (with_extension, m.MAX_CHUNK_LINE_BYTES, 400),
            (with_trailer, m.MAX_TRAILER_BYTES, 431),
            (lambda n: chunked(b"1\r\nx\r\n" * n + b"0\r\n\r\n"), m.MAX_CHUNKS, 413),
        ],
    )
    def test_a_limit_of_a_request(self, make, limit, status):
        assert len(m.RequestDecoder().feed(make(limit))) == 1
        for pieces in ([make(limit + 1)], [b"%c" % byte for byte in make(limit + 1)]):
            items, error = feed_pieces(m.RequestDecoder(), pieces, False)
            assert isinstance(error, m.LimitExceeded) and error.http_status == status
            assert items == []

    def test_a_head_that_never_ends_is_refused_in_time(self):
        decoder = m.RequestDecoder()
        assert decoder.feed(b"x" * m.MAX_START_LINE_BYTES) == []
        with pytest.raises(m.LimitExceeded, match="first line"):
            decoder.feed(b"x")
        decoder = m.RequestDecoder()
        assert decoder.feed(b"GET / HTTP/1.1\r\n" + b"x" * (m.MAX_HEAD_BYTES - 16)) == []
        with pytest.raises(m.LimitExceeded, match="header fields"):
            decoder.feed(b"x")

    @pytest.mark.parametrize(
        "data",
        [
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n",
            chunked(b"%x\r\n"),
            chunked(b"1\r\nx\r\n%x\r\n"),
        ],
    )
    def test_a_body_is_refused_by_its_declared_size(self, data):
        limit = 10 - data.count(b"\nx")
        decoder = m.RequestDecoder(max_body=10)
        assert decoder.feed(data % limit) == [] and decoder.head is not None
        for size in (limit + 1, 10**10):
            with pytest.raises(m.LimitExceeded) as caught:
                m.RequestDecoder(max_body=10).feed(data % size)
            assert caught.value.http_status == 413

    def test_a_declared_size_allocates_nothing(self):
        """CVE-2025-13836"""
        decoder = m.RequestDecoder(max_body=10**15)
        decoder.feed(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999999999\r\n\r\nx")
        assert sys.getsizeof(decoder.buffer) < 1000

    def test_many_interim_answers_leave_nothing_behind(self):
        decoder = m.ResponseDecoder("GET")
        for _ in range(10_000):
            assert decoder.feed(b"HTTP/1.1 102 Processing\r\n\r\n") == []
        assert decoder.head is None and not decoder.buffer

    @pytest.mark.parametrize("text", ['"' * 50_000, '"\\' * 50_000, ",;" * 50_000, "\\" * 50_000])
    def test_hostile_values_cost_linear_time(self, text):
        """CVE-2020-5236: quadratic, each would take minutes."""
        m.parse_list(text)
        m.parse_media_type(text)
        assert m.accepts(text, "a/b") is False


OK = b"HTTP/1.1 200 OK\r\n"


class TestResponses:
    """RFC 9112 §4, §6.3, §7, §9: what a client reads."""

    @pytest.mark.parametrize(
        "data, head, body",
        [
            (OK + b"Content-Length: 2\r\n\r\n{}", (200, "OK", {"content-length": "2"}), b"{}"),
            (
                b"HTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n",
                (404, "", {"content-length": "0"}),
                b"",
            ),
            (b"HTTP/1.1 599\r\nContent-Length: 0\r\n\r\n", (599, "", {"content-length": "0"}), b""),
            (
                b"HTTP/1.1 200 na\xefve \tOK\r\nContent-Length: 0\r\n\r\n",
                (200, "na\xefve \tOK", {"content-length": "0"}),
                b"",
            ),
            (
                OK
                + b"Transfer-Encoding: chunked\r\n\r\n3\r\n: x\r\n2;e\r\n\n\n\r\n0\r\nT: 1\r\n\r\n",
                (200, "OK", {"transfer-encoding": "chunked"}),
                b": x\n\n",
            ),
            (b"HTTP/1.1 204 No Content\r\n\r\n", (204, "No Content", {}), b""),
            (
                b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
                (304, "Not Modified", {"content-length": "9"}),
                b"",
            ),
            # RFC 9110 §15.2: interim answers come first, and are passed over
            (
                b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
                + OK
                + b"Content-Length: 1\r\n\r\nx",
                (200, "OK", {"content-length": "1"}),
                b"x",
            ),
            # lists may stand in several lines, also with commas of their own
            (
                b"HTTP/1.1 401 U\r\nWWW-Authenticate: A x=1, y\r\nWWW-Authenticate: B\r\n"
                b"Content-Length: 0\r\n\r\n",
                (401, "U", {"www-authenticate": "A x=1, y, B", "content-length": "0"}),
                b"",
            ),
        ],
    )
    def test_a_response_however_it_is_cut(self, data, head, body):
        first, *rest = feed_every_way(HeadFirst, data)
        assert (first.status, first.reason, first.headers) == head
        assert b"".join(rest) == body
        decoder = m.ResponseDecoder("GET")
        decoder.feed(data)
        assert decoder.done and decoder.reusable
        assert feed_every_way(HeadFirst, data, eof=True)[0] == first

    @pytest.mark.parametrize("head", [OK, b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n"])
    def test_without_a_length_the_body_goes_to_the_end(self, head):
        """RFC 9112 §6.3, 8."""
        items = feed_every_way(HeadFirst, head + b"\r\nGET / HTTP/1.1\r\n\r\n", eof=True)
        assert items[0].status == 200 and b"".join(items[1:]) == b"GET / HTTP/1.1\r\n\r\n"
        decoder = m.ResponseDecoder("GET")
        assert decoder.feed(head + b"\r\nx") == [b"x"] and not decoder.done
        assert decoder.eof() == [] and decoder.done and not decoder.reusable

    def test_a_stream_is_passed_on_as_it_comes(self):
        decoder = m.ResponseDecoder("POST")
        assert decoder.feed(OK + b"Transfer-Encoding: chunked\r\n\r\n") == []
        assert decoder.head.status == 200
        assert decoder.feed(b"9\r\ndata") == [b"data"]
        assert decoder.feed(b": 1\n\n\r") == [b": 1\n\n"]
        assert decoder.feed(b"\n0\r\n") == [] and not decoder.done and not decoder.reusable
        assert decoder.feed(b"\r\n") == [] and decoder.done

    @pytest.mark.parametrize(
        "method, head, done",
        [
            ("HEAD", OK + b"Content-Length: 5\r\n\r\n", True),
            ("HEAD", OK + b"Transfer-Encoding: chunked\r\n\r\n", True),
            ("CONNECT", OK + b"\r\n", True),
            ("CONNECT", OK + b"Content-Length: 5\r\n\r\n", True),
            ("CONNECT", b"HTTP/1.1 300 No\r\nContent-Length: 5\r\n\r\n", False),
            ("GET", OK + b"Content-Length: 5\r\n\r\n", False),
            ("GET", b"HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n", True),
        ],
    )
    def test_some_answers_have_no_body(self, method, head, done):
        """RFC 9112 §6.3, 1. and 2."""
        decoder = m.ResponseDecoder(method)
        assert decoder.feed(head) == [] and decoder.done is done
        assert decoder.feed(b"\x16\x03") == ([] if done else [b"\x16\x03"])
        assert bytes(decoder.buffer) == (b"\x16\x03" if done else b"")

    def test_what_follows_an_answer_spoils_the_connection(self):
        """An answer that nobody asked for must not become the answer to the next request."""
        decoder = m.ResponseDecoder("GET")
        decoder.feed(OK + b"Content-Length: 0\r\n\r\n" + OK)
        assert decoder.done and not decoder.reusable

    @pytest.mark.parametrize(
        "data, why",
        [
            (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "changed to another protocol"),
            (b"HTTP/2 200 OK\r\n\r\n", "not HTTP/1.1"),
            (b"HTTP/1.1  200 OK\r\n\r\n", "not HTTP/1.1"),
            (b"HTTP/1.1 20 OK\r\n\r\n", "not HTTP/1.1"),
            (b"HTTP/1.1 600 OK\r\n\r\n", "not HTTP/1.1"),
            (b"HTTP/1.1 200OK\r\n\r\n", "not HTTP/1.1"),
            (b"HTTP/1.1 200 O\x00K\r\n\r\n", "not HTTP/1.1"),
            (b"SSH-2.0-OpenSSH_9\r\n\r\n", "not HTTP/1.1"),
            (b"HTTP/1.1 200 OK\nContent-Length: 0\n\n", "bare line feed"),
            (OK + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\nx", "given twice"),
            (OK + b"Content-Length: 1, 1\r\n\r\nx", "not a number"),
            (OK + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "exclude each other"),
            (OK + b"Transfer-Encoding: gzip\r\n\r\n", "one and last"),
            (b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "does not exist"),
            (OK + b"Location: /a\r\nLocation: /b\r\n\r\n", "location is given twice"),
            (OK + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", "too big"),
        ],
    )
    def test_a_doubtful_response_is_refused(self, data, why):
        assert why in str(errors_every_way(HeadFirst, data))

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"HTTP/1.1 100 Continue\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n",
            OK + b"Content-Length: 2\r\n\r\n{",
            OK + b"Transfer-Encoding: chunked\r\n\r\n",
            OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx",
            OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n",
        ],
    )
    def test_a_response_cut_short_is_an_error(self, data):
        """RFC 9112 §8 -- an incomplete message, not a short one"""
        assert "the connection ended" in str(errors_every_way(HeadFirst, data, eof=True))

    @pytest.mark.parametrize(
        "version, connection, expected",
        [
            ((1, 1), None, True),
            ((1, 1), "close", False),
            ((1, 1), "Keep-Alive", True),
            ((1, 1), "TE, Close", False),
            ((1, 1), "keep-alive, close", False),
            ((1, 1), "closed", True),
            ((1, 0), None, False),
            ((1, 0), "keep-alive", True),
            ((1, 0), "Keep-Alive, TE", True),
            ((1, 0), "close", False),
        ],
    )
    def test_keep_alive(self, version, connection, expected):
        """RFC 9112 §9.3"""
        headers = {} if connection is None else {"connection": connection}
        assert m.is_keep_alive(m.RequestHead("GET", "/", version, headers)) is expected
        assert m.is_keep_alive(m.ResponseHead(200, "", version, headers)) is expected

    @pytest.mark.parametrize(
        "version, expect, expected",
        [((1, 1), "100-CONTINUE", True), ((1, 0), "100-continue", False), ((1, 1), "x", False)],
    )
    def test_expect(self, version, expect, expected):
        """RFC 9110 §10.1.1 -- an expectation in an HTTP/1.0 request is ignored"""
        head = m.RequestHead("POST", "/", version, {"expect": expect})
        assert m.wants_continue(head) is expected


class TestTargetsAndURLs:
    """RFC 9112 §3.2, RFC 3986."""

    @pytest.mark.parametrize(
        "target, expected",
        [
            ("/", ("/", "")),
            ("/mcp?a=%zz&b", ("/mcp", "a=%zz&b")),
            ("/a?b?c", ("/a", "b?c")),
            ("/%6Dcp", ("/mcp", "")),
            ("/%25%32%35", ("/%25", "")),  # once, not twice
            ("/a%20b%2Fc", ("/a b/c", "")),
            ("/%E2%82%AC", ("/\u20ac", "")),
            ("/.well-known/...", ("/.well-known/...", "")),
            ("*", ("*", "")),
        ],
    )
    def test_a_target_is_decoded_once(self, target, expected):
        assert m.parse_target(target) == expected

    @pytest.mark.parametrize(
        "target",
        "/% /%4 /%zz /%+1 /%00 /%0a /%1F /%7f /%ff /%C0%AF /%ED%A0%80"
        " /.. /a/../b /./a /a/. /%2e%2e/a /a%2f..%2fb /.%2E".split(),
    )
    def test_a_doubtful_path_is_refused(self, target):
        with pytest.raises(m.ProtocolError) as caught:
            m.parse_target(target)
        assert caught.value.http_status == 400

    @pytest.mark.parametrize(
        "url, expected",
        [
            ("http://a", ("http", "a", "a", 80, "/")),
            ("http://a/", ("http", "a", "a", 80, "/")),
            ("HTTPS://A.b:443/mcp?x=/?", ("https", "a.b", "a.b", 443, "/mcp?x=/?")),
            ("http://a:443", ("http", "a:443", "a", 443, "/")),
            ("https://a:80?q", ("https", "a:80", "a", 80, "/?q")),
            ("http://[::1]:8000/x", ("http", "[::1]:8000", "::1", 8000, "/x")),
            ("http://127.0.0.1:/x", ("http", "127.0.0.1", "127.0.0.1", 80, "/x")),
            ("http://a_b:1/caf\xe9%20\\", ("http", "a_b:1", "a_b", 1, "/caf%C3%A9%20%5C")),
        ],
    )
    def test_a_url(self, url, expected):
        found = m.parse_url(url)
        assert found == expected
        assert str(found) == f"{found.scheme}://{found.authority}{found.target}"
        assert m.parse_url(str(found)) == found
        head = m.encode_request("GET", found.target, {"Host": found.authority})
        assert m.parse_request_head(head).target == found.target

    @pytest.mark.parametrize(
        "url, why",
        [
            ("", "http(s)://"),
            ("a:80", "http(s)://"),
            ("ftp://a/", "http(s)://"),
            ("http\u017f://a/", "http(s)://"),
            ("http://a/#top", "#fragment"),
            ("http://a/ b", "blanks"),
            (" http://a/", "blanks"),
            ("http://a/\r\nX: y", "blanks"),
            ("http://a\n/", "blanks"),
            ("http://a\x00/", "blanks"),
            ("http://a/\x7f", "blanks"),
            ("http://", "not a host"),
            ("http://:80/", "not a host"),
            ("http://\u0430/", "not a host"),
            ("http://a\\b/", "not a host"),
            ("http://::1/", "not a host"),
            ("http://[::1/", "not a host"),
            ("http://a:b/", "not a host"),
            ("http://a:+1/", "not a host"),
            ("http://a:0/", "no port 0"),
            ("http://a:65536/", "no port 65536"),
            ("http://a:\u0661/", "not a host"),
            ("http://user:pw@a/", "headers="),
        ],
    )
    def test_what_is_not_a_url_of_ours_is_refused(self, url, why):
        with pytest.raises(ValueError) as caught:
            m.parse_url(url)
        assert why in str(caught.value) and "pw" not in str(caught.value)

    @pytest.mark.parametrize(
        "text, expected",
        [("a", ("a", None)), ("A:1", ("a", 1)), ("[A::1]:2", ("a::1", 2)), ("a:", ("a", None))],
    )
    def test_an_authority(self, text, expected):
        assert m.parse_authority(text) == expected


class TestValues:
    """RFC 9110 §5.6, §8.3.1, §12.5.1."""

    @pytest.mark.parametrize(
        "text, expected",
        [
            ("", []),
            (" , ,", []),
            ("a", ["a"]),
            ("a,b , c", ["a", "b", "c"]),
            ('"a,b",c', ['"a,b"', "c"]),
            (r'x="a\",b", c', [r'x="a\",b"', "c"]),
            ('a, "b, c', ["a", '"b, c']),
            (
                'Bearer realm="a, b", scope="c d", DPoP',
                ['Bearer realm="a, b"', 'scope="c d"', "DPoP"],
            ),
        ],
    )
    def test_a_list(self, text, expected):
        assert m.parse_list(text) == expected

    @pytest.mark.parametrize(
        "text, expected",
        [
            ("application/json", ("application/json", {})),
            ("Text/HTML;Charset=UTF-8", ("text/html", {"charset": "UTF-8"})),
            ('text/html ; charset="utf;8" ; x', ("text/html", {"charset": "utf;8"})),
            (r'a/b;x="\"\\y"', ("a/b", {"x": '"\\y'})),
            ("a/b; x=1; X=2", ("a/b", {"x": "1"})),
            ("", ("", {})),
            (";x=1", ("x=1", {})),
        ],
    )
    def test_a_media_type(self, text, expected):
        assert m.parse_media_type(text) == expected

    @pytest.mark.parametrize(
        "accept, json_too, events_too",
        [
            ("application/json, text/event-stream", True, True),
            ("application/json", True, False),
            ("text/event-stream;q=0.1", False, True),
            ("*/*", True, True),
            ("text/*", False, True),
            ("*/*;q=0.5, text/event-stream;q=0", True, False),
            ("text/*;q=0, */*", True, False),
            ("text/event-stream, text/*;q=0, */*;q=0.000", False, True),
            ("APPLICATION/JSON;charset=utf-8;Q=1.0", True, False),
            ("application/*;q=0.001", True, False),
            ("application/jsonx, text/event-streams", False, False),
            ("application/json-seq", False, False),
            ("", False, False),
            ("json", False, False),
            ("application/json;v=1, application/json;v=2;q=0", True, False),
        ],
    )
    def test_accept(self, accept, json_too, events_too):
        assert m.accepts(accept, "application/json") is json_too
        assert m.accepts(accept, "text/event-stream") is events_too


class TestEncoding:
    """What we write: whole, and not to be injected into (research 4.4, rule 10)."""

    @pytest.mark.parametrize(
        "name, value",
        [
            ("X", "a\r\nY: b"),
            ("X", "a\nY: b"),
            ("X", "a\rb"),
            ("X", "a\r\n\r\nbody"),
            ("X", "a\r\n folded"),
            ("X", "\x00"),
            ("X", "\x7f"),
            ("X", "\u20ac"),
            ("X", "\u2028"),
            ("X", "\u010d\u010a"),  # CR and LF, to a careless encoder
            ("X\r\nY", "a"),
            ("X: a\r\nY", "b"),
            ("X:Y", "a"),
            ("X ", "a"),
            (" X", "a"),
            ("", "a"),
            ("\xe9", "a"),
        ],
    )
    def test_headers_cannot_be_injected(self, name, value):
        """CVE-2020-7695, CVE-2018-1000164"""
        for headers in ({name: value}, {"A": "b", name: value, "C": "d"}):
            with pytest.raises(ValueError):
                m.encode_request("GET", "/", headers)
            with pytest.raises(ValueError):
                m.encode_response(200, headers, None)

    @pytest.mark.parametrize(
        "method, target",
        [
            ("GET", "/ HTTP/1.1\r\nX: y\r\n"),
            ("GET", "/\r\n"),
            ("GET", "/\n"),
            ("GET", "/a b"),
            ("GET", "/\x00"),
            ("GET", "/\xe9"),
            ("GET", "/#a"),
            ("GET", ""),
            ("GET /", "/"),
            ("G\r\nX", "/"),
            ("", "/"),
            ("CONNECT", "a:443 HTTP/1.1\r\nX: y"),
        ],
    )
    def test_request_lines_cannot_be_injected(self, method, target):
        """CVE-2020-26116, CVE-2019-11236, CVE-2026-1502"""
        with pytest.raises(ValueError):
            m.encode_request(method, target, {"Host": "a"})

    @pytest.mark.parametrize(
        "headers",
        [
            {"Content-Length": "5"},
            {"content-LENGTH": "2"},
            {"Transfer-Encoding": "chunked"},
            {"Accept": "a", "ACCEPT": "b"},
        ],
    )
    def test_there_is_one_framing_and_one_of_each(self, headers):
        with pytest.raises(ValueError):
            m.encode_request("POST", "/", headers, b"{}")
        with pytest.raises(ValueError):
            m.encode_response(200, headers, b"{}")

    def test_requests(self):
        """RFC 9110 §8.6: who sends a body says its size, be it 0."""
        assert m.encode_request("GET", "/", {"Host": "a"}) == b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        for method in ("PUT", "PATCH"):
            assert m.encode_request(method, "/", {}).endswith(b"\r\nContent-Length: 0\r\n\r\n")
        assert m.encode_request("POST", "/", {}) == b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n"
        assert (
            m.encode_request("DELETE", "/mcp", {"X": "\xe9"}, b"ab")
            == b"DELETE /mcp HTTP/1.1\r\nX: \xe9\r\nContent-Length: 2\r\n\r\nab"
        )
        assert (
            m.encode_request("CONNECT", "[::1]:443", {"Host": "[::1]:443"})
            == b"CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\n\r\n"
        )

    def test_responses(self):
        """RFC 9110 §8.6 -- no Content-Length in a 1xx or 204"""
        assert m.encode_response(202, {}) == b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
        assert m.encode_response(204, {}) == b"HTTP/1.1 204 No Content\r\n\r\n"
        assert m.encode_response(299, {}) == b"HTTP/1.1 299 \r\nContent-Length: 0\r\n\r\n"
        assert (
            m.encode_response(200, {"Transfer-Encoding": "chunked"}, None)
            == b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        assert (
            m.encode_response(200, {"Content-Length": "12"}, None)
            == b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n"
        )
        for status in (204, 304):
            with pytest.raises(ValueError):
                m.encode_response(status, {}, b"x")

    def test_every_status_in_the_table_reads_back(self):
        for status, reason in m.REASONS.items():
            head = m.parse_response_head(m.encode_response(status, {}))
            assert (head.status, head.reason) == (status, reason)

    def test_an_empty_chunk_does_not_end_the_body(self):
        head = m.encode_response(200, {"Transfer-Encoding": "chunked"}, None)
        pieces = [b"a", b"", b"b" * 300, b"\r\n0\r\n\r\n"]
        data = head + b"".join(map(m.encode_chunk, pieces))
        assert b"".join(feed_every_way(HeadFirst, data)[1:]) == b"".join(pieces)
        decoder = m.ResponseDecoder("GET")
        decoder.feed(data)
        assert not decoder.done
        decoder.feed(m.LAST_CHUNK)
        assert decoder.done

    def test_continue_is_an_interim_answer(self):
        decoder = m.ResponseDecoder("POST")
        decoder.feed(m.CONTINUE + m.encode_response(202, {}))
        assert decoder.head.status == 202

    def test_what_is_written_reads_back(self):
        """Differential: our encoders against our decoders, on random messages."""
        dice = rng("http round trip")
        values = [chr(c) for c in [*range(0x20, 0x7F), *range(0x80, 0x100), 9]]
        names = "abcXYZ019-_!#$%&'*+.^`|~"
        for _ in range(300):
            headers = {}
            for _ in range(dice.randint(0, 8)):
                name = "x" + "".join(dice.choices(names, k=dice.randint(0, 9))).lower()
                headers[name] = "".join(dice.choices(values, k=dice.randint(0, 30))).strip(" \t")
            body = dice.choice([b"", b"x", bytes(dice.choices(range(256), k=99))])
            data = m.encode_request(
                "POST", "/x?" + names.replace("#", ""), {"host": "a", **headers}, body
            )
            [(head, got)] = m.RequestDecoder().feed(data)
            expected = {"host": "a", **headers, "content-length": str(len(body))}
            assert (head.headers, got) == (expected, body)
            decoder = m.ResponseDecoder("POST")
            assert b"".join(decoder.feed(m.encode_response(200, headers, body))) == body
            del expected["host"]
            assert decoder.head.headers == expected and decoder.reusable

    def test_the_standard_library_reads_what_we_write(self):
        """Differential: http.client reads our responses."""
        import http.client

        class Socket:
            def __init__(self, data):
                self.data = data

            def makefile(self, mode):
                return io.BytesIO(self.data)

        whole = m.encode_response(200, {"Content-Type": "application/json"}, b'{"a": 1}')
        stream = m.encode_response(200, {"Transfer-Encoding": "chunked"}, None)
        stream += m.encode_chunk(b'{"a"') + m.encode_chunk(b": 1}") + m.LAST_CHUNK
        for data in (whole, stream):
            response = http.client.HTTPResponse(Socket(data))
            response.begin()
            assert response.status == 200 and response.read() == b'{"a": 1}'


class TestHTTPFuzz:
    """Garbage gives items or ProtocolError, nothing else."""

    SEEDS = [
        b"POST /mcp HTTP/1.1\r\nHost: a:1\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.0\r\n\r\n",
        chunked(b'5;a="b"\r\nhello\r\n1\r\n \r\n0\r\nTrailer: x\r\n\r\n')
        + b"GET http://a/ HTTP/1.1\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: [::1]\r\nAccept: a/b;q=0, */*\r\nConnection: close\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nServer: x\r\n\r\nuntil the end",
    ]
    PARTS = [
        b"\r\n",
        b"\n",
        b"\r",
        b" ",
        b":",
        b"\x00",
        b"0",
        b"9",
        b"f",
        b",",
        b";",
        b'"',
        b"\xff",
    ]
    PARTS += [b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n", b"HTTP/1.1"]

    def mutate(self, dice, data):
        for _ in range(dice.randint(1, 4)):
            at, end = dice.randrange(len(data)), dice.randrange(len(data) + 1)
            part = dice.choice([*self.PARTS, data[min(at, end) : max(at, end)], b""])
            data = data[:at] + part + data[at + dice.randint(0, 3) :] or b"x"
        return data

    @pytest.mark.parametrize("make", [EagerRequests, HeadFirst])
    def test_mutated_messages(self, make):
        dice = rng(f"http fuzz {make.__name__}")
        for _ in range(4000):
            data = self.mutate(dice, dice.choice(self.SEEDS))
            cut = dice.randrange(len(data) + 1)
            outcomes = []
            for pieces in ([data], [data[:cut], data[cut:]]):
                items, error = feed_pieces(make(), pieces, True)
                outcomes.append(([comparable(x) for x in merged(items)], type(error)))
            assert outcomes[0] == outcomes[1], data

    def test_mutated_values(self):
        dice = rng("http values")
        for _ in range(3000):
            text = self.mutate(dice, b'B a="b\\"c", text/html;q=0.5;x="y;z", *').decode("latin-1")
            for item in m.parse_list(text):
                m.parse_media_type(item)
            m.accepts(text, "a/b")
            for function, error in ((m.parse_target, m.ProtocolError), (m.parse_url, ValueError)):
                with contextlib.suppress(error):
                    function("http://a/%2e%41" + text)


###############################################################################
# T9. Server-sent events
###############################################################################


def reference_events(data):
    """Return (data, event, id) of a whole stream: WHATWG HTML §9.2.6, word for word, no decoder."""
    text = data.decode("utf-8", "replace")
    if text.startswith("\ufeff"):
        text = text[1:]
    *lines, _ = re.split("\r\n|\r|\n", text)
    out, data_buffer, event_type, last_id = [], "", "", ""
    for line in lines:
        if line == "":
            if data_buffer:
                out.append((data_buffer[:-1], event_type or "message", last_id))
            data_buffer, event_type = "", ""
        elif not line.startswith(":"):
            field, _, value = line.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if field == "data":
                data_buffer += value + "\n"
            elif field == "event":
                event_type = value
            elif field == "id" and "\0" not in value:
                last_id = value
    return out


class TestReadingEvents:
    """WHATWG HTML §9.2.6, "Interpreting an event stream"."""

    @pytest.mark.parametrize(
        "data, expected",
        [
            # the examples of §9.2.6
            (b"data: YHOO\ndata: +2\ndata: 10\n\n", [("YHOO\n+2\n10", "message", "")]),
            (
                b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\n"
                b"data:  third event\n\n",
                [
                    ("first event", "message", "1"),
                    ("second event", "message", ""),
                    (" third event", "message", ""),
                ],
            ),
            (b"data\n\ndata\ndata\n\ndata:", [("", "message", ""), ("\n", "message", "")]),
            (b"data:test\n\ndata: test\n\n", [("test", "message", "")] * 2),
            # ends of lines, mixed
            (b"data: a\r\rdata: b\r\n\r\ndata: c\n\n", [(x, "message", "") for x in "abc"]),
            (b"data: a\rdata: b\ndata: c\r\n\r", [("a\nb\nc", "message", "")]),
            (b"data: a\n\rdata: b\r\r\n", [("a", "message", ""), ("b", "message", "")]),
            # one byte order mark, at the start
            (b"\xef\xbb\xbfdata: a\n\n", [("a", "message", "")]),
            (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", []),
            (b"\n\xef\xbb\xbfdata: a\n\n", []),
            (b"data: \xef\xbb\xbfa\n\n", [("\ufeffa", "message", "")]),
            # comments, unknown fields, names that only look right
            (b":data: a\n:\n\n", []),
            (b"Data: a\n data: b\ndata : c\ndatas: d\nfoo\n\n", []),
            (b"data: a:b: c\n\n", [("a:b: c", "message", "")]),
            # the type
            (b"event: x\ndata: a\n\ndata: b\n\n", [("a", "x", ""), ("b", "message", "")]),
            (b"event: x\nevent: y\ndata: a\n\n", [("a", "y", "")]),
            (b"event\ndata: a\n\n", [("a", "message", "")]),
            (b"event: x\n\ndata: a\n\n", [("a", "message", "")]),
            # ids last until the next one; an id with NUL is none
            (b"id: 1\ndata: a\n\ndata: b\n\n", [("a", "message", "1"), ("b", "message", "1")]),
            (b"id: 1\n\ndata: a\n\n", [("a", "message", "1")]),
            (b"id: 1\nid: 2\x00\ndata: a\n\n", [("a", "message", "1")]),
            # a priming event: an event whose data is the empty string
            (b"id: 7\nretry: 500\ndata:\n\n", [("", "message", "7")]),
            # UTF-8, good and bad
            ("data: \u20ac\U0001f600\n\n".encode(), [("\u20ac\U0001f600", "message", "")]),
            (b"data: \xff\xe2\x82\n\n", [("\ufffd\ufffd", "message", "")]),
            (b"data: \xc2\x85\xe2\x80\xa8\x0b\x0c\n\n", [("\x85\u2028\x0b\x0c", "message", "")]),
            # what is incomplete at the end is dropped
            (b"data: a\n\ndata: b\n", [("a", "message", "")]),
            (b"data: a", []),
            (b"", []),
        ],
    )
    def test_a_stream_however_it_is_cut(self, data, expected):
        assert feed_every_way(m.SSEDecoder, data, eof=True) == expected
        assert reference_events(data) == expected

    @pytest.mark.parametrize("end", [b"\n\n", b"\r\r", b"\r\n\r", b"\n\r"])
    def test_an_event_does_not_wait_for_the_next_byte(self, end):
        decoder = m.SSEDecoder()
        assert decoder.feed(b"data: a" + end) == [("a", "message", "")]
        assert decoder.feed(b"\ndata: b\n\n") == [("b", "message", "")]

    def test_an_id_counts_once_its_event_is_complete(self):
        """§9.2.5: or else what a cut swallowed would never be sent again."""
        decoder = m.SSEDecoder("3")
        decoder.feed(b"id: 4\ndata: lost")
        assert decoder.last_id == "3"
        assert decoder.feed(b"\n\n") == [("lost", "message", "4")] and decoder.last_id == "4"
        assert decoder.feed(b"id: 5\n\n") == [] and decoder.last_id == "5"
        assert decoder.feed(b"id\n\n") == [] and decoder.last_id == ""

    def test_ids_go_on_over_a_reconnection(self):
        decoder = m.SSEDecoder("3")
        assert decoder.feed(b"data: a\n\n") == [("a", "message", "3")] and decoder.last_id == "3"

    @pytest.mark.parametrize(
        "line, expected",
        [
            (b"retry: 0", 0),
            (b"retry:1500", 1500),
            (b"retry: 0000000000000000000012", 12),
            (b"retry: 3600000", m.MAX_RETRY_MS),
            (b"retry: 3600001", m.MAX_RETRY_MS),
            (b"retry: " + b"9" * 10_000, m.MAX_RETRY_MS),
            (b"retry", None),
            (b"retry:", None),
            (b"retry: -1", None),
            (b"retry: +1", None),
            (b"retry: 1_0", None),
            (b"retry: 1.5", None),
            (b"retry: 1 ", None),
            (b"retry:  1", None),
            (b"retry: 0x1", None),
            ("retry: \u0661".encode(), None),
        ],
    )
    def test_retry_is_ascii_digits(self, line, expected):
        decoder = m.SSEDecoder()
        assert decoder.feed(line + b"\n") == []
        assert decoder.retry_ms == expected

    @pytest.mark.parametrize(
        "fits, too_long",
        [
            (b"data: 7890123456789\n\n", b"data: 78901234567890\n\n"),
            (b"data: 789\ndata: 789\n\n", b"data: 789\ndata: 7890\n\n"),
            (b"data\n" * 4 + b"\n", b"data\n" * 4 + b"data\n\n"),
            (b": 34567890123456789\n\n", b": 345678901234567890\n\n"),
            (b"id: 567890123456789\n\n", b"id: 5678901234567890\n\n"),
        ],
    )
    def test_an_event_has_a_limit(self, fits, too_long):
        feed_every_way(lambda: m.SSEDecoder(limit=20), fits * 3)
        error = errors_every_way(lambda: m.SSEDecoder(limit=20), b"data: a\n\n" + too_long)
        assert isinstance(error, m.LimitExceeded)

    def test_a_line_that_never_ends_is_refused_in_time(self):
        decoder = m.SSEDecoder(limit=20)
        assert decoder.feed(b"x" * 20) == []
        with pytest.raises(m.LimitExceeded):
            decoder.feed(b"x")

    def test_comments_without_end_are_no_event(self):
        """A keep-alive that is only a comment line, with no empty line after it, costs nothing."""
        decoder = m.SSEDecoder(limit=100)
        for _ in range(100):
            assert decoder.feed(b": ping\n") == []
        assert decoder.feed(b"data: a\n\n") == [("a", "message", "")] and not decoder.buffer

    def test_random_streams_against_the_reference(self):
        """Differential, and fuzz: every input is valid, in every cutting."""
        dice = rng("sse")
        parts = [
            b"\r",
            b"\n",
            b"\r\n",
            b"\n\n",
            b":",
            b" ",
            b"data",
            b"data: ",
            b"data:",
            b"event: ",
        ]
        parts += [b"id: ", b"id", b"retry: 9", b"x", b"\x00", b"\xef\xbb\xbf", b"\xe2\x82", b"\xff"]
        for _ in range(3000):
            data = b"".join(dice.choices(parts, k=dice.randint(1, 25)))
            expected = reference_events(data)
            for _ in range(4):
                cuts = sorted(dice.choices(range(len(data) + 1), k=3))
                pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)])]
                assert feed_pieces(m.SSEDecoder(), pieces, True) == (expected, None), data


class TestWritingEvents:
    @pytest.mark.parametrize(
        "arguments, expected",
        [
            ({"data": b"{}"}, b"data: {}\n\n"),
            ({"data": "\u20ac"}, b"data: \xe2\x82\xac\n\n"),
            ({"data": "", "id": "1", "retry": 0}, b"id: 1\nretry: 0\ndata: \n\n"),
            ({"data": b"", "event": "endpoint", "id": ""}, b"event: endpoint\nid: \ndata: \n\n"),
            ({"data": "a\nb\r\nc\rd\n"}, b"data: a\ndata: b\ndata: c\ndata: d\ndata: \n\n"),
        ],
    )
    def test_an_event_on_the_wire(self, arguments, expected):
        assert m.encode_event(**arguments) == expected

    @pytest.mark.parametrize(
        "data",
        [
            "",
            " ",
            "  a",
            "a\n",
            "\n",
            "\n\n",
            "a\r\rb",
            "data: x",
            ":",
            "\ufeff",
            "\x00",
            "x\nid: 9\n\n",
        ],
    )
    @pytest.mark.parametrize("event, id", [(None, ""), (" e: f", " 1:2"), ("\xe9", "\u20ac")])
    def test_what_is_written_reads_back(self, data, event, id):
        wire = m.encode_event(data, event=event, id=id)
        assert m.encode_event(data.encode(), event=event, id=id) == wire
        lines = re.sub("\r\n?", "\n", data)
        expected = [(lines, event or "message", id)] * 2
        assert feed_every_way(m.SSEDecoder, wire + m.encode_comment("x") + wire) == expected

    @pytest.mark.parametrize("bad", ["a\nb", "a\r", "\r\ndata: x", "\x00"])
    def test_names_and_ids_cannot_be_injected(self, bad):
        """Research 4.4, rule 10."""
        with pytest.raises(ValueError):
            m.encode_event("a", event=bad)
        with pytest.raises(ValueError):
            m.encode_event("a", id=bad)

    def test_comments(self):
        assert m.encode_comment() == b":\n\n"
        assert m.encode_comment("still here") == b": still here\n\n"
        for bad in ("a\nb", "a\rb"):
            with pytest.raises(ValueError):
                m.encode_comment(bad)
        assert feed_every_way(m.SSEDecoder, m.encode_comment("x") * 3) == []


###############################################################################
# T17. stdio
###############################################################################

PRELUDE = f"""
import asyncio, json, logging, os, signal, subprocess, sys, threading, time
logging.getLogger("asyncio").setLevel("ERROR")  # it warns of slow callbacks, if the machine is slow
sys.path.insert(0, {str(HERE)!r})
import mcp_lite as m
"""

SERVER = PRELUDE + """
m.Transport.grace = m.GRACE_SECONDS = 0.2
m.PARENT_POLL_SECONDS = 0.01
app = m.Server("t17")

@app.tool
def add(a: int, b: int = 0) -> int:
    return a + b

@app.tool
def noise() -> str:
    "Print in every way there is."
    print("from print")
    os.write(1, b"from a library\\n")
    subprocess.run("echo from a child; cat; echo end of cat", shell=True)
    return sys.stdin.read() + "read nothing"

@app.tool
def sleep() -> str:
    print("asleep", flush=True)
    time.sleep(60)

@app.tool
async def linger() -> str:
    for _ in range(100):
        await asyncio.sleep(0)
    return "done"

@app.tool
async def forever() -> str:
    print("asleep", flush=True)
    await asyncio.sleep(3600)

@app.tool
def length(text: str) -> int:
    return len(text)

@app.tool
def big(size: int) -> str:
    return "x" * size

@app.tool
def spawn() -> int:
    "Start a process that lives on and holds what it inherited."
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]).pid
"""

RUN = SERVER + "app.run()\nprint('afterwards')\n"


def call(req_id, name, **arguments):
    """Return the line that calls a tool."""
    params = {"name": name, "arguments": arguments}
    msg = {"jsonrpc": "2.0", "id": req_id, "method": "tools/call", "params": params}
    return json.dumps(msg).encode() + b"\n"


def texts(data):
    """Return {id: text of the result} of the lines that a server wrote."""
    answers = [json.loads(line) for line in data.splitlines() if line != b"afterwards"]
    return {msg["id"]: msg["result"]["content"][0]["text"] for msg in answers if "result" in msg}


@contextlib.contextmanager
def python(code, *args, **streams):
    """Give a Python process that treats every warning as an error; it is killed in the end."""
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", code, *map(str, args)]
    streams = {"stdin": -1, "stdout": -1, "stderr": -1, **streams}
    with subprocess.Popen(command, **streams) as process:
        try:
            yield process
        finally:
            process.kill()


def converse(code, data, **streams):
    """Return (status, stdout, stderr) of a Python process that gets `data` and then no more."""
    with python(code, **streams) as process:
        out, err = process.communicate(data, timeout=20)
        return process.returncode, out, err


def is_alive(pid):
    """Return whether a process runs; a zombie that nobody collects does not."""
    try:
        status = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def wait_until(condition):
    """Wait until something outside of our control has come about."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.002)


posix = pytest.mark.skipif(os.name == "nt", reason="POSIX has it, Windows has not")


class TestServerStreams:
    """What a server's standard streams are, and who may touch them.

    spec: basic/transports/stdio
    """

    def test_a_line_piped_into_a_server_is_answered(self):
        status, out, err = converse(RUN, call(1, "add", a=1, b=2))
        assert (status, texts(out), err) == (0, {1: "3"}, b"")

    def test_the_last_line_needs_no_newline(self):
        status, out, err = converse(RUN, call(1, "add", a=1) + call(2, "add", a=2).strip())
        assert (status, texts(out), err) == (0, {1: "1", 2: "2"}, b"")

    def test_streams_may_be_files(self, tmp_path):
        """server.py < requests.jsonl > answers.jsonl; and nothing limits how long that takes."""
        requests, answers = tmp_path / "requests.jsonl", tmp_path / "answers.jsonl"
        requests.write_bytes(b"".join(call(i, "add", a=i) for i in range(300)) + call(300, "linger"))
        with requests.open("rb") as stdin, answers.open("wb") as stdout:
            with python(RUN, stdin=stdin, stdout=stdout) as process:
                assert (process.wait(20), process.stderr.read()) == (0, b"")
        said = answers.read_bytes()
        assert said.endswith(b"\nafterwards\n")
        assert texts(said) == {**{i: str(i) for i in range(300)}, 300: "done"}

    def test_stdin_may_be_the_null_device(self):
        status, out, err = converse(RUN, None, stdin=subprocess.DEVNULL)
        assert (status, out, err) == (0, b"afterwards\n", b"")

    @posix
    def test_streams_may_be_a_socket(self):
        ours, theirs = socket.socketpair()
        with ours, python(RUN, stdin=theirs, stdout=theirs) as process:
            theirs.close()
            ours.sendall(call(1, "big", size=1_000_000))
            ours.shutdown(socket.SHUT_WR)
            with ours.makefile("rb") as file:
                assert len(texts(file.read())[1]) == 1_000_000
            assert (process.wait(20), process.stderr.read()) == (0, b"")

    @posix
    def test_streams_may_be_a_terminal(self):
        import pty
        import tty

        ours, theirs = pty.openpty()
        tty.setraw(theirs)
        with python(RUN, stdin=theirs, stdout=theirs) as process, open(ours, "rb+", 0) as terminal:
            os.close(theirs)
            terminal.write(call(1, "add", a=5))
            line = b""
            while not line.endswith(b"\n"):
                line += terminal.read(4096)
            assert texts(line) == {1: "5"}
            process.send_signal(signal.SIGTERM)  # raw mode has no ^D; the thread is in read()
            assert (process.wait(20), process.stderr.read()) == (0, b"")

    def test_whatever_is_printed_goes_to_stderr_at_once_and_nothing_can_be_read(self):
        """spec: "The server MUST NOT write anything to its stdout that is not a valid MCP message"."""
        with python(RUN) as process:
            process.stdin.write(call(1, "noise"))
            process.stdin.flush()
            printed = [process.stderr.readline().strip() for _ in range(4)]
            assert printed == [b"from print", b"from a library", b"from a child", b"end of cat"]
            out, err = process.communicate(timeout=20)
            assert (process.returncode, err) == (0, b"")
            assert texts(out) == {1: "read nothing"}
            assert out.endswith(b"\nafterwards\n")  # the program has its streams back

    def test_a_child_of_a_tool_does_not_hold_the_conversation_open(self):
        with python(RUN) as process:
            process.stdin.write(call(1, "spawn"))
            process.stdin.close()
            out = process.stdout.read()  # ends although the child of the tool lives
            pid = int(texts(out)[1])
            assert is_alive(pid)
            os.kill(pid, 9)
            assert process.wait(20) == 0

    @posix
    @pytest.mark.parametrize("closed", ["<&-", ">&-"])
    def test_without_streams_it_says_so(self, closed):
        code = SERVER + "try: app.run()\nexcept m.ConnectionClosed as exc: os.write(2, str(exc).encode())"
        command = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", code]
        ran = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=20)
        assert ran.stderr == b"there is no standard input and output to serve on"
        assert ran.returncode == 0

    def test_a_line_over_the_limit_is_refused_and_the_next_is_served(self):
        line = call(1, "add", a=1)
        code = SERVER + f"app.run(max_message_bytes={len(line) - 1})"
        status, out, _ = converse(code, b" " + line + line)
        first, second = (json.loads(line) for line in out.splitlines())
        assert status == 0
        assert first["error"]["code"] == -32600 and "longer than" in first["error"]["message"]
        assert second["result"]["content"][0]["text"] == "1"

    def test_lines_of_ten_megabytes_work(self):
        lines = call(1, "length", text="x" * 10_000_000) + call(2, "big", size=10_000_000)
        status, out, _ = converse(RUN, lines)
        said = texts(out)
        assert (status, said[1], len(said[2])) == (0, "10000000", 10_000_000)


class TestServerEnds:
    """How a server ends: by end of input, a signal, a broken pipe, or its parent's death."""

    def test_what_finishes_in_the_period_of_grace_is_answered(self):
        status, out, err = converse(RUN, call(1, "linger"))
        assert (status, texts(out), err) == (0, {1: "done"}, b"")

    @pytest.mark.parametrize("tool", ["sleep", "forever"])
    def test_end_of_input_ends_a_server_whatever_runs(self, tool):
        status, out, err = converse(RUN, call(1, tool))
        assert (status, out, err) == (0, b"afterwards\n", b"asleep\n")

    @posix
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_ends_an_idle_server_in_good_order(self, number):
        with python(RUN) as process:
            process.stdin.write(call(1, "add", a=1))
            process.stdin.flush()
            assert texts(process.stdout.readline()) == {1: "1"}
            began = time.monotonic()
            process.send_signal(number)
            assert process.stdout.read() == b"afterwards\n"  # stdin is still open
            took = time.monotonic() - began
            assert (process.wait(20), process.stderr.read()) == (0, b"")
            assert took < 0.5  # some 10 ms; the wide margin is for a busy machine

    @posix
    @pytest.mark.parametrize("tool", ["sleep", "forever"])
    def test_a_second_signal_ends_it_at_once(self, tool):
        code = SERVER.replace("= 0.2", "= 600") + "app.run()"
        with python(code) as process:
            process.stdin.write(call(1, tool))
            process.stdin.flush()
            assert process.stderr.readline() == b"asleep\n"
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 128 + signal.SIGTERM
            assert (process.stdout.read(), process.stderr.read()) == (b"", b"")

    @posix
    def test_a_signal_before_the_streams_are_taken_is_not_lost(self):
        code = SERVER + """
import contextlib
@contextlib.asynccontextmanager
async def lifespan(server):
    os.kill(os.getpid(), signal.SIGTERM)
    yield
m.Server("t17", lifespan=lifespan).run()
"""
        with python(code) as process:
            assert (process.wait(20), process.stderr.read()) == (0, b"")

    @posix
    def test_a_reader_that_goes_away_ends_it_quietly(self):
        with python(SERVER + "app.run()") as process:
            process.stdout.close()
            process.stdin.write(call(1, "add", a=1) + call(2, "add", a=1))
            process.stdin.flush()  # and it stays open
            assert (process.wait(20), process.stderr.read()) == (0, b"")

    @posix
    @pytest.mark.parametrize("options", ["", "watch_parent=False"])
    def test_a_server_whose_parent_died_ends_itself(self, options):
        """Also when somebody else holds the other end of its stdin."""
        parent = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1]])\n"
        with python(parent + "sys.stdin = None; sys.stdout.close(); import time; time.sleep(60)",
                    SERVER + f"app.run({options})") as process:
            process.stdin.write(call(1, "add", a=1))
            process.stdin.flush()
            assert texts(process.stdout.readline()) == {1: "1"}
            process.kill()
            process.wait(20)
            if not options:
                assert process.stdout.read() == b""
                assert b"the parent process is gone" in process.stderr.read()
            else:
                process.stdin.write(call(2, "add", a=2))
                process.stdin.close()
                assert texts(process.stdout.read()) == {2: "2"}

    @posix
    def test_signal_handlers_are_put_back(self):
        async def main():
            stopped = asyncio.Event()
            work = m.until_signalled(stopped.wait(), stopped.set)
            asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGINT)
            await work

        def nothing(number, frame):
            raise AssertionError("the wrong handler")

        numbers = (signal.SIGINT, signal.SIGTERM)
        former = {number: signal.signal(number, nothing) for number in numbers}
        try:
            run(main())
            assert [signal.getsignal(number) for number in numbers] == [nothing] * 2
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)

    @posix
    def test_work_that_ignores_the_first_signal_is_cancelled(self, monkeypatch):
        monkeypatch.setattr(m, "GRACE_SECONDS", 0.01)

        async def main():
            asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGTERM)
            await m.until_signalled(asyncio.sleep(3600), lambda: None)

        run(main())

    def test_off_the_main_thread_there_are_no_signals(self):
        async def main():
            await m.until_signalled(asyncio.sleep(0), lambda: None)

        thread = threading.Thread(target=lambda: asyncio.run(main()))
        thread.start()
        thread.join(10)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


class UnwatchedLoop(asyncio.SelectorEventLoop):
    """A loop without pipe support, as on Windows: threads must do it."""

    def add_reader(self, *args):
        raise NotImplementedError

    remove_reader = add_writer = remove_writer = add_reader


def run_both_ways(main):
    """Run a coroutine function in a usual loop, and in one that cannot watch descriptors."""
    run(main())
    before = (open_descriptors(), child_processes(), lasting_threads())
    loop = UnwatchedLoop()
    try:
        loop.set_debug(True)
        loop.run_until_complete(within(main(), 20))
    finally:
        loop.close()
    check_nothing_left(before)


@posix
class TestDescriptors:
    """Source and Sink: bytes come and go, whatever the descriptor is."""

    def test_lines_come_through_a_pipe(self):
        async def main():
            theirs, ours = os.pipe()
            source, sink = m.Source(theirs, 100), m.Sink(ours, lambda: None)
            await sink.write(b"one\ntw")
            assert await source.read() == [b"one"]
            await sink.write(b"o\n\n" + b"3" * 101 + b"\n4\n")
            items = await source.read()
            assert (items[0], type(items[1]), items[2:]) == (b"two", m.LimitExceeded, [b"4"])
            await sink.write(b"half")
            await sink.close()
            assert [await source.read(), await source.read()] == [[b"half"], []]
            source.close()
            source.close()
            sink.shut()

        run_both_ways(main)

    def test_what_is_written_in_one_turn_leaves_in_one_piece(self):
        async def main():
            theirs, ours = os.pipe()
            sink = m.Sink(ours, lambda: None)
            for i in range(10):
                await sink.write(b"%d" % i)
            assert not sink.watched
            await asyncio.sleep(0)
            assert os.read(theirs, 100) == b"0123456789"
            await sink.close()
            os.close(theirs)

        run(main())

    def test_a_slow_reader_makes_writers_wait(self):
        """MAX_UNSENT_BYTES may be unsent, and not one more."""

        async def main():
            theirs, ours = os.pipe()
            sink, source = m.Sink(ours, lambda: None), None
            os.write(ours, b"x" * 4095 + b"\n")
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(ours, b"x" * 4095 + b"\n")
            await sink.write(b"y" * (m.MAX_UNSENT_BYTES - 1) + b"\n")
            writer = asyncio.ensure_future(sink.write(b"\n"))
            for _ in range(10):
                await asyncio.sleep(0)
            assert not writer.done()
            source = m.Source(theirs, 2 * m.MAX_UNSENT_BYTES)
            lines = []
            while not lines or not lines[-1].startswith(b"y"):
                lines += await source.read()
            await writer
            await sink.close()
            assert await source.read() == []
            source.close()

        run(main())

    def test_a_slow_reader_makes_the_other_end_wait(self):
        async def main():
            theirs, ours = os.pipe()
            source = m.Source(theirs, 100_000)
            os.set_blocking(ours, False)
            chunk, sent = b"x" * 4095 + b"\n", 0
            assert source._resume() is None
            for _ in range(1000):
                with contextlib.suppress(BlockingIOError):
                    sent += os.write(ours, chunk)
                await asyncio.sleep(0)
            assert sent < 500_000 < 1000 * len(chunk)
            os.close(ours)
            received = 0
            while True:
                lines = await source.read()
                if not lines:
                    break
                received += sum(len(line) + 1 for line in lines)
            assert received == sent
            source.close()

        run(main())

    def test_nobody_reads(self):
        async def main():
            theirs, ours = os.pipe()
            broken = []
            sink = m.Sink(ours, lambda: broken.append(1))
            os.close(theirs)
            await sink.write(b"x")
            while not broken:
                await asyncio.sleep(0)
            with pytest.raises(BrokenPipeError):
                await sink.write(b"x")
            await sink.close()
            assert broken == [1]

        run_both_ways(main)

    def test_a_waiting_writer_learns_that_nobody_reads(self):
        async def main():
            theirs, ours = os.pipe()
            sink = m.Sink(ours, lambda: None)
            writer = asyncio.ensure_future(sink.write(b"x" * (m.MAX_UNSENT_BYTES + 200_000)))
            for _ in range(5):
                await asyncio.sleep(0)
            assert not writer.done()
            os.close(theirs)
            with pytest.raises(BrokenPipeError):
                await writer
            await sink.close()

        run_both_ways(main)

    def test_a_reader_that_takes_nothing_delays_the_end_for_a_bounded_time(self, monkeypatch):
        monkeypatch.setattr(m, "FLUSH_SECONDS", 0.01)

        async def main():
            theirs, ours = os.pipe()
            sink = m.Sink(ours, lambda: None)
            await sink.write(b"x" * 500_000)
            await sink.close()
            os.set_blocking(theirs, False)
            os.close(theirs)

        run(main())

    def test_the_blocking_flag_is_put_back(self):
        async def main():
            theirs, ours = os.pipe()
            copy = os.dup(ours)
            sink = m.Sink(ours, lambda: None)
            assert not os.get_blocking(copy)
            await sink.close()
            assert os.get_blocking(copy)
            os.close(copy)
            os.close(theirs)

        run(main())

    def test_end_wakes_the_reader(self):
        async def main():
            theirs, ours = os.pipe()
            source = m.Source(theirs, 100)
            reader = asyncio.ensure_future(source.read())
            await asyncio.sleep(0)
            source.end()
            assert await reader == []
            source.close()
            os.close(ours)  # a thread that is in read() sees this, and closes its end

        run_both_ways(main)


ECHO = "import sys\nfor line in sys.stdin.buffer: sys.stdout.buffer.write(line); sys.stdout.flush()\n"


def child(code, **options):
    """Return the transport to a Python process."""
    return m.StdioTransport([sys.executable, "-c", code], **options)


async def answers(transport):
    """Return the messages that come until the channel ends."""
    found = []
    while True:
        items = await transport.read()
        if not items:
            return found
        found += items


async def explanation(code, **options):
    """Return (messages, explanation) of a process that ends by itself."""
    transport = child(code, **options)
    await transport.open()
    try:
        return await answers(transport), transport.explain()
    finally:
        await transport.close()


class TestChild:
    """The client's end: a child process, from its start to its end."""

    def test_messages_go_back_and_forth(self):
        async def main():
            transport = child(ECHO)
            await transport.open()
            for msg in ({"id": 1}, {"id": 2, "text": "\n\u2028 é \U0001f600"}, [{"id": 3}]):
                await transport.write(msg)
                assert [m.decode(line) for line in await transport.read()] == [msg]
            await transport.close()
            assert await transport.read() == []
            with pytest.raises(m.ConnectionClosed, match="exited with status 0"):
                await transport.write({})

        run_both_ways(main)

    def test_it_works_in_any_thread(self):
        async def main():
            transport = child(ECHO)
            await transport.open()
            await transport.write({"id": 1})
            assert await transport.read() == [b'{"id":1}']
            await transport.close()
            return transport.process.returncode

        outcome = []
        thread = threading.Thread(target=lambda: outcome.append(asyncio.run(main(), debug=True)))
        thread.start()
        thread.join(20)
        assert outcome == [0]

    def test_ten_megabytes_go_through(self):
        async def main():
            transport = child(ECHO)
            await transport.open()
            msg = {"text": "x" * 10_000_000}
            writer = asyncio.ensure_future(transport.write(msg))
            assert [m.decode(line) for line in await transport.read()] == [msg]
            await writer
            await transport.close()

        run(main())

    def test_a_line_over_the_limit_is_reported_in_its_place(self):
        async def main():
            messages, _ = await explanation(
                "print('{\"a\":12}\\n{\"a\":123}\\n{\"a\":1}')", max_message_bytes=8
            )
            assert messages[::2] == [b'{"a":12}', b'{"a":1}']
            assert type(messages[1]) is m.LimitExceeded

        run(main())

    @pytest.mark.parametrize(
        "code, text",
        [
            ("", "exited with status 0"),
            ("import os; os._exit(3)", "exited with status 3"),
            ("exit('no such file: x')", 'exited with status 1; its last words: "no such file: x"'),
            ("import os; os.kill(os.getpid(), 11)", "was killed by SIGSEGV"),
            ("import os; os.kill(os.getpid(), 9)", "was killed by SIGKILL"),
            (
                "print('usage: x'); exit(2)",
                'exited with status 2; it printed to stdout: "usage: x"',
            ),
            (
                "import sys; sys.stderr.buffer.write(b'caf\\xe9'); exit(5)",
                'exited with status 5; its last words: "caf\ufffd"',
            ),
        ],
    )
    def test_a_child_that_dies_is_explained(self, code, text):
        if os.name == "nt" and "kill" in code:
            pytest.skip("Windows has no signals")
        assert run(explanation(code, stderr="null"))[1] == text

    def test_only_the_last_words_are_kept(self):
        code = "import sys\nfor i in range(1000): print(i, file=sys.stderr)"
        text = run(explanation(code, stderr="null"))[1]
        assert text.count("\n") == m.MAX_LAST_WORDS - 1
        assert text.endswith('\n999"')

    def test_half_a_line_then_death(self):
        code = "import os; os.write(1, b'{\"id\":1}\\n{\"id\"'); os.kill(os.getpid(), 9)"
        messages, text = run(explanation(code))
        assert messages == [b'{"id":1}', b'{"id"']
        assert text.startswith("was killed by SIGKILL" if os.name != "nt" else "")

    def test_writing_to_a_dead_child_says_what_happened(self):
        async def main():
            transport = child("import sys; sys.stdin.close(); exit('out of memory')", stderr="null")
            await transport.open()
            with pytest.raises(m.ConnectionClosed) as caught:
                while True:
                    await transport.write({"text": "x" * 1000})
                    await asyncio.sleep(0)
            assert str(caught.value).endswith('exited with status 1; its last words: "out of memory"')
            await transport.close()

        run(main())

    @posix
    def test_a_child_that_dies_is_noticed_although_its_own_child_holds_the_pipes(self):
        code = "import os, subprocess, sys\np = subprocess.Popen(['sleep', '60'])\n"
        code += "print('{\"id\":%d}' % p.pid, flush=True); os._exit(7)"

        async def main():
            transport = child(code, stderr="null")
            await transport.open()
            messages = await answers(transport)
            pid = m.decode(messages[0])["id"]
            assert transport.explain() == "exited with status 7"
            assert is_alive(pid)
            await transport.close()
            wait_until(lambda: not is_alive(pid))

        run(main())

    def test_garbage_on_stdout_is_skipped_reported_once_and_quoted(self, caplog):
        code = "print('[INFO] listening\\n\\n{\\'a\\': 1}\\n[]\\n5\\n\\ufeff{}\\n{\"id\":1}\\n [ {\"id\":2}]')"

        async def main():
            transport = child(code, env={"PYTHONIOENCODING": "utf-8"})
            assert transport.hint() == ""
            await transport.open()
            messages = await answers(transport)
            assert messages == [b'{"id":1}', b' [ {"id":2}]']
            assert transport.hint() == 'it printed to stdout: "[INFO] listening"'
            await transport.close()

        with caplog.at_level(logging.WARNING, "mcp_lite"):
            run(main())
        assert len(caplog.records) == 1 and "listening" in caplog.text

    def test_stderr_goes_to_ours(self, capsys):
        run(explanation("import sys; sys.stderr.write('one\\n\\ntwo')"))
        assert capsys.readouterr().err == "one\ntwo\n"

    def test_stderr_goes_nowhere(self, capfd):
        text = run(explanation("import sys; sys.stderr.write('one')", stderr="null"))[1]
        assert text == 'exited with status 0; its last words: "one"'
        assert capfd.readouterr().err == ""

    def test_stderr_goes_to_a_callback(self):
        lines = []
        code = f"import sys; sys.stderr.write('one\\n' + 'x' * {m.MAX_STDERR_LINE_BYTES + 1} + '\\n2')"
        run(explanation(code, stderr=lines.append))
        assert lines == ["one", f"a line is longer than {m.MAX_STDERR_LINE_BYTES} bytes", "2"]

    def test_a_callback_that_fails_is_reported_and_the_child_goes_on(self, caplog):
        code = "import sys; sys.stderr.write('one\\n' * 20); print('{\"id\":1}')"
        assert run(explanation(code, stderr=[].pop))[0] == [b'{"id":1}']
        assert "the stderr callback failed" in caplog.text

    def test_stderr_goes_to_a_file_or_is_inherited(self, tmp_path, capfd):
        with open(tmp_path / "log", "wb") as file:
            run(explanation("import sys; sys.stderr.write('one')", stderr=file))
        assert (tmp_path / "log").read_bytes() == b"one"
        run(explanation("import sys; sys.stderr.write('two')", stderr="inherit"))
        assert capfd.readouterr().err == "two"

    def test_the_environment_is_a_safe_minimum_and_env(self, monkeypatch):
        monkeypatch.setenv("SECRET_TOKEN", "x")
        monkeypatch.setenv("LANG", "C")
        monkeypatch.setenv("TERM", "() { :; }; echo shellshock")
        code = "import os, json; print(json.dumps(dict(os.environ)))"

        def environment(**options):
            return m.decode(run(explanation(code, **options))[0][0])

        seen = environment(env={"MINE": "1"})
        assert seen["MINE"] == "1" and seen["PATH"] == os.environ["PATH"] and seen["LANG"] == "C"
        assert "SECRET_TOKEN" not in seen and "TERM" not in seen
        assert environment(env={"LANG": "D"})["LANG"] == "D"
        if os.name != "nt":
            assert set(environment(env={"MINE": "1"}, env_replace=True)) <= {"MINE", "LC_CTYPE"}

    def test_the_folder_is_chosen_by_cwd(self, tmp_path):
        code = "import os, json; print(json.dumps({'cwd': os.getcwd()}))"
        messages, _ = run(explanation(code, cwd=tmp_path))
        assert m.decode(messages[0])["cwd"] == str(tmp_path.resolve())


@posix
class TestChildEnds:
    """spec 2025-11-25: basic/lifecycle#shutdown -- close its input, wait, SIGTERM, SIGKILL"""

    TERM = "import signal, sys, os\ndef bye(*_): print('got SIGTERM', file=sys.stderr); exit(4)\n"
    TERM += "signal.signal(signal.SIGTERM, bye)\n"
    READY = "print('{\"id\":%d}' % os.getpid(), flush=True)\n"
    STUBBORN = "import os, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + READY
    STUBBORN += "while True: signal.pause()\n"

    async def end(self, code, **options):
        """Start a child, wait for its first message, close; return what it said and its status."""
        transport = child(code, stderr="null", **options)
        await transport.open()
        first = m.decode((await transport.read())[0])
        await transport.close()
        assert not is_alive(transport.process.pid)
        return first["id"], transport.explain()

    def test_a_child_ends_when_its_input_is_closed(self):
        code = "import os, sys\n" + self.READY + "sys.stdin.read(); exit(6)"
        assert run(self.end(code, exit_seconds=20))[1] == "exited with status 6"

    def test_a_child_that_still_writes_is_not_blocked(self):
        """What it says after its input was closed is thrown away, rather than left in the pipe."""
        code = "import os, sys\n" + self.READY + "sys.stdin.read(); print('x' * 1_000_000); exit(6)"
        assert run(self.end(code, exit_seconds=20))[1] == "exited with status 6"

    def test_a_child_that_stays_gets_sigterm(self):
        code = self.TERM + self.READY + "signal.pause()"
        text = run(self.end(code, exit_seconds=0.01, term_seconds=20))[1]
        assert text == 'exited with status 4; its last words: "got SIGTERM"'

    def test_a_child_that_ignores_sigterm_is_killed(self):
        text = run(self.end(self.STUBBORN, exit_seconds=0.01, term_seconds=0.01))[1]
        assert text == "was killed by SIGKILL"

    def test_the_whole_group_is_ended(self):
        """An npx or a shell in between dies at once, and the server it started would live on."""
        inner = f"import subprocess, sys; subprocess.call([sys.executable, '-c', {self.STUBBORN!r}])"
        pid, text = run(self.end(inner, exit_seconds=0.01, term_seconds=0.05))
        wait_until(lambda: not is_alive(pid))
        assert text in ("was killed by SIGKILL", "was killed by SIGTERM")

    def test_what_a_child_leaves_behind_is_ended_too(self):
        code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {self.STUBBORN!r}])\n"
        pid, text = run(self.end(code + "sys.stdin.read()", term_seconds=0.05))
        wait_until(lambda: not is_alive(pid))
        assert text == "exited with status 0"

    def test_close_may_be_called_by_many_and_again(self):
        async def main():
            transport = child(ECHO)
            await transport.open()
            reader = asyncio.ensure_future(transport.read())
            await asyncio.gather(*[transport.close() for _ in range(5)])
            assert await reader == []
            await transport.close()
            assert transport.process.returncode == 0

        run_both_ways(main)

    def test_close_without_open_does_nothing(self):
        async def main():
            transport = child(ECHO)
            await transport.close()
            assert transport.explain() == "was closed"

        run(main())

    def test_close_is_finished_although_its_caller_is_cancelled(self):
        async def main():
            transport = child(ECHO)
            await transport.open()
            closing = asyncio.ensure_future(transport.close())
            await asyncio.sleep(0)
            closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
            await transport.close()
            assert transport.process.returncode == 0

        run(main())

    def test_when_everything_is_cancelled_the_child_is_killed(self):
        found = []

        async def main():
            transport = child(self.STUBBORN, exit_seconds=60)
            await transport.open()
            await transport.read()
            found.append(transport.process.pid)
            asyncio.ensure_future(transport.close())
            await asyncio.sleep(0)  # and asyncio.run() cancels what is left

        before = (open_descriptors(), child_processes(), lasting_threads())
        asyncio.run(main())
        wait_until(lambda: not is_alive(found[0]))
        check_nothing_left(before)

    def test_a_server_ends_when_its_client_is_killed(self):
        code = PRELUDE + f"""
async def main():
    transport = m.StdioTransport([sys.executable, "-c", {RUN!r}])
    await transport.open()
    print(transport.process.pid, flush=True)
    await asyncio.sleep(3600)
asyncio.run(main())
"""
        with python(code) as client:
            server = int(client.stdout.readline())
            assert is_alive(server)
            client.kill()
            wait_until(lambda: not is_alive(server))

    @pytest.mark.parametrize("how", ["pass", "raise KeyboardInterrupt", "os._exit(0)"])
    def test_a_program_that_forgets_to_close_leaves_no_process(self, how):
        code = PRELUDE + f"""
async def main():
    transport = m.StdioTransport([sys.executable, "-c", {ECHO!r}])
    await transport.open()
    await transport.write({{"id": 1}})
    await transport.read()
    print(transport.process.pid, flush=True)
    {how}
asyncio.run(main())
"""
        with python(code) as client:
            server = int(client.stdout.readline())
            client.wait(20)
            wait_until(lambda: not is_alive(server))
            if how == "pass":
                assert client.stderr.read() == b""


class TestCommandLine:
    """What is started, and what is refused. users-and-competitors.md 4.4, rule 11"""

    PYTHON = sys.executable

    @pytest.mark.parametrize(
        "command, argv",
        [
            (["{python}", "a b", "c;d"], ["{python}", "a b", "c;d"]),
            (("{python}", pathlib.PurePath("x")), ["{python}", "x"]),
            ("{python} -c 'a b' \"c d\" e\\ f", ["{python}", "-c", "a b", "c d", "e f"]),
            ("server.py --flag", ["{python}", "server.py", "--flag"]),
            (["server.py", "--flag"], ["{python}", "server.py", "--flag"]),
            (pathlib.PurePath("my server.py"), ["{python}", "my server.py"]),
            ("my server.py", ["{python}", "my server.py"]),
            ("./tool 1", ["./tool", "1"]),
        ],
    )
    @posix
    def test_a_command_becomes_arguments(self, command, argv, tmp_path):
        (tmp_path / "my server.py").touch()

        def fill(part):
            return part.replace("{python}", sys.executable) if isinstance(part, str) else part

        command = fill(command) if not isinstance(command, (list, tuple)) else [*map(fill, command)]
        made = m.command_line(command, str(tmp_path), os.defpath)
        assert made == [fill(part) for part in argv]

    @posix
    def test_programs_are_found_on_the_path_of_the_child(self, tmp_path):
        (tmp_path / "tool").touch(0o755)
        assert m.command_line("tool -x", None, str(tmp_path)) == [str(tmp_path / "tool"), "-x"]
        with pytest.raises(m.ConnectionClosed, match="cannot start 'tool': it is not on the PATH"):
            m.command_line("tool", None, "/nowhere")

    def test_an_empty_command_is_refused(self):
        for empty in ("", "  ", [], ()):
            with pytest.raises(ValueError, match="empty"):
                m.command_line(empty, None, None)

    @pytest.mark.parametrize("program", ["x/npx.cmd", "x/run.BAT"])
    def test_what_cmd_exe_would_interpret_is_refused(self, program):
        """Windows runs .cmd and .bat files by cmd.exe, whatever started them (CVE-2024-24576)."""
        fine = [program, "-y", "@scope/pkg", "C:\\Program Files (x86)\\a b", "x=1"]
        if os.name != "nt":
            assert m.command_line(fine, None, None) == fine
        for char in '&|<>^%!"\r\n':
            with pytest.raises(ValueError, match=r"cmd\.exe"):
                m.command_line([program, f"a{char}b"], None, os.defpath)

    @pytest.mark.parametrize("executable", ["", None, "/opt/maya/bin/maya.bin"])
    @posix
    def test_inside_an_application_python_is_looked_for(self, monkeypatch, executable, tmp_path):
        (tmp_path / "python3").touch(0o755)
        monkeypatch.setattr(sys, "executable", executable)
        made = m.command_line("server.py", None, str(tmp_path))
        assert made == [str(tmp_path / "python3"), "server.py"]

    def test_what_cannot_be_started_is_told(self, tmp_path):
        async def main():
            transport = m.StdioTransport([str(tmp_path / "nothing")])
            with pytest.raises(m.ConnectionClosed, match="cannot start .*nothing.*No such file"):
                await transport.open()
            await transport.close()

        run(main())

    def test_a_target_is_a_command_or_is_not_ours(self):
        for target in ("python x.py", ["python"], ("a", "b"), pathlib.PurePath("x.py")):
            assert m.connect_stdio(target, {"cwd": "/"}).command == target
        for target in ("http://localhost/mcp", "https://x", 5, None, [1], object(), b"x"):
            assert m.connect_stdio(target, {}) is None
        with pytest.raises(TypeError):
            m.connect_stdio("python x.py", {"no_such_option": 1})


class TestConversation:
    """A Client and a Server, two processes."""

    @staticmethod
    def client(code=RUN, **options):
        return m.Client([sys.executable, "-c", code], **{"stderr": "null", **options})

    def test_a_client_calls_a_server(self):
        async def main():
            lines = []
            async with self.client(stderr=lines.append) as c:
                assert [tool["name"] async for tool in c.tools()][:2] == ["add", "noise"]
                assert await c.call("add", {"a": 1, "b": 2}) == 3
                assert await c.call("noise") == "read nothing"
                assert await c.call("length", {"text": "x" * 5_000_000}) == 5_000_000
                calls = [c.call("add", {"a": i}) for i in range(500)]
                assert await asyncio.gather(*calls) == list(range(500))
                assert "from a child" in lines
                transport = c.transport
            assert transport.process.returncode == 0

        run_both_ways(main)

    @posix
    def test_a_server_that_is_killed_fails_what_is_pending_at_once(self):
        async def main():
            heard = asyncio.Event()
            async with self.client(stderr=lambda line: heard.set()) as c:
                calls = [asyncio.ensure_future(c.call(name)) for name in ("forever", "sleep")]
                await heard.wait()
                os.killpg(c.transport.process.pid, 9)
                for pending in calls:
                    with pytest.raises(m.ConnectionClosed, match="was killed by SIGKILL"):
                        await pending
                with pytest.raises(m.ConnectionClosed, match="was killed by SIGKILL"):
                    await c.call("add", {"a": 1})

        run(main())

    def test_a_server_that_fails_at_the_start_is_quoted(self):
        async def main():
            with pytest.raises(m.ConnectionClosed) as caught:
                await self.client("import no_such_module").connect()
            assert str(caught.value).endswith("No module named 'no_such_module'\"")
            assert "exited with status 1; its last words: \"Traceback" in str(caught.value)

        run(main())

    def test_what_it_printed_is_quoted_if_it_never_answers(self):
        async def main():
            client = self.client("print('welcome!', flush=True); input(); input()", timeout=0.5)
            with pytest.raises(m.RequestTimeout, match="printed to stdout: \"welcome!\""):
                await client.connect()

        run(main())

    def test_a_client_may_be_cancelled_at_any_moment(self):
        """... and leaves no process, task or descriptor, which run() checks."""

        async def use():
            async with self.client(ECHO, timeout=0.2) as c:
                await c.ping()

        async def main(steps):
            task = asyncio.ensure_future(use())
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, m.MCPError):
                await task

        for steps in range(12):
            run(main(steps))

    def test_a_server_runs_in_a_thread_of_a_host(self):
        """start_in_thread("stdio"): no signals there, and stop() gives the streams back."""
        code = SERVER + """
done = threading.Event()
app.tool(done.set, name="done")
h = app.start_in_thread("stdio")
assert sys.stdin.readline() == ""
done.wait()
h.stop()
print("stopped", file=sys.stderr, flush=True)
print("afterwards", sys.stdin.readline())
"""
        with python(code) as process:
            process.stdin.write(call(1, "add", a=1))
            process.stdin.flush()
            assert texts(process.stdout.readline()) == {1: "1"}
            process.stdin.write(call(2, "done"))
            process.stdin.flush()
            assert process.stderr.readline() == b"stopped\n"
            out, err = process.communicate(b"mine", timeout=20)
            assert (process.returncode, err) == (0, b"")
            assert out.endswith(b"afterwards mine\n")
###############################################################################
# T22. Command line
###############################################################################

CLI_SERVER = f"""
import asyncio, sys
sys.path.insert(0, {str(HERE)!r})
from typing import List, Literal, Optional
from mcp_lite import Context, Image, Server, ToolError

app = Server("shop", version="2.1", instructions="Ask \\x1b[31mnicely\\x1b[0m.")

@app.tool
def add(a: int, b: int = 0) -> int:
    "Add two numbers."
    return a + b

@app.tool
def describe(tags: List[str], size: Literal["s", "l"] = "s", note: Optional[str] = None) -> str:
    return f"{{tags}} {{size}} {{note}}"

@app.tool
async def copy(ctx: Context, password: str = "") -> str:
    for done in range(1, 21):
        await ctx.report_progress(done, 20, "copying")
    await ctx.warning("disk \\x1b[2Jis full")
    return "done"

@app.tool
def fail() -> str:
    raise ToolError("out of \\x1b]0;x\\x07stock")

@app.tool
async def wait(ctx: Context) -> str:
    await ctx.report_progress(1, None, "waiting")
    await asyncio.sleep(3600)

@app.tool
async def ask(ctx: Context) -> str:
    answer = await ctx.elicit("How many?", int)
    return f"{{answer.action}} {{answer.data!r}}"

@app.tool
async def think(ctx: Context) -> str:
    return (await ctx.sample("why?"))["content"]["text"]

@app.resource("shop://sign")
def sign() -> str:
    return "open"

@app.resource("shop://logo", mime_type="image/png")
def logo() -> bytes:
    return b"\\x89PNG\\r\\n"

@app.resource("shop://item/{{id}}")
def item(id: str) -> str:
    return f"item {{id}}"

@app.prompt
def offer(item: str, tone: Literal["loud", "low"] = "low") -> str:
    return f"Praise {{item}}, {{tone}}"

if __name__ == "__main__":
    app.run()
"""

# A server that answers initialize well, and everything else with what it is given.
CLI_LIAR = """
import json, sys
for line in sys.stdin:
    msg = json.loads(line)
    if "id" in msg:
        hello = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                 "serverInfo": {"name": "liar", "version": "0"}}
        result = hello if msg["method"] == "initialize" else json.loads(sys.argv[1])
        print(json.dumps({"jsonrpc": "2.0", "id": msg["id"], "result": result}), flush=True)
"""


@pytest.fixture
def shop(tmp_path):
    """Give the path of a server."""
    path = tmp_path / "shop.py"
    path.write_text(CLI_SERVER)
    return str(path)


@pytest.fixture
def cli(capsys):
    """Give a function that runs a command line and returns (status, stdout, stderr)."""

    def call(*argv):
        before = (open_descriptors(), child_processes(), lasting_threads())
        status = m.main(argv)
        check_nothing_left(before)
        return (status, *capsys.readouterr())

    return call


def shell(*argv, **options):
    """Run a command line in a process of its own."""
    command = [sys.executable, m.__file__, *argv]
    return subprocess.run(
        command, timeout=30, stdin=subprocess.DEVNULL, capture_output=True, **options
    )


class TestTextForTerminals:
    """What a server says can only be shown."""

    @pytest.mark.parametrize(
        "hostile, harmless",
        [
            ("\x1b[31mred\x1b[0m", "red"),
            ("\x1b[2J\x1b[1;1Hgone", "gone"),
            ("\x1b]0;title\x07text", "text"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1b]52;c;never ended", "]52;c;never ended"),
            ("\x1bP1$r\x1b\\dcs", "dcs"),
            ("\x9b31mred", "red"),
            ("\x1bcreset", "reset"),
            ("a\rb\x08\x7f\x00c", "abc"),
            ("safe\u202egpj.exe", "safegpj.exe"),
            ("tab\tand\nnewline stay, as do ä and 漢", "tab\tand\nnewline stay, as do ä and 漢"),
        ],
    )
    def test_control_sequences_are_taken_out(self, hostile, harmless):
        assert m.plain(hostile) == harmless

    def test_no_control_character_survives_whatever_the_mixture(self):
        dice = rng("controls")
        for _ in range(2000):
            text = "".join(
                dice.choices("\x1b\x9b\x9d\x07\\[]P;0m\x00\r\u202e a", k=dice.randint(0, 30))
            )
            shown = m.plain(text)
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", shown)
            assert m.plain(shown) == shown

    @pytest.mark.parametrize(
        "schema, words",
        [
            ({}, "any"),
            (True, "any"),
            ({"type": "string"}, "string"),
            ({"type": ["integer", "null"]}, "integer | null"),
            ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "integer | null"),
            ({"const": "x"}, '"x"'),
            ({"enum": list(range(12))}, "0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | ..."),
            ({"type": "array"}, "[any]"),
            ({"$ref": "#/$defs/Tree"}, "Tree"),
            (
                {"properties": {"x": {"type": "number"}, "y": {"default": "a"}}, "required": ["x"]},
                '{x: number, y: any = "a"}',
            ),
        ],
    )
    def test_schema_is_shown_as_a_type(self, schema, words):
        assert m.type_words(schema) == words

    def test_schema_that_contains_itself_many_times_ends(self):
        schema = {"type": "object", "properties": {}}
        schema["properties"]["again"] = schema
        assert len(m.type_words(schema)) < 100


class TestTrace:
    """The view of the wire."""

    def view(self, *messages, stream=None):
        stream = stream or io.StringIO()
        show = m.TraceView(stream)
        for message in messages:
            show(*message)
        return re.sub(r"\d+\.\d+(?= ms|  )", "N", stream.getvalue())

    def test_conversation_reads_like_this(self):
        call = {"name": "add", "arguments": {"a": 1}, "_meta": {"progressToken": 7}}
        step = {"progressToken": 7, "progress": 1}
        content = [
            {
                "type": "text",
                "text": "a sentence that is so long that it takes a line of its own alone",
            }
        ]
        shown = self.view(
            (">", "x", {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call}),
            ("<", "x", {"jsonrpc": "2.0", "method": "notifications/progress", "params": step}),
            ("<", "x", {"jsonrpc": "2.0", "id": 7, "result": {"content": content}}),
            ("<", "y", {"jsonrpc": "2.0", "id": 9, "error": {"code": -1, "message": "\x1b[0mno"}}),
            ("<", "x", m.ProtocolError("not JSON")),
            (">", "x", [{"id": 1, "method": "ping"}, {"id": 2, "method": "ping"}]),
        )
        assert shown.splitlines() == [
            "   N  --> tools/call add #7",
            '          {"jsonrpc": "2.0", "id": 7, "method": "tools/call",',
            '           "params": {"name": "add", "arguments": {"a": 1}, "_meta": {"progressToken": 7}}}',
            "   N  <-- notifications/progress",
            '          {"jsonrpc": "2.0", "method": "notifications/progress",',
            '           "params": {"progressToken": 7, "progress": 1}}',
            "   N  <-- result of tools/call add #7, N ms",
            '          {"jsonrpc": "2.0", "id": 7,',
            '           "result": {',
            '             "content": [',
            '               {"type": "text",',
            '                "text": "a sentence that is so long that it takes a line of its own alone"}]}}',
            "   N  <-- error for an unknown request, N ms  (y)",
            '          {"jsonrpc": "2.0", "id": 9, "error": {"code": -1, "message": "\\u001b[0mno"}}',
            "   N  <-- not a message: not JSON",
            "   N  --> batch: ping #1, ping #2",
            '          [{"id": 1, "method": "ping"}, {"id": 2, "method": "ping"}]',
        ]

    @pytest.mark.parametrize(
        "secret",
        [
            {"authorization": "hunter2"},
            {"Authorization": ["hunter2"]},
            {"arguments": {"password": "hunter2"}},
            {"db_password": {"value": "hunter2"}},
            {"properties": {"password": "hunter2"}},
            {"apiKey": "hunter2", "x-api-key": "hunter2", "API_KEY": "hunter2"},
            {"access_token": "hunter2", "token": "hunter2", "client_secret": "hunter2"},
            {"text": '{"password": "hunter2", "user": "me"}'},
            {"url": "https://x/?token=hunter2&y=1", "header": "Authorization: Bearer hunter2"},
            {"command": ["login", "--password=hunter2"]},
        ],
    )
    def test_secrets_are_redacted(self, secret):
        shown = self.view((">", "x", {"method": "tools/call", "params": secret}))
        assert "hunter2" not in shown
        assert "[redacted]" in shown

    @pytest.mark.parametrize(
        "harmless",
        [
            {"_meta": {"progressToken": 7}},
            {"maxTokens": 100},
            {"inputSchema": {"properties": {"password": {"type": "string"}}}},
            {"nextCursor": "abc", "text": "the secretary passed a token gesture"},
        ],
    )
    def test_what_is_no_secret_is_shown(self, harmless):
        assert m.veil(harmless) == harmless

    def test_long_values_are_shortened_at_the_limit(self):
        limit = m.SHOWN_CHARS
        assert m.veil("x" * limit) == "x" * limit
        assert m.veil("x" * (limit + 1)) == "x" * limit + "... (1 more characters)"
        full = list(range(m.SHOWN_MEMBERS))
        assert m.veil(full) == full
        assert m.veil([*full, 99]) == [*full, "... 1 more"]
        assert (
            list(m.veil({str(n): n for n in range(99)}))[-1] == f"... {99 - m.SHOWN_MEMBERS} more"
        )

    def test_layout_is_still_the_same_json_and_keeps_to_its_width(self):
        dice = rng("layout")

        def value(depth):
            kind = dice.randint(0, 6 if depth else 3)
            if kind > 4:
                return {f"key{n}": value(depth - 1) for n in range(dice.randint(0, 5))}
            if kind == 4:
                return [value(depth - 1) for _ in range(dice.randint(0, 5))]
            return [None, True, -1.5e3, 'quoted "text"\n'][kind]

        for _ in range(300):
            given = value(5)
            text = m.layout(given, 0, 60)
            assert json.loads(text) == given
            # But for the brackets that close what is around it, a line is never longer.
            assert max(len(line.rstrip("]},")) for line in text.splitlines()) <= 60

    def test_deep_nesting_is_laid_out_in_no_time(self):
        value = "x" * 50
        for _ in range(m.MAX_DEPTH):
            value = {"some name": value}
        assert json.loads(m.layout(value)) == value

    def test_colours_are_for_terminals_unless_no_color_is_set(self, monkeypatch):
        class Terminal(io.StringIO):
            def isatty(self):
                return True

        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv("TERM", "xterm")
        message = (">", "x", {"id": 1, "method": "ping"})
        coloured = self.view(message, stream=Terminal())
        assert '\x1b[36m"id"\x1b[0m: \x1b[33m1\x1b[0m' in coloured
        assert m.plain(coloured).splitlines()[1:] == self.view(message).splitlines()[1:]
        monkeypatch.setenv("NO_COLOR", "1")
        assert "\x1b" not in self.view(message, stream=Terminal())

    def test_stream_that_is_closed_does_not_hurt_the_conversation(self):
        stream = io.StringIO()
        show = m.TraceView(stream)
        stream.close()
        show(">", "x", {"method": "ping"})

    def test_requests_that_are_never_answered_are_not_kept_for_ever(self):
        show = m.TraceView(io.StringIO())
        for number in range(m.MAX_IN_FLIGHT + 10):
            show(">", "x", {"id": number, "method": "ping"})
        assert len(show.asked) == m.MAX_IN_FLIGHT

    def test_any_program_is_traced_to_a_file_by_the_environment(self, tmp_path, shop):
        path = tmp_path / "trace"
        script = f"import sys; sys.path.insert(0, {str(HERE)!r}); import mcp_lite; mcp_lite.main(['ping', {shop!r}])"
        env = {**os.environ, "MCP_LITE_TRACE": str(path), "PYTHONWARNINGS": "error"}
        done = subprocess.run(
            [sys.executable, "-c", script], env=env, timeout=30, capture_output=True
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert re.findall("(?:-->|<--) (?:result of )?([a-z/]+)", path.read_text()) == [
            "initialize", "initialize", "notifications/initialized", "ping", "ping",
        ]  # fmt: skip


class TestValuesFromWords:
    """KEY=VALUE means what the schema says."""

    @pytest.mark.parametrize(
        "text, schema, value",
        [
            ("1", {"type": "integer"}, 1),
            ("1", {"type": "string"}, "1"),
            ("1", {"type": ["integer", "string"]}, "1"),
            ("1.5", {"type": "number"}, 1.5),
            ("x", {"type": "integer"}, "x"),
            ("true", {"type": "boolean"}, True),
            ("True", {"type": "boolean"}, True),
            ("yes", {"type": "boolean"}, True),
            ("off", {"type": "boolean"}, False),
            ("null", {"type": ["integer", "null"]}, None),
            ("3", {"anyOf": [{"type": "integer"}, {"type": "null"}]}, 3),
            ("a, b", {"type": "array", "items": {"type": "string"}}, ["a", "b"]),
            ("1,2", {"type": "array", "items": {"type": "integer"}}, [1, 2]),
            ('["a,b"]', {"type": "array", "items": {"type": "string"}}, ["a,b"]),
            ('{"x": 1}', {"type": "object"}, {"x": 1}),
            ("1", {"enum": [1, 2]}, 1),
            ("a", {"enum": ["a", "b"]}, "a"),
            ("1", {}, 1),
            ("word", None, "word"),
        ],
    )
    def test_text_becomes_the_value_that_the_schema_wants(self, text, schema, value):
        converted = m.convert(text, schema)
        assert (converted, type(converted)) == (value, type(value))

    @pytest.mark.parametrize(
        "words, problem",
        [
            (["a"], "'a' is not KEY=VALUE"),
            (["amount=1", "size=2"], "no argument of USAGE 'size'; there is: amount"),
            (["amont=1"], "did you mean amount?"),
            ([], "amount: is required"),
            (["amount=x"], "amount: expected integer"),
        ],
    )
    def test_what_breaks_the_schema_is_a_usage_error_that_says_how(self, words, problem):
        schema = {"properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
        with pytest.raises(m.UsageError) as caught:
            m.read_arguments(words, schema, "USAGE")
        assert problem in str(caught.value)
        assert "USAGE" in str(caught.value)

    def test_schema_that_cannot_be_used_leaves_the_judgement_to_the_server(self):
        schema = {"properties": {"a": {"$ref": "https://elsewhere/schema"}}}
        assert m.read_arguments(["a=1"], schema, "") == {"a": 1}


class TestVerbs:
    """Each verb, against a server in a process of its own."""

    def test_tools_are_signatures(self, cli, shop):
        status, out, err = cli("tools", shop)
        assert (status, err) == (0, "")
        assert "add(a: integer, b: integer = 0) -> integer\n    Add two numbers.\n" in out

    def test_info_shows_all_that_is_offered(self, cli, shop):
        status, out, err = cli("info", shop)
        assert out.startswith("shop 2.1, revision 2025-11-25\n")
        assert "\nAsk nicely.\n" in out
        for part in (
            "\nTOOLS\n",
            "\nRESOURCES\n",
            "\nTEMPLATES\nshop://item/{id}",
            "\nPROMPTS\noffer(item, tone?)",
        ):
            assert part in out

    def test_json_is_the_result_as_it_was_sent(self, cli, shop):
        status, out, err = cli("info", "--json", shop)
        assert json.loads(out)["instructions"] == "Ask \x1b[31mnicely\x1b[0m."
        assert "\x1b" not in out
        status, out, err = cli("call", "--json", "add", "a=2", shop)
        assert json.loads(out)["structuredContent"] == {"result": 2}
        assert err == ""

    def test_call_converts_checks_and_prints(self, cli, shop):
        status, out, err = cli("call", "add", "a=1", "b=2", shop)
        assert (status, out) == (0, "3\n")
        assert err.startswith("shop offers add, describe, copy")
        status, out, err = cli("call", "describe", "tags=x,y", "note=1", shop)
        assert out == "['x', 'y'] s 1\n"

    def test_call_takes_all_arguments_as_json(self, cli, shop):
        assert cli("call", "add", "--json", '{"a": 5, "b": 6}', shop)[:2] == (0, "11\n")
        assert cli("call", "add", "--arguments", '{"a": 5}', shop)[:2] == (0, "5\n")

    def test_progress_and_log_lines_go_to_stderr(self, cli, shop):
        status, out, err = cli("call", "copy", shop)
        assert out == "done\n"
        progress = [line for line in err.splitlines() if line.startswith("progress: ")]
        assert progress[0] == "progress: 1/20 copying"
        assert progress[-1] == "progress: 20/20 copying"
        assert 2 <= len(progress) <= 12
        assert "warning: disk is full\n" in err

    def test_tool_that_fails_is_status_1(self, cli, shop):
        status, out, err = cli("call", "fail", shop)
        assert (status, out) == (1, "")
        assert err.endswith("error: out of stock\n")
        status, out, err = cli("call", "fail", "--json", shop)
        assert status == 1
        assert json.loads(out)["isError"] is True

    def test_resources_prompts_and_completion(self, cli, shop):
        assert cli("resources", shop)[1].startswith("shop://sign")
        assert cli("templates", shop)[1].startswith("shop://item/{id}")
        assert cli("read", "shop://item/7", shop)[1] == "item 7\n"
        assert cli("prompts", shop)[1] == "offer(item, tone?)\n"
        assert cli("prompt", "offer", "item=tea", shop)[1] == "user: Praise tea, low\n"
        assert cli("complete", "offer", "tone=l", "item=tea", shop)[1] == "loud\nlow\n"
        assert re.fullmatch(r"an answer took \d+\.\d ms\n", cli("ping", shop)[1])

    def test_binary_resource_goes_into_a_pipe_as_it_is(self, shop):
        assert shell("read", "shop://logo", shop).stdout == b"\x89PNG\r\n"

    def test_server_that_asks_nobody_is_declined(self, cli, shop, monkeypatch):
        monkeypatch.setattr(sys, "stdin", io.StringIO("42\n"))
        status, out, err = cli("call", "ask", shop)
        assert (status, out) == (0, "decline None\n")
        assert "The server asks: How many?" in err
        status, out, err = cli("call", "think", shop)
        assert status == 1
        assert "User rejected sampling request" in err

    @pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no pseudo-terminals here")
    def test_person_at_a_terminal_is_asked(self, shop):
        ours, theirs = os.openpty()
        try:
            os.write(ours, b"many\n42\n")  # the first is no integer, so the question comes again
            command = [sys.executable, m.__file__, "call", "ask", shop]
            done = subprocess.run(command, stdin=theirs, timeout=30, capture_output=True, text=True)
            assert (done.returncode, done.stdout) == (0, "accept 42\n")
            assert done.stderr.count("value: integer: ") == 2
            assert "expected integer, got string" in done.stderr
            os.write(ours, b"because\n")
            command[3] = "think"
            done = subprocess.run(command, stdin=theirs, timeout=30, capture_output=True, text=True)
            assert done.stdout == "because\n"
            assert "user: why?\n" in done.stderr
        finally:
            os.close(ours)
            os.close(theirs)

    def test_trace_shows_every_message_and_keeps_stdout_clean(self, cli, shop):
        status, out, err = cli("call", "copy", "password=hunter2", "--trace", shop)
        assert out == "done\n"
        assert "hunter2" not in err
        steps = re.findall(
            r"(-->|<--) (initialize|result of tools/call|tools/call|notifications/p)", err
        )
        assert steps[0] == ("-->", "initialize")
        assert ("-->", "tools/call") in steps
        assert steps[-1] == ("<--", "result of tools/call")
        assert m._trace is None

    def test_options_reach_the_server_and_the_protocol(self, cli, tmp_path):
        script = tmp_path / "where.py"
        script.write_text(
            f"import os, sys; sys.path.insert(0, {str(HERE)!r}); import mcp_lite\n"
            "app = mcp_lite.Server()\n"
            "@app.tool\n"
            "async def where(ctx: mcp_lite.Context) -> str:\n"
            "    roots = [root['name'] for root in await ctx.roots()]\n"
            "    return f'{os.getcwd()} {os.environ.get(\"COLOUR\")} {ctx.revision} {roots}'\n"
            "app.run()\n"
        )
        folder = os.path.realpath(tmp_path)
        status, out, err = cli(
            "call", "where", "--cwd", folder, "--env", "COLOUR=red", "--revision", "2025-03-26",
            "--root", folder, str(script),
        )  # fmt: skip
        assert out == f"{folder} red 2025-03-26 ['{os.path.basename(folder)}']\n"

    def test_log_level_is_asked_for(self, cli, shop):
        assert "disk" not in cli("call", "copy", "--log", "error", shop)[2]


class TestTargets:
    """What a command line may be about."""

    def test_target_stands_last_or_first_or_after_two_dashes(self, cli, shop):
        for argv in (
            ("call", "add", "a=1", shop),
            ("call", shop, "add", "a=1"),
            ("call", "add", "a=1", "--", sys.executable, shop),
            ("call", "add", "a=1", f"{shop}:app"),
        ):
            assert cli(*argv)[:2] == (0, "1\n"), argv

    def test_url_is_refused_clearly_while_nothing_can_reach_it(self, cli, monkeypatch):
        monkeypatch.setattr(m, "CONNECTORS", m.CONNECTORS[:1])
        status, out, err = cli("tools", "http://localhost:1/mcp")
        assert status == 2
        assert "cannot connect to 'http://localhost:1/mcp'" in err

    @pytest.mark.parametrize(
        "argv, problem",
        [
            ([], "usage: mcp_lite VERB"),
            (["tols", "x.py"], "did you mean tools?"),
            (["tools"], "as in: mcp_lite tools"),
            (["read", "x.py"], "as in: mcp_lite read URI TARGET"),
            (["call", "SHOP"], "as in: mcp_lite call NAME [KEY=VALUE ...] TARGET"),
            (["complete", "offer", "SHOP"], "as in: mcp_lite complete"),
            (["call", "ad", "SHOP"], "no tool 'ad'; did you mean add?"),
            (["call", "add", "c=1", "SHOP"], "no argument of add(a: integer"),
            (["call", "add", "SHOP"], "a: is required"),
            (["prompt", "ofer", "SHOP"], "did you mean offer?"),
            (["prompt", "offer", "SHOP"], "item: is required"),
            (["tools", "--revision", "2024-01-01", "SHOP"], "2025-11-25"),
            (["tools", "--bogus", "SHOP"], "--bogus"),
            (["serve", "nothing.py"], "no such Python file"),
            (["serve", "--", "SHOP"], "as in: mcp_lite serve"),
        ],
    )
    def test_wrong_command_line_is_status_2_and_says_what_is_right(self, cli, shop, argv, problem):
        status, out, err = cli(*[shop if word == "SHOP" else word for word in argv])
        assert (status, out) == (2, "")
        assert problem in err

    @pytest.mark.parametrize(
        "argv, problem",
        [
            (["tools", "--", sys.executable, "-c", "raise SystemExit(7)"], "exited with status 7"),
            (["tools", "--", "no-such-program-anywhere"], "no-such-program-anywhere"),
            (["tools", "--cwd", "no-such-folder", "--", sys.executable], "no-such-folder"),
            (
                ["ping", "--timeout", "0.2", "--", sys.executable, "-c", "input(); input()"],
                "did not answer",
            ),
            (["read", "shop://none", "SHOP"], "Resource not found"),
        ],
    )
    def test_connection_and_protocol_failures_are_status_3(self, cli, shop, argv, problem):
        status, out, err = cli(*[shop if word == "SHOP" else word for word in argv])
        assert (status, out) == (3, "")
        assert problem in err.splitlines()[-1]

    @pytest.mark.parametrize(
        "lie",
        [
            {"tools": [{}]},
            {"tools": [None]},
            {"tools": [{"name": 7, "inputSchema": {}}]},
            {"tools": [{"name": "x", "inputSchema": 5}]},
            {"tools": [{"name": "x", "inputSchema": {"properties": [1], "required": 5}}]},
            {"tools": [{"name": "x", "inputSchema": {"type": {}}, "outputSchema": "y"}]},
        ],
    )
    def test_answer_that_makes_no_sense_never_ends_in_a_traceback(self, cli, tmp_path, lie):
        path = tmp_path / "liar.py"
        path.write_text(CLI_LIAR)
        status, out, err = cli("tools", "--", sys.executable, str(path), json.dumps(lie))
        assert status in (0, 3)
        assert "Traceback" not in err

    def test_version_and_help_are_status_0(self, cli):
        assert cli("--version") == (0, f"mcp_lite {m.__version__}\n", "")
        status, out, err = cli("--help")
        assert status == 0
        assert all(f"\n  {verb}" in out for verb in m.VERBS)


class TestServe:
    """`serve FILE.py[:APP]`"""

    def test_served_file_shares_this_very_module(self, cli, tmp_path):
        path = tmp_path / "plain_app.py"
        path.write_text(
            "import mcp_lite\nthing = mcp_lite.Server('of the file')\n@thing.tool\ndef f() -> int: return 1\n"
        )
        argv = ("call", "f", "--", sys.executable, m.__file__, "serve", str(path))
        assert cli(*argv)[:2] == (0, "1\n")

    def test_functions_of_a_plain_module_become_tools(self, cli, tmp_path):
        path = tmp_path / "sums.py"
        path.write_text(
            '"""Sums."""\nfrom os.path import join\n'
            "def double(n: int) -> int:\n    return 2 * n\n"
            "def _hidden(n: int) -> int: ...\ndef unannotated(n): ...\nclass Thing: ...\n"
        )
        serve = ("--", sys.executable, m.__file__, "serve", str(path))
        assert cli("tools", *serve)[1] == "double(n: integer) -> integer\n"
        assert cli("call", "double", "n=4", *serve)[1] == "8\n"
        assert "\nSums.\n" in cli("info", *serve)[1]

    def test_one_of_several_servers_is_chosen_by_name(self, cli, tmp_path):
        path = tmp_path / "two.py"
        path.write_text(
            "import mcp_lite\na = mcp_lite.Server('A')\nb = mcp_lite.Server('B')\nc = b\n"
        )
        assert cli("info", f"{path}:b")[1].startswith("B ")
        done = shell("serve", str(path))
        assert done.returncode == 2
        assert f"There is: {path}:a, {path}:b, {path}:c" in done.stderr.decode()
        assert shell("serve", f"{path}:d").returncode == 2

    def test_file_with_nothing_to_serve_says_so(self, tmp_path):
        path = tmp_path / "empty.py"
        path.write_text("x = 1\n")
        done = shell("serve", str(path))
        assert done.returncode == 2
        assert b"neither a Server nor public functions" in done.stderr

    def test_file_that_fails_shows_its_own_traceback(self, tmp_path):
        path = tmp_path / "broken.py"
        path.write_text("import nothing_of_this_name\n")
        done = shell("serve", str(path))
        assert done.returncode == 1
        assert b"No module named 'nothing_of_this_name'" in done.stderr

    def test_copy_of_this_file_beside_the_program_serves_too(self, cli, tmp_path):
        (tmp_path / "vendored_mcp_lite.py").write_text(
            pathlib.Path(m.__file__).read_text("utf-8"), "utf-8"
        )
        path = tmp_path / "vendored.py"
        path.write_text("import vendored_mcp_lite as v\napp = v.Server('vendored')\n")
        assert cli("info", f"{path}:app")[1].startswith("vendored ")


@pytest.mark.skipif(os.name == "nt", reason="signals and pipes of POSIX")
class TestEnds:
    """However it ends, quietly."""

    def test_interrupt_is_status_130_without_a_traceback(self, shop):
        process = subprocess.Popen(
            [sys.executable, m.__file__, "call", "wait", shop],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        with process:
            while b"waiting" not in process.stderr.readline():
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=20)
        assert (process.returncode, out, err) == (130, b"", b"")

    def test_reader_that_goes_away_is_no_error(self, shop):
        ours, theirs = os.pipe()
        os.close(ours)
        try:
            command = [sys.executable, m.__file__, "info", shop]
            done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, timeout=30)
        finally:
            os.close(theirs)
        assert (done.returncode, done.stderr) == (0, b"")


class TestExamples:
    """The programs in examples/ do what they say."""

    EXAMPLES = HERE / "examples"

    def test_quickstart_never_leaves_its_folder(self, tmp_path):
        (tmp_path / "outside.txt").write_text("needle")
        folder = tmp_path / "folder"
        (folder / "sub").mkdir(parents=True)
        (folder / "sub" / "a.txt").write_text("hay\nneedle here\n")
        with contextlib.suppress(OSError, NotImplementedError):
            (folder / "link.txt").symlink_to(tmp_path / "outside.txt")
        steps = []

        async def main():
            target = [sys.executable, str(self.EXAMPLES / "quickstart.py"), str(folder)]
            async with m.Client(target, progress=lambda *step: steps.append(step)) as c:
                for files in ("*", "../*", "**/*.txt"):
                    found = await c.call("search", {"text": "NEEDLE", "files": files})
                    assert "outside" not in found and "link" not in found
                assert await c.call("search", {"text": "NEEDLE"}) == "sub/a.txt:2: needle here"
                assert await c.call("read_file", {"path": "sub/a.txt", "first": 2}) == "needle here"
                assert await c.read("folder://sub/a.txt") == "hay\nneedle here"
                for path in ("../outside.txt", str(tmp_path / "outside.txt"), "link.txt", "none"):
                    with pytest.raises(m.ToolError, match="there is no file"):
                        await c.call("read_file", {"path": path})
                with pytest.raises(m.RemoteError):
                    await c.read("folder://../outside.txt")

        run(main())
        assert (1, 1, "sub/a.txt") in steps

    def test_host_runs_tools_on_its_main_thread_and_ends(self):
        command = [sys.executable, str(self.EXAMPLES / "embed_in_host.py"), "--demo"]
        done = subprocess.run(command, timeout=30, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines() == [
            "cube is at (2.5, 0.0, 0.0), says the MainThread",
            "1 of 4", "2 of 4", "3 of 4", "4 of 4",
            "cube is at (2.5, 0.0, 0.0), says the MainThread",
        ]  # fmt: skip

    def test_host_serves_on_its_own_streams_too(self):
        async def main():
            async with m.Client([sys.executable, str(self.EXAMPLES / "embed_in_host.py")]) as c:
                assert "MainThread" in await c.call("move", {"name": "cube", "x": 1})

        run(main())


###############################################################################
# T99. The book itself
###############################################################################
#
# mcp_lite.py is to be read from top to bottom. What that needs and a machine can see is checked
# here; the thresholds were measured on the protocol code that is most admired for being readable.

BANNER = re.compile(r"^#{79}\n# (T?)(\d+)\. (.+)\n#{79}\n", re.M)
SOURCE = pathlib.Path(m.__file__).read_text(encoding="utf-8")
LINES = SOURCE.splitlines()


class Part(typing.NamedTuple):
    """One numbered section of a file: mcp_lite.py or this one."""

    number: int
    title: str
    first: int  # line number of its banner
    last: int
    text: str

    @property
    def intro(self):
        """The comment that follows the banner."""
        lines = self.text.splitlines()[3:]
        return list(itertools.takewhile(lambda line: line.startswith("#"), lines))

    @property
    def pure(self):
        return self.intro[:1] != [] and self.intro[0].startswith("# Pure.")


def sections_of(text):
    """Return the sections of a file in order; the text above the first banner is number 0."""
    marks = [(0, 0, "Preface")]
    marks += [(hit.start(), int(hit[2]), hit[3]) for hit in BANNER.finditer(text)]
    ends = [mark[0] for mark in marks[1:]] + [len(text)]
    return [
        Part(
            number,
            title,
            text.count("\n", 0, start) + 1,
            text.count("\n", 0, end),
            text[start:end],
        )
        for (start, number, title), end in zip(marks, ends)
    ]


SECTIONS = sections_of(SOURCE)
NUMBERED = SECTIONS[1:]
TEST_PARTS = sections_of(pathlib.Path(__file__).read_text(encoding="utf-8"))
TEST_HEAD = TEST_PARTS[0].text + TEST_PARTS[1].text  # imports, and T0
TESTS = {part.number: part for part in TEST_PARTS[2:]}
TREE = ast.parse(SOURCE)
WANTED_HEADS = ("Problem", "Rules", "Plan", "Not here")
each_section = pytest.mark.parametrize("part", NUMBERED, ids=lambda part: f"{part.number}")


def upto(number):
    """Return the text of mcp_lite.py cut off after a section."""
    return "".join(part.text for part in SECTIONS if part.number <= number)


def nodes_of(part, *, annotations=False):
    """Return a section's syntax tree, without annotations: those are for the reader."""
    tree = ast.parse("\n" * (part.first - 1) + part.text)
    for node in ast.walk(tree) if not annotations else ():
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(0)
    return tree


def globals_used(part, *, annotations=False, inside=False):
    """Return the module-level names that a section refers to; `inside`: in function bodies only."""
    tree = ast.fix_missing_locations(nodes_of(part, annotations=annotations))
    tables = [symtable.symtable(ast.unparse(tree), "mcp_lite.py", "exec")]
    used = set()
    for table in tables:
        tables += table.get_children()
        module = table.get_type() == "module"
        if not (module and inside):
            names = [name for name in table.get_symbols() if name.is_referenced()]
            used |= {name.get_name() for name in names if module or name.is_global()}
    return used


def functions(tree):
    """Yield (qualified name, node) of all functions, methods and nested functions."""
    todo = [(child, "") for child in ast.iter_child_nodes(tree)]
    while todo:
        node, where = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield where + node.name, node
        name = f"{where}{node.name}." if hasattr(node, "name") and node.name else where
        todo += [(child, name) for child in ast.iter_child_nodes(node)]


def docstring_lines(tree):
    """Return the numbers of the lines that are docstrings."""
    found = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found |= set(range(body[0].lineno, body[0].end_lineno + 1))
    return found


def code_and_narrative():
    """Return two sets of line numbers; a line with code and a comment is only in the first."""
    quiet = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    docs = docstring_lines(TREE)
    code = set()
    for token in tokenize.generate_tokens(io.StringIO(SOURCE).readline):
        if token.type not in quiet and token.type != tokenize.ENDMARKER:
            code |= set(range(token.start[0], token.end[0] + 1))
    words = {n for n, line in enumerate(LINES, 1) if any(c.isalnum() for c in line)}
    code -= docs
    return code, words - code


CODE, NARRATIVE = code_and_narrative()


def size(node):
    """Return how many lines of code a function or class has."""
    return len(CODE.intersection(range(node.lineno, node.end_lineno + 1)))


def nesting(node):
    """Return how deep the compound statements of a function are nested; `elif` is no deeper."""
    deeper = (ast.If, ast.For, ast.While, ast.Try, ast.With, ast.AsyncFor, ast.AsyncWith)
    deeper += (ast.FunctionDef, ast.AsyncFunctionDef)
    depth = 0
    for child in ast.iter_child_nodes(node):
        below = nesting(child)
        is_elif = isinstance(node, ast.If) and node.orelse == [child] and isinstance(child, ast.If)
        depth = max(depth, below + (isinstance(child, deeper) and not is_elif))
    return depth


CITATION = re.compile(r"\bspec(?: (\d{4}-\d\d-\d\d))?: ([\w./-]*\w)(?:#([\w-]+))?")
OTHER_CITATION = re.compile(r"\b(RFC \d{4}|JSON-RPC 2\.0 §|WHATWG|JSON Schema 20)")


def citations():
    """Yield (line number, revision, page, anchor, quotation) of what cites the specification."""
    for number, line in enumerate(LINES, 1):
        for hit in CITATION.finditer(line):
            rest = line[hit.end() :]
            for following in LINES[number : number + 4]:  # a quotation may run on
                if rest.count('"') != 1:
                    break
                rest += " " + following.strip(" #")
            quote = re.match(r' -- [^"]*"([^"]+)"', rest)
            yield number, hit[1] or "2026-07-28", hit[2], hit[3], quote and quote[1]


def prose(markdown):
    """Return text without markup, spaces made one: what a quotation must be found in."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", markdown)
    return " ".join(re.sub(r"[*_`>]", "", text).split()).casefold()


def anchors(markdown):
    """Return the anchors of a page's headings, as the specification's site makes them."""
    found = set()
    for heading in re.findall(r"^#+ +(.+?) *$", markdown, re.M):
        found.add(re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-"))
    return found


@contextlib.contextmanager
def cut_module(number):
    """Give the module that mcp_lite.py is when it is cut off after a section."""
    module = types.ModuleType("mcp_lite")
    module.__file__ = m.__file__
    sys.modules["mcp_lite"] = module
    try:
        exec(compile(upto(number), m.__file__, "exec"), vars(module))
        yield module
    finally:
        sys.modules["mcp_lite"] = m


@functools.cache
def names_after(number):
    """Return the module-level names of what mcp_lite.py is when cut off after a section."""
    with cut_module(number) as cut:
        return frozenset(vars(cut))


def defined(part):
    """Return the names that a section defines at module level."""
    return names_after(part.number) - names_after(SECTIONS[SECTIONS.index(part) - 1].number)


class TestReadingOrder:
    """Reading order is dependency order: you can stop at any banner and have a working thing."""

    def test_sections_stand_in_order(self):
        numbers = [part.number for part in NUMBERED]
        assert numbers == sorted(set(numbers))

    def test_contents_in_the_preface_are_the_banners(self):
        contents = re.findall(r"^ +(\d+)  ?(\S.*?)(?:  +.*)?$", m.__doc__, re.M)
        assert contents == [(str(part.number), part.title) for part in NUMBERED]

    @each_section
    def test_every_section_says_what_it_is_for_before_code(self, part):
        heads = [re.match(r"# (\w[\w ]*)\.", line) for line in part.intro]
        heads = [head[1] for head in heads if head and head[1] in WANTED_HEADS]
        assert heads == list(WANTED_HEADS)

    @each_section
    def test_cut_off_after_any_section_every_name_resolves_and_doctests_pass(self, part):
        with cut_module(part.number) as cut:
            unknown = globals_used(part, inside=True) - set(vars(cut)) - set(vars(builtins))
            assert not unknown
            finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
            for name in sorted(defined(part)):
                if getattr(vars(cut).get(name), "__module__", None) == "mcp_lite":
                    for test in finder.find(vars(cut)[name], name, cut, vars(cut)):
                        runner.run(test)
            assert not runner.failures

    def test_cut_off_after_any_section_up_to_the_engine_its_tests_pass(self, tmp_path):
        """Both files are cut: of the tests, T0 and the section's own remain."""

        def run_tests(part):
            folder = tmp_path / str(part.number)
            folder.mkdir()
            (folder / "mcp_lite.py").write_text(upto(part.number), "utf-8")
            tests = TEST_HEAD + TESTS[part.number].text
            (folder / "test_mcp_lite.py").write_text(tests, "utf-8")
            command = [sys.executable, "-W", "error", "-m", "pytest", "-q", "-x", "--tb=short"]
            return subprocess.run(
                [*command, "-p", "no:cacheprovider", "-o", "addopts="],
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=120,
            )

        parts = [part for part in NUMBERED if part.number <= 14 and part.number in TESTS]
        assert parts
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for part, ran in zip(parts, pool.map(run_tests, parts)):
                assert ran.returncode == 0, f"T{part.number}:\n{ran.stdout.decode()[-4000:]}"

    @each_section
    def test_a_section_uses_the_sections_that_it_names(self, part):
        if part.number == 1:
            return
        said = re.search(r"Uses sections? ([\d ,andto]+)\.", " ".join(part.intro[:3]))
        assert said, "the line below the banner must say `Uses sections ...`"
        ranges = re.findall(r"(\d+)(?: to (\d+))?", said[1])
        named = {n for a, b in ranges for n in range(int(a), int(b or a) + 1)}
        home = {}
        for other in NUMBERED:
            for name in defined(other):
                home.setdefault(name, other.number)
        needed = {home[name]: name for name in globals_used(part) if name in home}
        mentioned = {home.get(name) for name in globals_used(part, annotations=True)}
        unnamed = {n: name for n, name in needed.items() if n not in named | {part.number}}
        assert not unnamed, "needs a section that it does not name"
        assert named <= mentioned, f"names {sorted(named - mentioned)} without need"


class TestPurity:
    """Half the file never awaits: no I/O, no clock, no randomness where a banner says `Pure.`"""

    BANNED = {
        "asyncio", "socket", "subprocess", "time", "random", "secrets", "logging", "logger",
        "open", "print", "input", "threading", "ssl",
    }  # fmt: skip
    BANNED_ATTRIBUTES = {"urandom", "uuid1", "uuid4", "now", "utcnow", "today", "environ", "getenv"}
    ASYNC = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)

    def test_the_protocol_itself_is_pure(self):
        assert {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 20} & {p.number for p in NUMBERED} == {
            part.number for part in NUMBERED if part.pure
        }

    @pytest.mark.parametrize("part", [p for p in NUMBERED if p.pure], ids=lambda p: f"{p.number}")
    def test_pure_section_does_no_input_or_output(self, part):
        guilty = sorted(self.BANNED & globals_used(part))
        for node in ast.walk(nodes_of(part)):
            if isinstance(node, self.ASYNC):
                guilty.append(f"{node.lineno}: {type(node).__name__}")
            elif isinstance(node, ast.Attribute) and node.attr in self.BANNED_ATTRIBUTES:
                guilty.append(f"{node.lineno}: .{node.attr}")
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                names = {alias.name.split(".")[0] for alias in node.names}
                names.add(getattr(node, "module", None))
                guilty += [f"{node.lineno}: import {name}" for name in names & self.BANNED]
        assert not guilty


class TestProportions:
    """Thresholds measured on h11 and websockets, the most readable of their kind."""

    def test_functions_are_short(self):
        sizes = {f"{name}, line {node.lineno}": size(node) for name, node in functions(TREE)}
        assert {name: n for name, n in sizes.items() if n > 50} == {}
        ordered = sorted(sizes.values())
        assert ordered[len(ordered) * 9 // 10] <= 25

    def test_nesting_is_shallow(self):
        depths = {f"{name}, line {node.lineno}": nesting(node) for name, node in functions(TREE)}
        assert {name: depth for name, depth in depths.items() if depth > 4} == {}
        assert len([depth for depth in depths.values() if depth == 4]) <= 5

    def test_classes_fit_in_the_head(self):
        classes = [node for node in ast.walk(TREE) if isinstance(node, ast.ClassDef)]
        assert {node.name: size(node) for node in classes if size(node) > 400} == {}

    def test_the_story_is_told(self):
        """At least one line of comment or docstring for two of code."""
        told = {}
        for part in NUMBERED:
            lines = set(range(part.first, part.last + 1))
            told[part.title] = round(len(NARRATIVE & lines) / len(CODE & lines), 2)
        assert len(NARRATIVE) / len(CODE) >= 0.5, f"by section: {told}"

    def test_the_file_is_a_book_not_a_shelf(self):
        assert len(LINES) < 6000
        assert {n: len(line) for n, line in enumerate(LINES, 1) if len(line) > 100} == {}


class TestWords:
    """Names, dates, examples and citations."""

    def test_public_names_exist_and_are_explained(self):
        assert [name for name in m.__all__ if not getattr(vars(m)[name], "__doc__", None)] == []
        assert len(set(m.__all__)) == len(m.__all__)

    def test_doctests_pass(self):
        ran = doctest.testmod(m)
        assert ran.attempted > 50 and not ran.failed

    def test_public_pure_functions_show_an_example(self):
        silent = []
        for part in NUMBERED:
            for node in nodes_of(part).body if part.pure else ():
                if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                    if ">>> " not in (ast.get_docstring(node) or ""):
                        silent.append(f"{node.name}, line {node.lineno}")
        assert not silent, "\n".join(silent)

    def test_protocol_history_is_data(self):
        """Only section 4 names revisions; a citation must say which one it cites."""
        date = re.compile("|".join(m.REVISIONS))
        for part in SECTIONS:
            if part.number in (0, 4):
                continue
            for number, line in enumerate(part.text.splitlines(), part.first):
                assert not date.search(CITATION.sub("", line)), f"line {number}: {line}"

    def test_words_that_say_nothing_do_not_occur(self):
        vague = re.compile(r"\b(TODO|FIXME|XXX)\b|\bclass \w+(Manager|Helper|Utils?|Base|Mixin)\b")
        assert [n for n, line in enumerate(LINES, 1) if vague.search(line)] == []
        named_handler = re.findall(r"^class (\w*Handler)\b(?!\(logging\.Handler\))", SOURCE, re.M)
        assert named_handler == []

    @pytest.mark.parametrize("number", [3, 4, 10, 11, 12, 14, 15, 16, 17, 18, 19])
    def test_protocol_code_cites_what_it_obeys(self, number):
        """At least ten citations in a thousand lines."""
        part = next((part for part in NUMBERED if part.number == number), None)
        if part is None:
            pytest.skip(f"there is no section {number} yet")
        cited = len(CITATION.findall(part.text)) + len(OTHER_CITATION.findall(part.text))
        lines = len(part.text.splitlines())
        assert cited >= lines / 100, f"{cited} citations in {lines} lines"

    def test_citations_lead_somewhere(self):
        """Pages, anchors and quotations, against a checkout of the specification in MCP_SPEC."""
        if "MCP_SPEC" not in os.environ:
            pytest.skip("MCP_SPEC does not name a checkout of the specification: nothing checked")
        root = pathlib.Path(os.environ["MCP_SPEC"]) / "docs/specification"
        lost = []
        for line, revision, page, anchor, quote in citations():
            files = [root / revision / f"{page}.mdx", root / revision / page / "index.mdx"]
            file = next((file for file in files if file.exists()), None)
            text = file.read_text("utf-8") if file else ""
            if file is None:
                lost.append(f"line {line}: no page {revision}/{page}")
            elif anchor and anchor not in anchors(text):
                lost.append(f"line {line}: no anchor #{anchor} in {revision}/{page}")
            elif quote and prose(quote) not in prose(text):
                lost.append(f"line {line}: {revision}/{page} does not say {quote!r}")
        assert not lost, "\n".join(lost)


class TestTables:
    """What the file says twice, or the specification says too, is the same."""

    @pytest.mark.parametrize("number, table", [(10, "EXCHANGE"), (11, "SESSION")])
    def test_diagram_is_the_table(self, number, table):
        text = next(part.text for part in NUMBERED if part.number == number)
        drawn = {
            (vars(m)[state], event): vars(m)[new]
            for state, event, new in re.findall(r"^#   (\w+) --(\S+)--> (\w+)$", text, re.M)
        }
        assert drawn == vars(m)[table]

    def test_every_method_of_the_specification_is_a_row(self):
        if "MCP_SPEC" not in os.environ:
            pytest.skip("MCP_SPEC does not name a checkout of the specification: nothing checked")
        for name in m.REVISIONS:
            schema = pathlib.Path(os.environ["MCP_SPEC"]) / "schema" / name / "schema.ts"
            theirs = set(re.findall(r'method: "([\w/]+)"', schema.read_text("utf-8")))
            # Tasks were an experiment of one revision, and are an extension since.
            theirs = {method for method in theirs if "tasks/" not in method}
            assert {row.name for row in m.METHODS.values() if name in row.revisions} == theirs

    def test_every_row_has_its_handler(self):
        rows = [row for row in m.METHODS.values() if row.kind == "request"]
        rows = [row for row in rows if row.sender != "server"]
        legacy = {row.name for row in rows if set(row.revisions) & set(m.LEGACY)}
        assert legacy <= set(m.HANDLERS) <= {row.name for row in rows}


class TestImport:
    """`import mcp_lite` costs little more than `import asyncio, json`."""

    # What is not loaded by asyncio and json themselves, on some Python that we run on.
    ALLOWED = {"mcp_lite", "__future__"}

    def test_import_loads_nothing_that_only_some_users_need(self):
        code = (
            "import asyncio, json; before = set(sys.modules); import mcp_lite;"
            "print(*sorted(set(sys.modules) - before))"
        )
        code = f"import sys; sys.path.insert(0, {str(HERE)!r}); {code}"
        command = [sys.executable, "-I", "-c", code]
        said = subprocess.run(command, stdout=subprocess.PIPE, timeout=60, check=True).stdout
        assert set(said.decode().split()) - self.ALLOWED == set()
