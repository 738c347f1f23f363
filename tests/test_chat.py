"""Chat models behind an API: what is asked, what it costs, what its answers mean, what may fail."""

import json
import math
import pickle
import re
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch

import pellucid
from pellucid import ArgumentError, BudgetExceeded, InputError, ModelError, StoreError
from pellucid.adapters.chat_answer import Reply, checked_labels, read_labels
from pellucid.adapters.clock import Clock

KEY = "sk-a-very-secret-key"
LABELS = {"negative": ["negative"], "positive": ["positive", " positive"]}
PROMPT = "Is this positive or negative? {text}"
WEIGHTS = {"good": 2.0, "fine": 1.0, "bad": -3.0, "not": -1.0}
ODDS = pellucid.Target.log_odds("positive")


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def response(*top):
    """In the form of chat.completions, with these first tokens and their probabilities."""
    tokens = [{"token": token, "logprob": math.log(p), "bytes": None} for token, p in top]
    first = {**tokens[0], "top_logprobs": tokens} if tokens else None
    logprobs = {"content": [first] if tokens else []}
    return {"choices": [{"message": {"content": "?"}, "logprobs": logprobs}]}


def judged(question):
    """The log-odds of "positive" are the sum of the weights of the words."""
    words = question.removeprefix(PROMPT.replace("{text}", "")).split()
    p = sigmoid(sum(WEIGHTS.get(word, 0.0) for word in words))
    return response(
        ("positive", 0.6 * p), (" positive", 0.3 * p), ("negative", 0.9 * (1 - p)), ("The", 0.1)
    )


class Stub:
    """A client call that counts, and fails as it is told."""

    def __init__(self, answer=judged, faults=()):
        self.answer, self.faults = answer, list(faults)
        self.asked, self.settings = [], []

    def __call__(self, messages, **settings):
        self.asked.append(messages[-1]["content"])
        self.settings.append(settings)
        if self.faults and (fault := self.faults.pop(0)) is not None:
            raise fault
        return self.answer(messages[-1]["content"])


class Still(Clock):
    """A clock that moves on by itself, and by what it is told to wait."""

    def __init__(self):
        self.waited = []

    def now(self):
        return time.time() + sum(self.waited)

    def sleep(self, seconds):
        self.waited.append(seconds)


def chat(call, **options):
    settings = {"labels": LABELS, "prompt": PROMPT, "workers": 1, "clock": Still()} | options
    return pellucid.chat(call, **settings)


# ---- what an answer means ------------------------------------------------------------------------


def reply(*top):
    return Reply.of(response(*top))


def test_a_label_has_the_probability_of_all_its_tokens():
    found = read_labels(reply(("yes", 0.5), (" yes", 0.2), ("no", 0.25)), [["no"], ["yes", " yes"]])
    assert found.log_probabilities == pytest.approx((math.log(0.25), math.log(0.7)))
    assert found.censored == (False, False)


@pytest.mark.parametrize(
    ("top", "bound"),
    [
        ([("yes", 0.5), ("The", 0.2), ("a", 0.05)], 0.05),  # the least that was returned
        ([("yes", 0.6), ("The", 0.39)], 0.01),  # what is left over
    ],
)
def test_a_label_that_is_missing_is_bounded_and_marked(top, bound):
    found = read_labels(reply(*top), [["no", "No"], ["yes"]])
    assert math.exp(found.log_probabilities[0]) == pytest.approx(bound, abs=2e-6)
    assert found.censored == (True, False)
    assert not found.unanswered


@pytest.mark.parametrize("top", [[("The", 0.5), ("a", 0.2)], []])
def test_no_label_at_all(top):
    assert read_labels(reply(*top), [["no"], ["yes"]]).unanswered


