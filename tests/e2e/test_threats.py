"""Rows of docs/threats.md on a real server: what strangers send, and what a page shows of it."""

import http.client
import json
import re
import socket
import urllib.parse
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import pytest
from playwright.sync_api import Dialog, Page, expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

from hookviz.images.samples import samples
from hookviz.lenses.contract import parameters, regions, running
from hookviz.lenses.contract.running import find_lens
from hookviz.models import shapesnet
from scripts.browsing import wait_for_grid
from scripts.servers import ROOT, free_port, serve
from tests.e2e.probing import until
from tests.e2e.screen import SHAPESNET, at_rest, look_through, open_channel_menu, open_more
from tests.e2e.test_lenses import settle
from tests.pictures import encoded, picture
from tests.ui.test_threats import HOSTILE_NAMES, VIEW

EVIL = "http://evil.example"
PAYLOAD = '<img src="/nothing" onerror="window.hacked=1"><b>bold</b> [a](javascript:alert(1)) `c`'


# ── what a page shows ──────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def hostile_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The app on a model whose name, layers and classes are hostile.

    A session may upload three files and two megabytes.
    """
    environment = {
        "HOOKVIZ_UPLOADS": "3",
        "HOOKVIZ_UPLOADS_MB": "2",
        "TORCH_HOME": str(tmp_path_factory.mktemp("torch")),
        "HOOKVIZ_MODEL": "tests.ui.test_threats:hostile_model",
        "HOOKVIZ_WEIGHTS_URL": f"http://127.0.0.1:{free_port()}",
        "PYTHONPATH": str(ROOT),
    }
    with serve(environment) as address:
        yield address


def expect_no_markup(page: Page) -> None:
    """Nothing on the page, in its components and in its tables is made of a name's markup."""
    assert page.evaluate("typeof window.hacked") == "undefined"
    made = (
        "a[href^='javascript:'], img[src='x'], img[src='/nothing'], img[src^='http://x'], "
        "script:text('alert'), b:text('bold'), code:text-is('c')"
    )
    expect(page.locator(made)).to_have_count(0)


