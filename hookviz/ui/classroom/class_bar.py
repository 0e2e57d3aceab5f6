"""Show the bar of a class above the page, its code and its questions, and the menu to join one."""

from functools import partial
from html import escape
from typing import Any

import streamlit as st

from hookviz.classroom.classes import classes
from hookviz.classroom.codes import shown_code
from hookviz.classroom.link_parameters import OF_ONE, OWN_IMAGES
from hookviz.classroom.question import LONGEST_ANSWER, LONGEST_QUESTION, MOST, read_question
from hookviz.drawing.colormaps import COLORMAPS
from hookviz.errors import ClassroomError
from hookviz.language.saying import mark, say
from hookviz.language.speaking import current
from hookviz.ui.classroom import guess_game, membership
from hookviz.ui.components.files import mount
from hookviz.ui.languages import in_link
from hookviz.ui.link import address_for_others, qr_code, update_link
from hookviz.ui.menu import Menu, show_menus
from hookviz.ui.serving import class_route
from hookviz.ui.state import plain

_GONE = mark(
    "The class is over, or this page is not of it any more. Begin or join one in the menu "
    "Classroom."
)
_FAREWELLS = {
    "ended": mark("The class has ended. What you look at is yours now."),
    "taught": mark("The class has ended."),
}
_FULL = mark("The server has no room for this screen now. It is tried again.")
_JOIN_AGAIN = """<script>{{
  const way = new URL(location.href);
  way.searchParams.set("{name}", "{code}");
  location.assign(way);
}}</script>"""
"""Loads the page by the link to a class, which the proxy sends to the class's server."""

_LONGEST_CODE = 20  # letters of a typed code


def show_class() -> None:
    """Show the bar of a teacher or a follower, if this session is one."""
    if not classes().are_on:
        return
    taught = membership.taught()
    if taught is not None or membership.TEACH in st.query_params:
        with st.container(key="hv-class", horizontal=True, vertical_alignment="center"):
            _show_teacher()
        return
    joined = membership.joined()
    if joined is None:
        _show_farewell()
        return
    if joined.token:
        with st.container(key="hv-class"):
            _show_follower(joined.code, joined.token)
        return
    st.warning(plain(joined.refusal), icon=":material/school:")
    with st.container(horizontal=True):
        if joined.is_on_other_server:
            st.link_button(say("Go to the class"), f"?{membership.FOLLOW}={joined.code}")
        st.button(
            say("Go on without a class"),
            on_click=update_link,
            kwargs={membership.FOLLOW: None},
            key="hv-no-class",
        )


def _show_farewell() -> None:
    """Show why the class is over in place of its bar, until it is read: pupils look up late."""
    why = membership.farewell()
    if not why:
        return
    with st.container(key="hv-class", horizontal=True, vertical_alignment="center"):
        words = say(_FAREWELLS.get(why, _GONE))
        st.info(words, icon=":material/school:")
        st.button(say("OK"), on_click=membership.forget_farewell, key="hv-farewell")


def _show_follower(code: str, token: str) -> None:
    mount(
        "follower",
        "hv-follower",
        {
            "path": class_route.PATH,
            "code": code,
            "token": token,
            "ofOne": sorted(OF_ONE),
            "ownImages": list(OWN_IMAGES),
            "language": in_link(current()),
            "names": guess_game.class_labels(),
            "words": {
                "follows": say("You follow your teacher."),
                "alone": say("You look on your own."),
                "lost": say("The line to the class is lost. It is tried again."),
                "full": say(_FULL),
                "gone": say(_GONE),
                "apart": say("Let go"),
                "back": say("Back to the teacher"),
                "leave": say("Leave the class"),
                "question": say("A question to the class"),
                "choose": say("Choose an answer."),
                "chosen": say("Your answer is counted. You can change it."),
                "write": say("Your answer, in a word or two"),
                "send": say("Send"),
                "sent": say("Your answer is sent. You can change it."),
                "closed": say("Closed. Your teacher reveals it."),
                "over": say("This is what the class answered."),
                "none": say("You gave no answer this time."),
                "won": say("You were right."),
                "missed": say("Not this time."),
                "you": say("You: {right} of {answered}"),
                **_card_words(),
            },
        },
        files={"js": "class_follower.js", "css": "class_bar.css"},
        over=lambda why: membership.leave(str(why)),  # a browser can send anything
    )


def _card_words() -> dict[str, Any]:
    """Return the words of a question's card on every screen, and those of colours by name."""
    return {
        "guess": say("What excites this channel of {layer}?"),
        "patches": say("What excites the channel most"),
        # filled in with the riddle's facts
        "where": say("Channel {channel} of {layer}, on today's image"),
        "signed": say(
            "Channel {channel} of {layer}, on today's image: {above} above zero, {below} below"
        ),
        "colours": {
            name: say(name) for each in COLORMAPS.values() for name in (each.low, each.high)
        },
        "right": say("right"),
        "mine": say("your answer"),
        "all": say("class: {share}"),
        "and": say(", "),
    }