def test_the_token_that_was_written_counts_where_it_is_not_among_the_top():
    answer = response(("yes", 0.5))
    answer["choices"][0]["logprobs"]["content"][0] |= {"token": "no", "logprob": math.log(0.3)}
    found = read_labels(Reply.of(answer), [["no"], ["yes"]])
    assert found.log_probabilities == pytest.approx((math.log(0.3), math.log(0.5)))


def test_a_probability_that_the_service_does_not_know_is_left_out():
    answer = response(("yes", 0.5), ("no", 0.1))
    answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"][1]["logprob"] = -9999.0
    found = read_labels(Reply.of(answer), [["no"], ["yes"]])
    assert found.censored == (True, False)


class Dumped:
    """A response as client libraries have it."""

    def __init__(self, fields):
        self.fields = fields

    def model_dump(self):
        return self.fields


@pytest.mark.parametrize("wrap", [lambda x: x, Dumped])
def test_responses_are_mappings_or_objects(wrap):
    call = Stub(lambda question: wrap(judged(question)))
    assert pellucid.explain(chat(call), "good", method="random", target=ODDS).value == (
        pytest.approx(2.0)
    )


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "positive",
        {},
        {"choices": []},
        {"choices": [{"message": {"content": "positive"}}]},
        {"choices": [{"logprobs": None}]},
        {"choices": [{"logprobs": {"content": None}}]},
        {"choices": [{"logprobs": {"content": [{"token": "a"}]}}]},
        {"choices": [{"logprobs": {"content": [{"token": "a", "top_logprobs": [3]}]}}]},
        {"error": {"message": "overloaded"}},
    ],
    ids=str,
)
def test_answers_without_log_probabilities(answer):
    call = Stub(lambda question: answer)
    with pytest.raises(ModelError, match="log-probabilities"):
        pellucid.explain(chat(call), "a film", method="random")
    assert len(call.asked) == 1, "it would be asked for in vain again"


@pytest.mark.parametrize("value", [math.nan, 0.5, "x"])
def test_log_probabilities_that_are_none(value):
    answer = response(("yes", 0.5))
    answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"][0]["logprob"] = value
    with pytest.raises(ModelError):
        Reply.of(answer)


def test_a_list_of_labels_gets_the_usual_spellings():
    assert checked_labels(["Positive", "negative"])["Positive"] == (
        *("Positive", " Positive"),
        *("positive", " positive"),
    )
    assert checked_labels({"a": "x", "b": ["y"]}) == {"a": ("x",), "b": ("y",)}


@pytest.mark.parametrize(
    "labels",
    [[], ["a"], "ab", None, {"a": [], "b": ["b"]}, {"a": ["x"], "b": ["x"]}, [1, 2], ["a", "A"]],
    ids=str,
)
def test_labels_that_cannot_be_told_apart(labels):
    with pytest.raises(ArgumentError, match="first token"):
        chat(Stub(), labels=labels)


# ---- what is asked -------------------------------------------------------------------------------


def test_the_conversation():
    seen = []

    def call(messages, **settings):
        seen.append((messages, settings))
        return response(("0", 0.3), ("1", 0.7))

    model = pellucid.chat(
        call,
        labels={"bad": ["0"], "good": ["1"]},
        prompt="Review: {text}\nLabel:",
        system="Answer with 0 or 1.",
        examples=[("so dull", "0")],
        model="some-model",
        settings={"seed": None, "top_logprobs": 5, "user": "me"},
        workers=1,
    )
    found = pellucid.explain(model, "fine", method="random")
    assert found.label == "good"
    assert found.prediction["good"] == pytest.approx(0.7)
    assert found.provenance.model == "some-model"
    ((messages, settings),) = seen
    assert messages == [
        {"role": "system", "content": "Answer with 0 or 1."},
        {"role": "user", "content": "Review: so dull\nLabel:"},
        {"role": "assistant", "content": "0"},
        {"role": "user", "content": "Review: fine\nLabel:"},
    ]
    assert settings == {
        "max_tokens": 1,
        "temperature": 0,
        "logprobs": True,
        "top_logprobs": 5,
        "user": "me",
        "model": "some-model",
    }