@pytest.mark.by_day
def test_hostile_names_are_text_in_the_explorer(page: Page, hostile_server: str) -> None:
    dialogs: list[str] = []

    def opened(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", opened)
    query = urllib.parse.urlencode({"layer": HOSTILE_NAMES[0], "channel": 0, "cell": "1,1"})
    page.goto(f"{hostile_server}/?{query}")
    drawn = wait_for_grid(page)
    for index, name in enumerate(HOSTILE_NAMES):
        if index:
            page.keyboard.press("n")  # to the next layer
            drawn = wait_for_grid(page, drawn)
        shown = " ".join(name.replace(".", "·").replace("\x07", "").replace("\0", "").split())
        if index != 5:  # which no letter of is visible
            expect(page.get_by_role("combobox", name="Layer")).to_have_value(
                f"{index + 1} · {shown}"
            )
        at_rest(page)
        expect_no_markup(page)
        if index == 4:
            expect_download_in_its_folder(page)
    expect(page.locator(".hv-classes").get_by_text(HOSTILE_NAMES[2])).to_have_count(1)
    assert dialogs == []


def expect_download_in_its_folder(page: Page) -> None:
    for opens, entry in (
        (partial(open_more, page, "Download"), "Grid as PNG"),
        (partial(open_channel_menu, page), "Numbers as CSV"),
    ):
        opens()
        with page.expect_download() as waiting:
            page.get_by_role("button", name=entry).click()
        assert re.fullmatch(r"[^./\\][^/\\]*", waiting.value.suggested_filename)
        page.keyboard.press("Escape")


@pytest.mark.by_day
def test_hostile_names_are_text_in_every_lens(page: Page, hostile_server: str) -> None:
    """In lenses with all kinds of controls that hold names; each lens by itself is in tests/ui."""
    page.goto(f"{hostile_server}/?{urllib.parse.urlencode({'layer': HOSTILE_NAMES[2]})}")
    wait_for_grid(page)
    for lens in map(find_lens, ("grad-cam", "channels-that-matter", "trace")):
        look_through(page, lens.question)
        page.get_by_role("heading", name=lens.question, exact=True).wait_for()
        expect(page.get_by_text(lens.sentence)).to_be_visible()
        settle(page, or_refused=True)
        expect(page.locator("[data-testid=stSpinner]")).to_have_count(0, timeout=60_000)
        expect_no_markup(page)
        # The image under a map is described with the map.
        pictures = "img:not(.scale img):not(.lower):not([hidden])"
        for shown in page.get_by_test_id("stMain").locator(pictures).all():
            assert (shown.get_attribute("alt") or "").strip()
        assert page.evaluate("document.documentElement.scrollWidth") <= 1440


IMAGE, WEIGHTS, LABELS = (
    "An image file",
    "Weights for ShapesNet",
    "Class names, if they are your own",
)


def give(page: Page, label: str, name: str, content: bytes) -> None:
    """Upload a file there, in place of one that is there already."""
    kind = "image/png" if label == IMAGE else "application/octet-stream"
    region = page.get_by_role("region", name=label)
    region.locator("input[type=file]").set_input_files(
        {"name": name, "mimeType": kind, "buffer": content}
    )


# ── what strangers send ────────────────────────────────────────────────────────────────────────


class Visitor:
    """A session by the browser's own protocol, without a browser."""

    def __init__(self, connection: ClientConnection) -> None:
        self.socket, self.session = connection, ""
        self.received: list[bytes] = []

    def open(self, query: str = "") -> bytes:
        """Run the page once; everything that came, for looking through."""
        asked = BackMsg()
        asked.rerun_script.query_string = query
        self.socket.send(asked.SerializeToString())
        came = b""
        while True:
            data = self.socket.recv(timeout=60)
            assert isinstance(data, bytes)
            self.received.append(data)
            message = ForwardMsg.FromString(data)
            if message.HasField("new_session"):
                self.session = message.new_session.initialize.session_id
            came += data
            if message.HasField("script_finished"):
                return came


@contextmanager
def visiting(server: str, origin: str = "") -> Iterator[Visitor]:
    """A visitor, sent by a page of `origin`."""
    with connect(
        f"ws://{server.removeprefix('http://')}/_stcore/stream",
        origin=Origin(origin or server),
        subprotocols=[Subprotocol("streamlit")],
        max_size=None,
        open_timeout=60,  # the first one waits for the app
        close_timeout=0.2,  # what nobody read any more is in the way of the server's farewell
        legacy=False,
    ) as connection:
        yield Visitor(connection)


def asked(
    server: str, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, bytes, http.client.HTTPMessage]:
    """Status, body and headers; the path goes out as it stands."""
    connection = http.client.HTTPConnection(server.removeprefix("http://"), timeout=30)
    try:
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers
    finally:
        connection.close()


@pytest.mark.parametrize("origin", [EVIL, "null", "http://127.0.0.1.evil.example"])
def test_a_page_of_another_origin_gets_no_websocket(server: str, origin: str) -> None:
    with pytest.raises(InvalidStatus) as refused, visiting(server, origin):
        pass
    assert refused.value.response.status_code == 403
    with visiting(server) as visitor:  # the page's own origin does
        assert b"ShapesNet" in visitor.open()


def put(
    server: str,
    session: str,
    token: str,
    cookie: str,
    origin: str,
    *,
    content: bytes = b"",
    file_id: str = "",
) -> int:
    """The status of an upload."""
    content = content or encoded(picture())
    body = b'--b\r\nContent-Disposition: form-data; name="f"; filename="a.png"\r\n\r\n'
    headers = {"Content_Type": "multipart/form-data; boundary=b", "Origin": origin}
    headers |= {"X_Xsrftoken": token} if token else {}
    headers |= {"Cookie": f"_streamlit_xsrf={cookie}"} if cookie else {}
    path = f"/_stcore/upload_file/{session}/{file_id or uuid.uuid4()}"
    return asked(server, "PUT", path, body + content + b"\r\n--b--\r\n", **headers)[0]


def token_of(server: str) -> str:
    _, _, headers = asked(server, "GET", "/_stcore/health")
    return str(headers["Set-Cookie"]).partition("=")[2].partition(";")[0]


def test_an_upload_without_the_visitors_own_token_is_refused(server: str) -> None:
    token, other = token_of(server), token_of(server)
    assert token != other
    with visiting(server) as visitor:
        visitor.open()
        session = visitor.session
        assert put(server, session, "", "", EVIL) == 403
        assert put(server, session, "", token, EVIL) == 403  # a form of another page has no more
        assert put(server, session, "made-up", token, EVIL) == 403
        assert put(server, session, other, token, server) == 403
        assert put(server, str(uuid.uuid4()), token, token, server) == 400  # nobody's session
        assert put(server, session, token, token, server) == 204
        path = f"/_stcore/upload_file/{session}/x"
        assert asked(server, "DELETE", path)[0] == 403
    _, _, headers = asked(server, "OPTIONS", path, Origin=EVIL)
    assert headers["Access-Control-Allow-Origin"] != EVIL


@pytest.mark.promise
def test_an_upload_beyond_the_limit_is_refused_before_it_is_read(server: str) -> None:
    token = token_of(server)
    with visiting(server) as visitor:
        visitor.open()
        path = f"/_stcore/upload_file/{visitor.session}/{uuid.uuid4()}"
        status, _, _ = asked(
            server,
            "PUT",
            path,
            Content_Type="multipart/form-data; boundary=b",
            X_Xsrftoken=token,
            Cookie=f"_streamlit_xsrf={token}",
            Content_Length=str(601 * 1024 * 1024),
        )
    assert status == 413


@pytest.mark.rest
def test_the_uploads_of_a_session_are_bounded_together(hostile_server: str) -> None:
    token = token_of(hostile_server)
    upload = partial(put, hostile_server, token=token, cookie=token, origin=hostile_server)
    with visiting(hostile_server) as visitor, visiting(hostile_server) as other:
        visitor.open()
        other.open()
        assert upload(visitor.session, content=bytes(1_500_000)) == 204
        assert upload(visitor.session, content=bytes(1_000_000)) == 413
        assert upload(visitor.session, file_id="a") == 204
        assert upload(visitor.session) == 204
        assert upload(visitor.session) == 413  # the fourth
        assert upload(other.session) == 204
        path = f"/_stcore/upload_file/{visitor.session}/a"
        headers = {"X_Xsrftoken": token, "Cookie": f"_streamlit_xsrf={token}"}
        assert asked(hostile_server, "DELETE", path, None, **headers)[0] == 204
        assert upload(visitor.session) == 204  # in its place
        chunked = {**headers, "Transfer_Encoding": "chunked"}
        said = b"This session has uploaded 3 files, and 3 is the most."
        assert said in asked(hostile_server, "PUT", path, b"", **headers)[1]
        assert asked(hostile_server, "PUT", path, None, **chunked)[0] == 411


@pytest.mark.rest
def test_uploads_on_their_way_count_and_are_not_read(hostile_server: str) -> None:
    """Three that only announce themselves: the fourth is refused, until those have ended."""
    token = token_of(hostile_server)
    with visiting(hostile_server) as visitor, ExitStack() as open_sockets:
        visitor.open()
        head = (
            f"PUT /_stcore/upload_file/{visitor.session}/{{}} HTTP/1.1\r\nHost: a\r\n"
            f"X-Xsrftoken: {token}\r\nCookie: _streamlit_xsrf={token}\r\n"
            "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 500000\r\n\r\n"
        )
        host, _, port = hostile_server.removeprefix("http://").partition(":")
        slow = []
        for number in range(3):
            slow.append(open_sockets.enter_context(socket.create_connection((host, int(port)))))
            slow[-1].sendall(head.format(number).encode())
        put_one = partial(put, hostile_server, visitor.session, token, token, hostile_server)
        until(lambda: put_one() == 413)
        for one in slow:
            one.close()
        until(lambda: put_one() == 204)


def test_a_refused_upload_is_told_in_words(page: Page, hostile_server: str) -> None:
    page.goto(f"{hostile_server}/{SHAPESNET}")
    before = wait_for_grid(page)
    page.get_by_role("radio", name="Upload").click()
    give(page, IMAGE, "large.png", bytes(3_000_000))
    said = page.get_by_role("alert").filter(has_text="and 2 MB is the most")
    expect(said).to_be_visible()
    assert wait_for_grid(page) == before
    give(page, IMAGE, "small.png", encoded(picture(1)))
    wait_for_grid(page, before)
    expect(said).to_have_count(0)


def test_messages_that_are_not_for_visitors_are_ignored(server: str) -> None:
    install = BackMsg()
    install.backend_operation_request.install_skills.SetInParent()
    for message in (BackMsg(clear_cache=True), BackMsg(load_git_info=True), install):
        with visiting(server) as visitor:
            visitor.open()
            visitor.socket.send(message.SerializeToString())
            visitor.open()  # which goes on, and had no answer to that
            messages = [ForwardMsg.FromString(data) for data in visitor.received]
            kinds = {each.WhichOneof("type") for each in messages}
            assert not kinds & {"git_info_changed", "backend_operation_response"}
            assert "new_session" in kinds


def test_messages_too_large_or_of_no_sense_end_their_own_connection_alone(server: str) -> None:
    for message in (bytes(26_000_000), b"\xff" * 100, "text"):
        with visiting(server) as visitor:
            visitor.socket.send(message)
            with pytest.raises(ConnectionClosed):
                visitor.socket.recv(timeout=30)
    with visiting(server) as visitor:
        shutdown = BackMsg(debug_shutdown_runtime=True)
        visitor.socket.send(shutdown.SerializeToString())
        assert b"ShapesNet" in visitor.open()


def test_oversized_links_are_answered_and_without_a_traceback(server: str) -> None:
    size = 1_000_000
    with visiting(server) as visitor:
        for name in (*VIEW, "ablate-channels", "grad-cam-target", "unknown"):
            came = visitor.open(urllib.parse.urlencode({name: "9-" * (size // 2)}))
            assert b"Traceback" not in came
            assert b"went wrong" not in came
            assert b"ShapesNet" in came


SECRETS = ("pyproject.toml", "app.py", "hookviz/settings.py", "../../etc/passwd", ".git/config")
DOORS = (
    "/", "/static/", "/media/", "/app/static/", "/component/hookviz_mosaic/",
    "/component/streamlit.components.v1/", "/_stcore/bidi-components/hookviz_mosaic/",
    "/_stcore/bidi-components/", "/_stcore/upload_file/", "/_stcore/",
)  # fmt: skip
UPS = ("", "../", "../" * 12, "..%2f" * 12, "%2e%2e/" * 12, "%252e%252e%252f" * 12, "..\\" * 12,
       "..%5c" * 12, "....//" * 12, "/" * 3, "%00/", f"{ROOT}/", f"/{ROOT}/")  # fmt: skip


def test_no_path_leads_out_of_what_is_served(server: str) -> None:
    known = [line for line in (ROOT / "pyproject.toml").read_bytes().splitlines() if len(line) > 30]
    known += [b"early_server.SCRIPT", b"class Settings", b"root:x:0", b"[core]"]
    for door in DOORS:
        for up in UPS:
            for secret in SECRETS:
                status, body, _ = asked(server, "GET", f"{door}{up}{secret}".replace(" ", "%20"))
                assert not any(line in body for line in known), (door, up, secret, status)


def test_a_sample_is_chosen_from_the_list_and_never_by_path(server: str) -> None:
    first, *_, last = samples()
    with visiting(server) as visitor:
        for sample in (
            *("../../../etc/passwd", "../bundled", f"{last.name}.jpg", f"./{last.name}"),
            *(f"{last.path.with_suffix('')}", f"{last.path}"),
        ):
            came = visitor.open(urllib.parse.urlencode({"sample": sample}))
            assert f"What the model sees: {first.alt}".encode() in came
        came = visitor.open(urllib.parse.urlencode({"sample": last.name}))
        assert f"What the model sees: {last.alt}".encode() in came


def test_what_could_drive_the_app_by_http_is_off(server: str) -> None:
    status, body, _ = asked(server, "GET", "/_stcore/host-config", Origin=EVIL)
    assert status == 200
    assert json.loads(body)["allowedOrigins"] == []  # no page around ours sends it messages
    for path in ("/_stcore/agent/interact", "/_stcore/agent/mcp", "/_stcore/metrics"):
        status, body, _ = asked(server, "POST", path, b"{}", Content_Type="application/json")
        assert status >= 400, path
        assert b"ShapesNet" not in body


# ── what the server asks for ───────────────────────────────────────────────────────────────────

READ = (parameters.Channels, parameters.MoreImages, regions.RegionChoice)
"""What a visitor writes into a lens otherwise than by a number or from a list."""


@contextmanager
def listening() -> Iterator[tuple[str, socket.socket]]:
    """An address, and the socket that hears whoever comes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", listener


def heard(listener: socket.socket) -> bool:
    listener.settimeout(0.5)  # who came before waits there already
    try:
        listener.accept()[0].close()
    except TimeoutError:
        return False
    return True


def exif_link(url: str) -> bytes:
    """A picture that names a URL wherever a format has room for one."""
    text = url.encode()
    profile = b"\0" * 36 + b"acsp" + text
    return encoded(picture(), "JPEG", comment=text, icc_profile=profile, xmp=text)


REFUSED = """
window.hvRefused = [];
addEventListener("securitypolicyviolation", (event) => window.hvRefused.push(event.blockedURI));
"""


@pytest.mark.promise
def test_a_page_sends_nothing_elsewhere_and_loads_nothing_that_its_policy_refuses(
    page: Page, server: str
) -> None:
    page.add_init_script(REFUSED)
    with listening() as (url, listener):
        for query in (SHAPESNET, f"{SHAPESNET}&lens=grad-cam", "?lesson=hook", "?present=1"):
            page.goto(f"{server}/{query}")
            at_rest(page)
            assert page.evaluate("window.hvRefused") == [], query
        page.evaluate(
            """url => Promise.allSettled([fetch(url + "/a"), navigator.sendBeacon(url + "/b"),
              new Promise((done) => {
                const image = new Image();
                image.onerror = image.onload = done;
                image.src = url + "/c";
              })])""",
            url,
        )
        assert len(page.evaluate("window.hvRefused")) == 3
        assert not heard(listener)


@pytest.mark.by_day
def test_hostile_names_and_words_of_files_are_text(page: Page, server: str) -> None:
    """And nothing is fetched that they name."""
    with listening() as (url, listener):
        page.goto(f"{server}/?model=ShapesNet&weights=yours")
        weights = shapesnet.WEIGHTS_FILE.read_bytes()
        give(page, WEIGHTS, f"{PAYLOAD}![a]({url}).safetensors", weights)
        wait_for_grid(page)
        label = f"{PAYLOAD}![a]({url}/label) <img src={url}/label>"
        labels = "\n".join([label] * len(shapesnet.CATEGORIES))
        give(page, LABELS, f"{PAYLOAD}.txt", labels.encode())
        expect(page.locator(".hv-classes").get_by_text(label).first).to_be_visible()
        expect_no_markup(page)
        page.get_by_role("radio", name="Upload").click()
        give(page, IMAGE, f"{PAYLOAD}<img src='{url}/name'>.jpg", exif_link(url))
        expect(page.locator(".hv-classes")).to_have_attribute("title", re.compile("40×30 pixels"))
        expect_no_markup(page)
        open_more(page, "Copy as code")
        expect_no_markup(page)
        page.keyboard.press("Escape")
        said = page.get_by_role("alert").filter(has_text="HookViz reads")
        svg = f'<svg xmlns="http://www.w3.org/2000/svg"><image href="{url}/svg"/></svg>'
        entity = f'<!DOCTYPE x [<!ENTITY e SYSTEM "{url}/xml">]><x>&e;</x>'
        for name, content in (("a.png", svg), ("b.png", entity), (f"{PAYLOAD}c.png", url)):
            give(page, IMAGE, name, content.encode())
            remove = page.get_by_role("button", name=f"Remove {name}", exact=True)
            expect(remove).to_be_visible()
            expect(said).to_have_count(1)
            expect_no_markup(page)
            remove.click()
            expect(remove).to_have_count(0)
        assert not heard(listener)


def test_the_server_fetches_nothing_that_a_visitor_names(server: str) -> None:
    with listening() as (url, listener):
        socket.create_connection(listener.getsockname()).close()
        assert heard(listener)  # it hears
        lenses = running.list_lenses()
        names = [f"{lens.slug}-{each.name}" for lens in lenses for each in lens.parameters]
        with visiting(server) as visitor:
            visitor.open(urllib.parse.urlencode(dict.fromkeys([*VIEW, *names], f"{url}/q")))
            for lens in lenses:
                if not any(isinstance(each, READ) for each in lens.parameters):
                    continue  # what it takes is chosen from a list, or a number
                query = dict.fromkeys(names, f"{url}/l") | {"lens": lens.slug}
                query["model"] = "ShapesNet"  # which is the quickest
                visitor.open(urllib.parse.urlencode(query))
            for path in ("media", "component", "static", "app/static", "_stcore/bidi-components"):
                asked(server, "GET", f"/{path}/{url}/p")
            asked(server, "GET", f"{url}/absolute")
        assert not heard(listener)