def _show_teacher() -> None:
    taught = membership.taught()
    if taught is not None:
        guess_game.ask_next_if_pressed()
    school_class, secret = taught if taught is not None else (None, "")
    code = school_class.code if school_class else ""
    mount(
        "teacher",
        "hv-teacher",
        {
            "path": class_route.PATH,
            "code": code or st.query_params.get(membership.TEACH, ""),
            "token": secret,  # empty if only the browser has it
            "shown": shown_code(code) if code else "",
            "language": in_link(current()),
            "names": guess_game.class_labels(),
            "words": {
                "follow": {
                    "one": say("{count} screen follows"),
                    "many": say("{count} screens follow"),
                },
                "answered": {"one": say("{count} answer"), "many": say("{count} answers")},
                "alone": {
                    "one": say("{count} looks alone"),
                    "many": say("{count} look alone"),
                },
                "close": say("Close the question"),
                "cover": say("Hide the votes"),
                "uncover": say("Show the votes"),
                "reveal": say("Reveal"),
                "next": say("Next channel"),
                "open": say("Show it large"),
                "finish": say("End the game"),
                "away": say("Take it away"),
                "pick": say("click those that are right"),
                "question": say("What the class answers"),
                **_card_words(),
                "lost": say("The line to the server is lost. It is tried again."),
                "full": say(_FULL),
                "gone": say(_GONE),
                "elsewhere": say("This class is taught in another window now."),
            },
        },
        files={"js": "class_teacher.js", "css": "class_bar.css"},
        over=lambda why: membership.stop_teaching(str(why)),
        taken=lambda token: membership.resume_teaching(str(token)),
        next=lambda _: guess_game.request_next(),
    )
    if code:
        hint = say("A question on the screens of all who follow")
        show_menus(
            # without a hint, which would cover the code under the pointer
            Menu(say("Code"), "qr_code", "hv-class-code", partial(_show_code, code)),
            Menu(say("Ask"), "help", "hv-class-ask", _show_question_form, hint),
            guess_game.guess_menu(),
        )


def _show_question_form() -> None:
    with st.form("hv-question", border=False):
        words = st.text_input(say("Question"), max_chars=LONGEST_QUESTION, key="hv-question-words")
        answers = st.text_area(
            say("Answers, one a line: two to six"),
            max_chars=MOST * (LONGEST_ANSWER + 1),
            height=170,
            key="hv-question-answers",
        )
        right = st.selectbox(
            say("The right one"),
            range(MOST + 1),
            format_func=lambda line: say("line {number}", number=line) if line else say("none"),
            key="hv-question-right",
        )
        hides = st.checkbox(
            say("Hide the votes until I close the question"), key="hv-question-hides"
        )
        sent = st.form_submit_button(say("Ask the class"), type="primary")
    if sent:
        taught = membership.taught()
        lines = [line for line in answers.splitlines() if line.strip()]
        try:
            question = read_question(
                words, lines, right=right - 1 if right else None, is_hidden=hides
            )
        except ClassroomError as error:
            st.error(plain(str(error)), icon=":material/error:")
            return
        if taught is not None:
            if not question.is_like(taught[0].question):  # asking again would lose the answers
                taught[0].ask(question)
            st.success(say("Asked. The answers are counted at the bottom of your screen."))


def _link_to(code: str) -> str:
    """Return the link by which pupils follow, from their own devices where these reach it."""
    base = _base()
    return f"{address_for_others(base) or base}?{membership.FOLLOW}={code}"


def _base() -> str:
    """Return the page's address in this browser, without a query."""
    return str(st.context.url or "").partition("?")[0]


def link_of_taught() -> str:
    """Return the link to the class that this session teaches; empty without one."""
    taught = membership.taught()
    return _link_to(taught[0].code) if taught is not None else ""


def _show_code(code: str) -> None:
    """Show the code, large, with the link, its QR code and the button that ends the class."""
    link = _link_to(code)
    alt = escape(say("A QR code of the link to this class"), quote=True)
    st.html(
        f'<p class="hv-class-code">{shown_code(code)}</p>'
        f'<p class="hv-qr"><img src="{qr_code(link)}" alt="{alt}"></p>'
    )
    st.code(link, None, wrap_lines=True)
    if address_for_others(_base()) is None:
        st.warning(
            say(
                "This address leads to this computer alone. For pupils' devices start HookViz "
                "with --address 0.0.0.0, and open it by this computer's address in the network."
            )
        )
    st.caption(
        say(
            "Pupils open this link, or type the code in the menu Classroom. It is good for four "
            "hours, and nothing of the class is kept when it ends."
        )
    )
    if st.button(say("End the class"), icon=":material/stop_circle:", key="hv-class-end"):
        membership.end()
        st.rerun()


def offer_class() -> None:
    """Show the menu that starts or joins a class, unless this session is in one."""
    if not classes().are_on or {membership.FOLLOW, membership.TEACH} & set(st.query_params):
        return
    hint = say("Have other screens follow yours, or follow your teacher's")
    with st.container(key="hv-class-menu"):
        show_menus(Menu(say("Classroom"), "groups", "hv-class-open", _show_choices, hint))


def _show_choices() -> None:
    with st.form("hv-join", border=False):
        typed = st.text_input(
            say("The code of your class"),
            max_chars=_LONGEST_CODE,
            autocomplete="off",
            placeholder="K7M P3X",
            key="hv-join-code",
        )
        is_sent = st.form_submit_button(say("Follow my teacher"), type="primary")
    if is_sent:
        joined = membership.join(typed)
        if joined.token:
            st.rerun()
        if joined.is_on_other_server:
            script = _JOIN_AGAIN.format(name=membership.FOLLOW, code=joined.code)
            st.html(script, unsafe_allow_javascript=True)
        else:
            st.error(plain(joined.refusal), icon=":material/school:")
    st.divider()
    st.caption(
        say(
            "As a teacher: pupils' screens show what yours shows, until they let go, and you can "
            "ask them questions. Photographs of your own are not shared."
        )
    )
    if st.button(say("Begin a class"), icon=":material/co_present:", key="hv-class-begin"):
        try:
            membership.begin()
        except ClassroomError as error:
            st.error(plain(str(error)), icon=":material/error:")
            return
        st.rerun()