@pytest.mark.parametrize("text", ["{text} {0} {a.b!r}", "a {text}", "}{", "%s %(x)s $x \\1 </b>"])
def test_a_text_is_inserted_once_and_never_read_again(text):
    call = Stub()
    pellucid.explain(chat(call, prompt='{"q": "{text}"} {other}'), text, method="random")
    assert call.asked == ['{"q": "' + text + '"} {other}']


@pytest.mark.parametrize(
    "options",
    [
        {"prompt": "no place"},
        {"prompt": "{text} {text}"},
        {"prompt": None},
        {"system": 3},
        {"examples": ["ab"]},
        {"examples": [("a", 1)]},
        {"unanswered": "skip"},
        {"settings": {"stop": {1, 2}}},
        {"settings": {"temperature": math.nan}},
        {"price": 3},
        {"price": (1, math.nan)},
        {"calls": 0},
        {"workers": 0},
        {"attempts": 0},
        {"rate": 0},
        {"split": "letters"},
        {"key_from": "KEY"},
        {"url": "http://localhost"},
        {"cache": "answers.sqlite"},  # of which model?
    ],
    ids=str,
)
def test_settings_that_cannot_be(options):
    with pytest.raises(ArgumentError, match="instead:"):
        chat(Stub(), **options)


def test_a_pair_has_no_place_in_a_prompt():
    with pytest.raises(InputError, match="one text"):
        pellucid.explain(chat(Stub()), ("a film", "not bad"), method="random")


# ---- explanations --------------------------------------------------------------------------------


def test_an_explanation_is_that_of_the_same_function_without_a_service():
    """Log-odds by occlusion are the weights of the words, through prompt, tokens and labels."""
    found = pellucid.explain(chat(Stub()), "a good film not bad", method="occlusion", target=ODDS)
    expected = [WEIGHTS.get(word, 0.0) for word in ["a", "good", "film", "not", "bad"]]
    assert found.scores.tolist() == pytest.approx(expected)
    assert found.value == pytest.approx(-2.0)
    assert found.notes == ()
    assert found.provenance.weights == "unknown"


def test_every_question_is_asked_once():
    call = Stub()
    model = chat(call)
    first = pellucid.explain(model, ["good good bad", "bad"], method="occlusion")
    asked = Counter(call.asked)
    assert set(asked.values()) == {1}
    again = pellucid.explain(model, ["good good bad", "bad"], method="occlusion")
    assert Counter(call.asked) == asked
    assert model.calls == len(call.asked)
    for one, other in zip(first, again, strict=True):
        assert torch.equal(one.scores, other.scores)


@pytest.mark.parametrize("workers", [1, 4])
def test_questions_at_a_time(workers):
    busy, most, lock = 0, 0, threading.Lock()
    together = threading.Barrier(workers, timeout=20)

    def call(messages, **settings):
        nonlocal busy, most
        with lock:
            busy += 1
            most = max(most, busy)
        together.wait()
        with lock:
            busy -= 1
        return judged(messages[-1]["content"])

    texts = ["a", "b", "c", "d"]
    pellucid.explain(chat(call, workers=workers), texts, method="random")
    assert most == workers


def test_notes_count_what_is_only_bounded():
    def call(question):
        if "bad" in question:
            return judged(question)
        return response(("positive", 0.5), ("The", 0.25))

    found = pellucid.explain(chat(Stub(call)), "a bad film", method="occlusion", target=ODDS)
    (note,) = found.notes
    assert note.startswith("1 of 4 answers do not name every label")
    assert found.scores[1] == pytest.approx(-3 - math.log(2))


