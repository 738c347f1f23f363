"""The app in a real browser: every tab, on a desk and on a phone, in light and in dark.

Runs where gradio, playwright and chromium are at hand.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

pytest.importorskip("gradio", reason="needs gradio: pip install 'pellucid[app]'")
sync = pytest.importorskip("playwright.sync_api", reason="needs playwright")

from test_images import png  # noqa: E402

from pellucid.models import bundled_path, sample_images  # noqa: E402

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")

BERT, VIT = "pellucid/reviews-bert", "pellucid/digits-vit"
RUN = "import sys; from pellucid.cli import main; sys.argv[0] = 'pellucid'; main()"
LONG = 90_000  # milliseconds; machines may be busy
HARM = '<img src=x onerror="window.harmed=1"><script>window.harmed=1</script>'
SIZES = {"desk, light": (1200, 900, "light"), "phone, dark": (390, 844, "dark")}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A model whose labels are markup."""
    folder = tmp_path_factory.mktemp("models") / "hostile"
    shutil.copytree(bundled_path("reviews-bert"), folder)
    config = json.loads((folder / "config.json").read_text())
    labels = [HARM, f"\"'></div>{HARM}"]
    config |= {
        "id2label": dict(enumerate(labels)),
        "label2id": {x: i for i, x in enumerate(labels)},
    }
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@contextmanager
def served(folder, *arguments):
    """The address of a running app; the folder is where it was started, and its temporary one."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", RUN, "app", "--port", str(port), *map(str, arguments)]
    environment = os.environ | {"TMPDIR": str(folder), "OMP_NUM_THREADS": "1"}
    log = folder.parent / f"{folder.name}.log"
    with log.open("w") as out:
        app = subprocess.Popen(command, cwd=folder, env=environment, stdout=out, stderr=out)
        try:
            deadline = time.monotonic() + 90
            while "pellucid app:" not in log.read_text():
                assert app.poll() is None, log.read_text()
                assert time.monotonic() < deadline, "it did not start"
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}", log
        finally:
            app.send_signal(signal.SIGTERM)
            app.wait(30)


@pytest.fixture(scope="module")
def address(tmp_path_factory, hostile):
    folder = tmp_path_factory.mktemp("cwd")
    with served(folder, "-m", BERT, "-m", hostile) as (url, log):
        yield url
    unforeseen = "an error that pellucid did not foresee"
    assert unforeseen not in log.read_text(), log.read_text()
    left = [path.name for path in folder.iterdir() if "torchinductor" not in path.name]
    assert left == [], "something was left on the disk"


@pytest.fixture(scope="module")
def browser():
    with sync.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@contextmanager
def visit(browser, address, size="desk, light"):
    """A page that is ready; whatever it complains of, or loads from elsewhere, is an error."""
    width, height, scheme = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    context.set_default_timeout(LONG)
    page, wrong = context.new_page(), []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda one: wrong.append(one.text) if one.type == "error" else None)
    own = (address, "data:", "blob:", "about:")
    page.on("request", lambda one: None if one.url.startswith(own) else wrong.append(one.url))
    page.goto(address)
    page.wait_for_selector("#status .muted")
    yield page
    context.close()
    assert wrong == []


def choose(page, name, value):
    """Type into a dropdown."""
    field = page.locator(f"#{name} input")
    field.fill(str(value))
    field.press("Enter")


def tab(page, name):
    page.get_by_role("tab", name=name, exact=True).click()


def press(page, button, result):
    """Press a button and wait for what it makes."""
    old, new = (f"#{result} :is(.pellucid, iframe){which}" for which in ("", ":not([data-old])"))
    page.evaluate("old => document.querySelectorAll(old).forEach(e => e.dataset.old = '1')", old)
    page.click(f"#{button}")
    page.wait_for_selector(new, state="attached")


def frame_of(page, result):
    """The report inside a result, once its script has run."""
    page.locator(f"#{result} iframe").scroll_into_view_if_needed()
    found = page.query_selector(f"#{result} iframe").content_frame()
    found.wait_for_selector("[data-ready]")
    return found


@pytest.mark.parametrize("size", SIZES)
def test_a_text_through_all_tabs(browser, address, size):
    with visit(browser, address, size) as page:
        press(page, "explain", "explained")
        report = frame_of(page, "explained")
        assert report.locator(".card").count() == 5
        assert page.locator("#explained table tbody tr").count() == 5
        page.wait_for_function("document.querySelector('#explained iframe').style.height !== ''")
        tab(page, "What if")
        page.locator(".words:visible").get_by_text("enjoyed", exact=True).click()
        page.locator(".words:visible .token.hl, .words:visible [style*=rgb]").first.wait_for()
        press(page, "what-if", "answered")
        assert page.locator("#answered table tbody tr").count() == 5
        tab(page, "Compare")
        press(page, "compare", "compared")
        assert page.locator("#compared table tbody tr").count() == 6
        assert page.locator("#compared td.best").count() >= 1
        tab(page, "Explore")
        press(page, "walk", "walked")
        assert frame_of(page, "walked").locator("input.steps").count() == 1
        assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size][0]
        dark = page.evaluate("document.body.classList.contains('dark')")
        assert dark == ("dark" in size)
        inside = frame_of(page, "walked")
        assert inside.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") == dark


def test_an_image_by_its_patches(browser, address):
    with visit(browser, address) as page:
        choose(page, "model", VIT)
        picture = page.locator("#image img")
        picture.wait_for()
        press(page, "explain", "explained")
        tab(page, "What if")
        patches = page.locator(".patches:visible img")
        patches.wait_for()
        before, box = patches.get_attribute("src"), patches.bounding_box()
        patches.click(position={"x": box["width"] / 2, "y": box["height"] / 2})
        page.wait_for_function(
            "src => [...document.querySelectorAll('.patches img')]"
            ".some(i => i.offsetParent && i.src !== src)",
            arg=before,
        )
        press(page, "what-if", "answered")
        assert "its scores say how much" in page.locator("#answered").inner_text()
        assert page.locator("#answered .side").count() == 2


def test_a_walk_is_paused_gone_on_with_and_stopped(browser, address):
    with visit(browser, address) as page:
        tab(page, "Explore")
        page.locator("#steps input[type=number]").fill("2000")
        page.keyboard.press("Tab")
        page.click("#walk")
        page.get_by_text("steps").first.wait_for()
        time.sleep(1)
        page.click("#pause")
        page.wait_for_selector("#walked iframe")
        paused = int(re.search(r"Paused after (\d+) steps", page.inner_text("#walked"))[1])
        assert 0 < paused < 2000
        page.click("#resume")
        time.sleep(1)
        page.get_by_role("button", name="Stop").locator("visible=true").click()
        page.locator("#walked").get_by_text("Stopped.").wait_for()
        press(page, "resume", "walked")
        assert "no walk to go on with" in page.inner_text("#walked")


def test_two_people_do_not_disturb_each_other(browser, address):
    """One walks for long in one model; the other explains with another model meanwhile."""
    with visit(browser, address) as first, visit(browser, address) as second:
        choose(second, "model", VIT)
        second.locator("#image img").wait_for()
        tab(first, "Explore")
        first.locator("#steps input[type=number]").fill("2000")
        first.keyboard.press("Tab")
        first.click("#walk")
        first.get_by_text("steps").first.wait_for()
        press(second, "explain", "explained")
        assert first.locator("#walked iframe").count() == 0, "the walk was over too soon"
        second.get_by_role("button", name="Stop").locator("visible=true").click()  # not the other's
        first.click("#pause")
        first.wait_for_selector("#walked iframe")
        tab(first, "Compare")
        press(first, "compare", "compared")
        assert "press Explain" in first.inner_text("#compared")


def upload(page, name, data):
    page.locator("#image button[aria-label='Remove Image'], #image button[title='Clear'], "
                 "#image .icon-button-wrapper button").first.click()  # fmt: skip
    page.locator("#image input[type=file]").set_input_files(
        {"name": name, "mimeType": "image/png", "buffer": data}
    )
    page.locator("#image img").wait_for(state="attached")
    time.sleep(0.5)


def test_wrong_inputs_get_an_answer_and_no_trace(browser, address):
    with visit(browser, address) as page:
        page.fill("#text textarea", "")
        press(page, "explain", "explained")
        assert "nothing to explain" in page.inner_text("#explained .problem")
        page.fill("#text textarea", "film " * 3000)
        press(page, "explain", "explained")
        assert "truncate" in page.inner_text("#explained .problem")
        for name in ("no/such/folder", "pellucid/reviews-bret", "/etc"):
            choose(page, "model", name)
            page.wait_for_function(
                "name => document.querySelector('#status .problem')?.innerText.includes(name)",
                arg=name,
            )
        assert "Traceback" not in page.content()


@pytest.mark.filterwarnings("ignore")
def test_files_that_are_no_images(browser, address):
    """Noise, a picture cut short, and one that promises 2 gigapixels."""
    whole = sample_images()[0].read_bytes()
    with visit(browser, address) as page:
        choose(page, "model", VIT)
        page.locator("#image img").wait_for()
        for name, data in (
            ("noise.png", b"\x89PNG\r\n\x1a\n" + bytes(range(256))),
            ("cut.png", whole[:100]),
            ("bomb.png", png(50_000, 40_000, b"")),
        ):
            upload(page, name, data)
            press(page, "explain", "explained")
            told = page.inner_text("#explained .problem")
            assert "image" in told
            assert "instead:" in told


def test_nothing_hostile_runs(browser, address, hostile):
    with visit(browser, address) as page:
        choose(page, "model", hostile)
        page.locator("#status").get_by_text("hostile").wait_for()
        page.fill("#text textarea", f"a fine film {HARM} </script></iframe>{HARM}")
        press(page, "explain", "explained")
        frame = frame_of(page, "explained")
        page.locator("#target input").click()  # the labels as a list
        page.keyboard.press("Escape")
        tab(page, "What if")
        page.locator(".words:visible").get_by_text("fine", exact=True).click()
        press(page, "what-if", "answered")
        tab(page, "Compare")
        press(page, "compare", "compared")
        tab(page, "Explore")
        page.locator("#goal input").click()
        page.keyboard.press("Escape")
        for place in (page, frame):
            assert place.evaluate("window.harmed") is None
        assert page.locator("img[src=x]").count() == 0
        assert frame.locator("img[src=x]").count() == 0


def test_a_frame_reaches_nothing_of_the_app(browser, address):
    with visit(browser, address) as page:
        press(page, "explain", "explained")
        frame = frame_of(page, "explained")
        reached = frame.evaluate(
            "() => { try { return parent.document.title } catch { return '' } }"
        )
        assert reached == ""
        assert frame.evaluate("origin") == "null"


# ---- the server ----------------------------------------------------------------------------------


JOIN = "/gradio_api/queue/join"


def asked(url, data=None, **headers):
    """The status of an answer, and its beginning."""
    request = urllib.request.Request(url, data=data, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read(2000)
    except urllib.error.HTTPError as error:
        return error.code, error.read(2000)


@pytest.mark.parametrize(
    "path",
    [
        "/gradio_api/file=/etc/passwd",
        "/gradio_api/file=../../../../etc/passwd",
        "/gradio_api/file=..%2f..%2f..%2fetc%2fpasswd",
        f"/gradio_api/file={os.path.abspath(__file__)}",
        "/static/../../../etc/passwd",
        "/assets/..%2f..%2f..%2f..%2fetc%2fpasswd",
    ],
)
def test_nothing_outside_is_read(address, path):
    status, answer = asked(address + path)
    assert status in (403, 404)
    assert b"root:" not in answer
    assert b"import" not in answer


def called(address, button, data):
    """What a program gets that calls the handler of a button by hand, past the page."""
    with urllib.request.urlopen(f"{address}/config", timeout=30) as answer:
        config = json.loads(answer.read())
    places = {c["props"].get("elem_id"): c["id"] for c in config["components"]}
    session, model = f"by-hand-{time.monotonic_ns()}", places["model"]
    choices = next(
        d["id"]
        for d in config["dependencies"]
        if [model, "change"] in d["targets"] and d["inputs"] == [model]
    )
    _completed(address, session, choices, [data[1] if isinstance(data[1], str) else BERT])
    handler = next(
        d["id"] for d in config["dependencies"] if [places[button], "click"] in d["targets"]
    )
    return _completed(address, session, handler, data)


def _completed(address, session, handler, data):
    call = {"data": data, "fn_index": handler, "session_hash": session}
    status, _ = asked(
        address + JOIN, json.dumps(call).encode(), **{"Content-Type": "application/json"}
    )
    assert status == 200
    events = f"{address}/gradio_api/queue/data?session_hash={session}"
    found = []
    with urllib.request.urlopen(events, timeout=60) as answer:
        for line in answer:
            if line.startswith(b"data:"):
                found.append(json.loads(line[5:]))
                if found[-1]["msg"] == "process_completed":
                    break
    outputs = [one["output"] for one in found if "output" in one]
    return {"everything": outputs, **found[-1]["output"]}


FILE = {"path": "/etc/hostname", "meta": {"_type": "gradio.FileData"}}


@pytest.mark.parametrize(
    ("button", "data"),
    [
        ("explain", [None, VIT, "", FILE, ["random"], "predicted"]),
        ("explain", [None, VIT, "", FILE | {"path": __file__}, ["random"], "predicted"]),
        (
            "explain",
            [None, VIT, "", FILE | {"url": "http://127.0.0.1:1/x"}, ["random"], "predicted"],
        ),
        ("explain", [None, BERT, "film " * 10**5, None, ["random"], "predicted"]),
        ("explain", [None, BERT, "a film", None, ["no such method"], "predicted"]),
        ("explain", [None, BERT, "a film", None, ["random"], 10**9]),
        ("explain", [None, 5, {"a": 1}, "x", 7, []]),
        ("walk", [None, BERT, "a film", None, "stay", 10**9, "embedding", True, [10**9]]),
        ("walk", [None, BERT, "a film", None, "nowhere", 10, "pixels", True, None]),
        ("what-if", [None, BERT, "a film", None, [1], "evil", ""]),
    ],
)
def test_what_the_page_would_not_send_is_refused(button, data, address):
    """An error, or a sentence; never a result, and nothing of a file that was not uploaded."""
    output = called(address, button, data)
    answer = json.dumps(output)
    assert "iframe" not in answer
    assert "root:" not in answer
    assert "Traceback" not in answer
    assert os.uname().nodename not in answer
    assert "error" in output or "problem" in answer


def test_a_call_by_hand_that_is_sound_is_answered(address):
    """So that the calls above are refused for what is wrong with them."""
    output = called(address, "explain", [None, BERT, "a film", None, ["random"], "predicted"])
    assert "iframe" in json.dumps(output)


def test_names_of_uploads_stay_where_they_are_put(address, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    body = (
        b'--x\r\nContent-Disposition: form-data; name="files"; filename="../../../../..'
        + str(outside).encode()
        + b'/taken.png"\r\nContent-Type: image/png\r\n\r\nhello\r\n--x--\r\n'
    )
    asked(
        address + "/gradio_api/upload", body, **{"Content-Type": "multipart/form-data; boundary=x"}
    )
    assert not list(outside.iterdir())


CALL = b'{"data": [], "fn_index": 0, "session_hash": "x"}'


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1.evil.example"]
)
def test_other_pages_of_the_browser_cannot_use_the_app(address, origin):
    """What needs a question first is answered no, and what needs none is not understood."""
    question = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    question |= {"Access-Control-Request-Headers": "content-type"}
    request = urllib.request.Request(address + JOIN, headers=question, method="OPTIONS")
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            allowed = answer.headers.get("Access-Control-Allow-Origin")
    except urllib.error.HTTPError as error:
        allowed = error.headers.get("Access-Control-Allow-Origin")
    assert allowed not in ("*", origin)
    status, _ = asked(address + JOIN, CALL, **{"Origin": origin, "Content-Type": "text/plain"})
    assert status == 422


def test_names_that_lead_here_are_not_answered(address):
    assert asked(address + "/", Host="evil.example")[0] == 400
    assert asked(address + "/", Host="127.0.0.1")[0] == 200


def test_no_endpoint_is_offered_to_programs(address):
    status, answer = asked(address + "/gradio_api/info")
    assert status == 200
    assert json.loads(answer) == {"named_endpoints": {}, "unnamed_endpoints": {}}


def test_others_can_ask_for_listed_models_only(browser, tmp_path_factory):
    """Bound to every address, the app reads no folder that a visitor names."""
    with served(tmp_path_factory.mktemp("open"), "--host", "0.0.0.0", "-m", BERT) as (url, log):
        assert "only the models of its list" in log.read_text()
        with visit(browser, url) as page:
            field = page.locator("#model input")
            field.fill(str(bundled_path("reviews-mlm")))
            field.press("Enter")
            field.press("Tab")
            page.wait_for_function(
                "name => document.querySelector('#model input').value === name", arg=BERT
            )


def test_a_port_that_is_taken_is_said(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        found = subprocess.run(
            [sys.executable, "-c", RUN, "app", "--port", str(port)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert found.returncode == 2
    assert f"--port {port + 1}" in found.stderr
    assert "Traceback" not in found.stderr