def test_answers_that_name_no_label():
    def call(question):
        return judged(question) if "bad" in question else response(("Sorry", 0.9))

    with pytest.raises(ModelError, match=r"names no label, for 'a film'[^$]*unanswered='even'"):
        pellucid.explain(chat(Stub(call)), "a bad film", method="occlusion")
    model = chat(Stub(call), unanswered="even")
    found = pellucid.explain(model, "a bad film", method="occlusion", target=ODDS)
    assert found.scores.tolist() == pytest.approx([0, -3, 0], abs=1e-9)
    assert found.notes == ("1 of 4 answers name no label at all, and count as undecided",)


def test_labels_and_names_with_markup_stay_text():
    labels = {"<b>bad</b>": ["negative"], "<i>good</i>": ["positive"]}
    model = chat(Stub(), labels=labels, model="<img src=x>")
    page = pellucid.explain(model, "good", method="random").to_html()
    for markup in ("<i>good</i>", "<b>bad</b>", "<img src=x>"):
        assert markup not in page
        assert markup.replace("<", "&lt;").replace(">", "&gt;") in page


# ---- what it costs -------------------------------------------------------------------------------


def test_a_budget_of_calls():
    call = Stub()
    model = chat(call, calls=3)
    with pytest.raises(BudgetExceeded, match="calls=3"):
        pellucid.explain(model, "a good film", method="occlusion")
    assert len(call.asked) == model.calls == 3


def test_an_estimate_before_anything_is_paid():
    call = Stub()
    model = chat(call, prompt="{text}", system="a" * 40, price=(2.0, 10.0))
    found = model.estimate(500, "b" * 80)
    each = (4 + 10) + (4 + 20)
    assert (found.calls, found.prompt_tokens, found.answer_tokens) == (500, 500 * each, 500)
    assert found.cost == pytest.approx(500 * (each * 2.0 + 10.0) / 1e6)
    assert chat(call).estimate(1, "a").cost is None
    assert call.asked == []


def test_calls_a_minute():
    clock = Still()
    pellucid.explain(chat(Stub(), rate=6, clock=clock), ["a", "b", "c"], method="random")
    assert clock.waited == pytest.approx([10, 10], abs=1)


# ---- failures of a client ------------------------------------------------------------------------


class Failed(Exception):
    """As client libraries raise it."""

    def __init__(self, status_code, headers=None):
        super().__init__(f"secret {KEY}")
        self.status_code = status_code
        self.headers = headers or {}


class APIConnectionError(Exception):
    """Of a library, and no ConnectionError."""


@pytest.mark.parametrize(
    "fault", [Failed(429), Failed(500), Failed(503), TimeoutError(), ConnectionResetError()]
)
def test_failures_that_pass_are_asked_again(fault):
    call, clock = Stub(faults=[fault, fault, None]), Still()
    found = pellucid.explain(chat(call, clock=clock), "good", method="random", target=ODDS)
    assert found.value == pytest.approx(2.0)
    assert len(call.asked) == 3
    assert 0.5 <= clock.waited[0] <= 1 <= clock.waited[1] <= 2, "twice as long each time"


def test_the_service_says_how_long_to_wait():
    clock = Still()
    call = Stub(faults=[Failed(429, {"retry-after": "7"}), None])
    pellucid.explain(chat(call, clock=clock), "good", method="random")
    assert clock.waited == [7.0]
    call = Stub(faults=[Failed(429, {"retry-after": "86400"}), None])
    with pytest.raises(ModelError, match="asks to wait 86400 s"):
        pellucid.explain(chat(call), "good", method="random")


def test_patience_ends():
    call = Stub(faults=[APIConnectionError("lost")] * 9)
    with pytest.raises(ModelError, match="in 4 attempts") as caught:
        pellucid.explain(chat(call, attempts=4), "good", method="random")
    assert len(call.asked) == 4
    assert isinstance(caught.value.__cause__, APIConnectionError)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("fault", [Failed(400), Failed(401), Failed(404), KeyError("choices")])
def test_failures_that_stay_stop_at_once(fault):
    call = Stub(faults=[fault])
    with pytest.raises(ModelError, match="would again") as caught:
        pellucid.explain(chat(call), "good", method="random")
    assert len(call.asked) == 1
    assert caught.value.__cause__ is fault
    assert KEY not in str(caught.value)


def test_after_an_error_nothing_else_is_asked():
    call = Stub(faults=[None, Failed(400)])
    with pytest.raises(ModelError):
        pellucid.explain(chat(call), "a b c d e", method="occlusion")
    assert len(call.asked) == 2


def test_after_an_error_nothing_is_asked_again(monkeypatch):
    """One question fails for good while another waits for its second attempt."""
    waiting, events, told, asked = threading.Event(), [], [], []

    class Noted(threading.Event):
        def __init__(self):
            super().__init__()
            events.append(self)

    def call(messages, **settings):
        asked.append(messages[-1]["content"])
        if messages[-1]["content"].endswith("a"):
            raise Failed(429)
        assert waiting.wait(20)
        raise Failed(400)

    class Waiting(Still):
        def sleep(self, seconds):
            waiting.set()
            told.append(events[0].wait(5))

    monkeypatch.setattr(threading, "Event", Noted)
    with pytest.raises(ModelError, match="status 400"):
        pellucid.explain(chat(call, workers=2, clock=Waiting()), ["a", "b"], method="random")
    assert told == [True], "who waits is told to stop"
    assert len(asked) == 2


# ---- answers on disk -----------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "answers.sqlite"


def test_answers_are_kept_for_the_next_run(cache):
    call = Stub()
    options = {"cache": cache, "model": "m"}
    first = pellucid.explain(chat(call, **options), "a good film", method="occlusion")
    asked = len(call.asked)
    again = pellucid.explain(chat(call, **options), "a good film", method="occlusion")
    assert len(call.asked) == asked == 4
    assert torch.equal(first.scores, again.scores)
    for path in cache.parent.iterdir():
        assert b"good" not in path.read_bytes(), "hashes of questions are stored, no questions"


@pytest.mark.parametrize(
    "other", [{"model": "n"}, {"settings": {"top_logprobs": 5}}, {"system": "Be fair."}]
)
def test_other_questions_are_asked(cache, other):
    call = Stub()
    pellucid.explain(chat(call, cache=cache, model="m"), "good", method="random")
    pellucid.explain(chat(call, **{"cache": cache, "model": "m"} | other), "good", method="random")
    assert len(call.asked) == 2


def test_other_labels_are_read_from_the_same_answers(cache):
    call = Stub()
    pellucid.explain(chat(call, cache=cache, model="m"), "good", method="random")
    labels = {"no": ["negative"], "yes": ["positive"]}
    model = chat(call, cache=cache, model="m", labels=labels)
    found = pellucid.explain(model, "good", method="random")
    assert found.label == "yes"
    assert len(call.asked) == 1


def test_what_a_failed_run_paid_for_is_kept(cache):
    call = Stub(faults=[None, None, Failed(400)])
    options = {"cache": cache, "model": "m"}
    with pytest.raises(ModelError):
        pellucid.explain(chat(call, **options), "a good film", method="occlusion")
    clock = Still()
    pellucid.explain(chat(call, **options, clock=clock), "a good film", method="occlusion")
    assert clock.waited == [], "the claim to the answer that did not come was given up"
    assert len(call.asked) == 5, "three questions more, of which one had failed"
    assert max(Counter(call.asked).values()) == 2


@pytest.mark.parametrize("damage", ["[]", "[[", "x", None])
def test_a_damaged_answer_is_asked_again_and_that_is_said(cache, damage):
    call = Stub()
    options = {"cache": cache, "model": "m"}
    whole = pellucid.explain(chat(call, **options), "good", method="random")
    with sqlite3.connect(cache) as file:
        if damage is None:
            file.execute("UPDATE answers SET digest = 'x'")
        else:
            file.execute("UPDATE answers SET reply = ?", (damage,))
    file.close()
    again = pellucid.explain(chat(call, **options), "good", method="random")
    assert len(call.asked) == 2
    assert again.value == whole.value
    assert again.notes == (
        "1 of 1 answers were stored, had been damaged, and were asked (and paid) for again",
    )
    assert pellucid.explain(chat(call, **options), "good", method="random").notes == ()


def test_files_that_are_no_cache(cache, tmp_path):
    cache.write_bytes(b"not a database, not at all" * 100)
    with pytest.raises(StoreError, match=r"move answers\.sqlite away"):
        chat(Stub(), cache=cache, model="m")
    assert cache.read_bytes().startswith(b"not a database"), "it is not ours to repair"
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as file:
        file.execute("CREATE TABLE answers (mine)")
    file.close()
    with pytest.raises(StoreError, match="another program"):
        chat(Stub(), cache=other, model="m")
    for path in (tmp_path, tmp_path / "none" / "x.sqlite"):
        with pytest.raises(ArgumentError, match="cannot be stored here"):
            chat(Stub(), cache=path, model="m")


@pytest.mark.parametrize("owner", ["gone", "earlier", "expired"])
def test_the_claim_of_who_is_gone_is_taken_over(cache, owner):
    from pellucid.adapters import chat_cache

    call = Stub()
    model = chat(call, cache=cache, model="m")
    key = model._judge.asker._key(model._judge.prompt.messages("good"))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    host, number, process = chat_cache._owner().rsplit(" ", 2)
    owners = {
        "gone": (f"{host} {ended.pid} {process}", 1e12),
        "earlier": (f"{host} {number} of-another-run", 1e12),
        "expired": (f"{host} {number} {process}", 1.0),
    }
    with sqlite3.connect(cache) as file:
        row = (key, None, None, *owners[owner])
        file.execute("INSERT INTO answers VALUES (?, ?, ?, ?, ?)", row)
    file.close()
    pellucid.explain(model, "good", method="random")
    assert len(call.asked) == 1


def test_two_models_of_one_process_pay_once(cache):
    """The second waits while the first is asking, and gets its answer."""
    begun, go = threading.Event(), threading.Event()
    asked = []

    def slow(messages, **settings):
        asked.append(messages)
        begun.set()
        assert go.wait(20)
        return judged(messages[-1]["content"])

    class Releasing(Still):
        def sleep(self, seconds):
            go.set()
            time.sleep(0.01)

    first = chat(slow, cache=cache, model="m")
    second = chat(slow, cache=cache, model="m", clock=Releasing())
    values = []

    def run():
        values.append(pellucid.explain(first, "good", method="random").value)

    thread = threading.Thread(target=run)
    thread.start()
    assert begun.wait(20)
    values.append(pellucid.explain(second, "good", method="random").value)
    thread.join()
    assert len(asked) == 1
    assert values[0] == values[1]


def test_two_explanations_in_threads_pay_once():
    call = Stub()
    model = chat(call, workers=2)
    threads = [
        threading.Thread(
            target=pellucid.explain, args=(model, "a b c d"), kwargs={"method": "occlusion"}
        )
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(call.asked) == len(set(call.asked)) == 5


# ---- a service of our own ------------------------------------------------------------------------


class Service:
    """A server that answers as `judged` does, fails as it is told, and counts everything."""

    def __init__(self):
        self.faults, self.asked, self.answered, self.headers = [], [], [], []
        self.stuck, self.over = threading.Event(), threading.Event()
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                service._post(self)

            def log_message(self, *args):
                """Nothing is printed."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def close(self):
        self.over.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def _post(self, handler):
        assert handler.path == "/v1/chat/completions"
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        question = body["messages"][-1]["content"]
        self.asked.append(question)
        self.headers.append(dict(handler.headers))
        fault = self.faults.pop(0) if self.faults else None
        if isinstance(fault, int):
            said = {"error": {"message": f"no: {handler.headers['Authorization']}"}}
            return self._send(handler, json.dumps(said).encode(), fault)
        if fault == "stuck":
            self.stuck.set()
            self.over.wait(60)
            return handler.connection.close()
        if fault == "reset":
            linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            return handler.connection.shutdown(socket.SHUT_RDWR)
        text = json.dumps(judged(question)).encode()
        if fault == "huge":
            return self._send(handler, b" " * (9 * 2**20))
        if fault == "malformed":
            return self._send(handler, b"<html>" + text)
        if fault == "nested":
            return self._send(handler, b"[" * 100_000)
        if fault == "truncated":
            return self._send(handler, text[:50], length=len(text))
        self.answered.append(question)
        return self._send(handler, text)

    def _send(self, handler, text, status=200, length=None):
        handler.send_response(status)
        handler.send_header("Content-Length", str(length or len(text)))
        handler.send_header("Retry-After", "0")
        handler.send_header("Location", "http://127.0.0.1:1/")
        handler.end_headers()
        try:
            handler.wfile.write(text)
        except OSError:  # who asked has seen enough
            handler.close_connection = True


@pytest.fixture
def service(monkeypatch):
    found = Service()
    monkeypatch.setenv("A_KEY", KEY)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield found
    found.close()


def remote(service, **options):
    settings = {"url": service.url, "model": "m", "key_from": "A_KEY", "labels": LABELS}
    settings |= {"prompt": PROMPT, "workers": 1, "clock": Still()} | options
    return pellucid.chat(**settings)


def test_a_service_is_asked_with_the_key_of_the_environment(service):
    found = pellucid.explain(remote(service), "a good film", method="occlusion", target=ODDS)
    assert found.scores.tolist() == pytest.approx([0, 2, 0])
    assert {one["Authorization"] for one in service.headers} == {f"Bearer {KEY}"}
    pellucid.explain(remote(service, key_from=None), "fine", method="random")
    assert "Authorization" not in service.headers[-1]


@pytest.mark.parametrize(
    "fault", [429, 500, 502, 503, "reset", "truncated", "malformed", "nested"], ids=str
)
def test_failures_of_a_service_that_pass(service, fault):
    service.faults = [fault]
    found = pellucid.explain(remote(service), "good", method="random", target=ODDS)
    assert found.value == pytest.approx(2.0)
    assert len(service.asked) == 2
    assert len(service.answered) == 1


def test_a_service_that_does_not_answer_in_time(service):
    service.faults = ["stuck"]
    model = remote(service, timeout=0.3)
    found = pellucid.explain(model, "good", method="random", target=ODDS)
    assert found.value == pytest.approx(2.0)
    assert len(service.asked) == 2


@pytest.mark.parametrize("status", [301, 307, 400, 401, 403, 404])
def test_refusals_of_a_service_stop_at_once(service, status):
    service.faults = [status]
    with pytest.raises(ModelError, match=f"status {status}") as caught:
        pellucid.explain(remote(service), "good", method="random")
    assert len(service.asked) == 1
    assert KEY not in str(caught.value)
    assert service.url in str(caught.value)


def test_an_answer_that_never_ends_is_not_read(service):
    service.faults = ["huge"]
    with pytest.raises(ModelError, match="more than 8 MiB"):
        pellucid.explain(remote(service), "good", method="random")
    assert len(service.asked) == 1


def test_nobody_is_there():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    clock = Still()
    model = pellucid.chat(
        url=url, model="m", labels=LABELS, prompt=PROMPT, attempts=3, clock=clock, workers=1
    )
    with pytest.raises(ModelError, match="3 attempts"):
        pellucid.explain(model, "good", method="random")
    assert len(clock.waited) == 2


@pytest.mark.parametrize(
    "url", ["localhost:80", "ftp://x/v1", "file:///etc/passwd", "http://", "http://me:pw@x/v1", 3]
)
def test_what_is_no_address(url):
    with pytest.raises(ArgumentError, match="not the address") as caught:
        pellucid.chat(url=url, model="m", labels=LABELS, prompt=PROMPT)
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize("key", ["", "two\nlines", "schlüssel", None])
def test_keys_that_cannot_be_sent(service, monkeypatch, key):
    if key is None:
        monkeypatch.delenv("A_KEY")
    else:
        monkeypatch.setenv("A_KEY", key)
    with pytest.raises(ArgumentError, match="A_KEY") as caught:
        pellucid.explain(remote(service), "good", method="random")
    assert not key or key not in str(caught.value)
    assert service.asked == []


def test_the_key_is_nowhere(service, tmp_path, capfd):
    """Not in what fails, is kept, is saved, is printed, or is sent to another process."""
    model = remote(service, cache=tmp_path / "answers.sqlite")
    found = pellucid.explain(model, "a good film", method="occlusion")
    found.save(tmp_path / "one.pellucid")
    found.to_html(tmp_path / "one.html")
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(model))
    texts = [repr(model), repr(vars(model)), repr(vars(model._judge.asker)), repr(found)]
    service.faults = [401]
    with pytest.raises(ModelError) as caught:
        pellucid.explain(model, "fine", method="random")
    texts += [str(caught.value), repr(caught.value.__context__), *capfd.readouterr()]
    written = [path.read_bytes() for path in tmp_path.iterdir()]
    assert len(written) >= 4
    assert all(KEY.encode() not in one for one in [*written, *(text.encode() for text in texts)])


def test_a_model_that_went_to_another_process_asks_the_same_service(service, tmp_path):
    model = remote(service, cache=tmp_path / "answers.sqlite", clock=None)
    first = pellucid.explain(model, "a good film", method="occlusion")
    asked = len(service.asked)
    again = pellucid.explain(pickle.loads(pickle.dumps(model)), "a good film", method="occlusion")
    assert torch.equal(first.scores, again.scores)
    assert len(service.asked) == asked


PROGRAM = """
import sys
import pellucid

url, cache = sys.argv[1:]
model = pellucid.chat(
    url=url, model="m", key_from="A_KEY", cache=cache, workers=1,
    labels={"negative": ["negative"], "positive": ["positive", " positive"]},
    prompt="Is this positive or negative? {text}",
)
found = pellucid.explain(model, "not a bad film at all", method="occlusion")
print(*found.scores.tolist())
"""


def started(service, cache):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, service.url, str(cache)], stdout=subprocess.PIPE, text=True
    )


def test_a_killed_run_goes_on_where_it_was(service, cache):
    """Killed while it waits for its fifth answer; none that had come is asked for again."""
    service.faults = [None] * 4 + ["stuck"]
    run = started(service, cache)
    try:
        assert service.stuck.wait(60)
    finally:
        run.kill()
        run.communicate()
    before = list(service.answered)
    assert len(before) == 4
    model = remote(service, cache=cache)
    found = pellucid.explain(model, "not a bad film at all", method="occlusion")
    plain = pellucid.explain(chat(Stub()), "not a bad film at all", method="occlusion")
    assert torch.equal(found.scores, plain.scores)
    assert len(service.answered) == len(set(service.answered)) == 7
    assert service.answered[:4] == before


def test_two_runs_at_once_pay_once(service, cache):
    runs = [started(service, cache) for _ in range(2)]
    scores = [run.communicate(timeout=120)[0] for run in runs]
    assert scores[0] == scores[1] != ""
    assert len(service.asked) == len(set(service.asked)) == 7


def test_the_page_on_chat_models_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parent.parent / "docs" / "chat.md").read_text(encoding="utf-8")
    names = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, names)
    assert names["found"].scores.tolist() == pytest.approx([0, 2, 0])
    assert {path.name.split("-")[0] for path in tmp_path.iterdir()} == {"answers.sqlite"}
