from dataclasses import replace

import hookviz
from hookviz.capturing.inputs import prepare_input
from hookviz.images.samples import samples
from hookviz.language.speaking import speaking
from hookviz.lenses.contract.lens import Subject
from hookviz.ui.components.pictures import Thumbnail
from hookviz.ui.lenses.lens_widgets import _class_names
from hookviz.ui.recent_images import RecentImage
from tests.pictures import encoded, picture
from tests.ui.lenses.test_lens_choice import GRAD_CAM
from tests.ui.pages import opened, texts

ABLATION = "ablate"


def test_choices_come_from_the_link() -> None:
    choices = {"grad-cam-method": "LayerCAM", "grad-cam-target": "star"}
    page = opened(model="ShapesNet", lens=GRAD_CAM, **choices)
    assert page.selectbox(key="grad-cam-method").value == "LayerCAM"
    assert texts(page.markdown).startswith("**For star the network looks most ")
    page.selectbox(key="grad-cam-method").select("Eigen-CAM").run()
    assert "Eigen-CAM asks for no class" in texts(page.markdown)


def test_a_choice_that_means_nothing_is_explained() -> None:
    page = opened(model="ShapesNet", lens=ABLATION, layer="stem.first.conv")
    page.text_input(key="ablate-channels").set_value("7-5").run()
    assert "channel numbers such as" in texts(page.info)
    page.text_input(key="ablate-channels").set_value("5-7").run()
    assert not page.info


def test_the_samples_and_the_sessions_images_are_compared_at_once() -> None:
    page = opened(model="ShapesNet", lens="embedding")
    others = len(samples()) - 1  # not the one that is looked at: nothing is more like it
    assert f"{others + 1} images as vectors" in texts(page.markdown)
    assert page.subheader[0].value == "Most alike to this image"
    assert len([each for each in page.caption if each.value.startswith("**")]) == 1 + 6
    image = hookviz.read_image(picture(3))
    own = RecentImage(Thumbnail("x", "own.png", ""), encoded(picture(3)), image.digest)
    page.session_state["_recent"] = (own,)
    page.run()
    assert f"{others + 2} images as vectors" in texts(page.markdown)
    page.toggle(key="embedding-images-samples").set_value(False).run()
    assert "Add more images" in texts(page.info)


def test_the_likeliest_classes_come_first_and_the_chosen_one_keeps_its_probability() -> None:
    page = opened(lens=GRAD_CAM, target="tabby")
    options = page.selectbox(key="target").options
    model = hookviz.load_model("squeezenet")
    capture = hookviz.capture(model, samples()[0].path)
    assert capture.logits is not None
    chances = capture.logits.softmax(0)
    first = capture.predictions(5)
    assert [option.partition(" · ")[0] for option in options[:5]] == [name for name, _ in first]
    assert options[0].endswith(f" · {100 * float(chances.max()):.1f} %")
    assert options[5].startswith("tench")
    assert not [option for option in options[5:] if "%" in option]
    assert len(set(options)) == 1000
    page.query_params["sample"] = "coffee"
    page.run()
    options = page.selectbox(key="target").options
    assert page.selectbox(key="target").value == "tabby"
    likely = [each for each in options if each.endswith(" %")]
    assert len(likely) == 6, "the five likeliest, and the chosen one"
    assert likely[5].startswith("tabby · ")
    page.selectbox(key="target").select(likely[0]).run()
    assert len([each for each in page.selectbox(key="target").options if "%" in each]) == 5


def test_of_two_classes_of_one_name_either_can_be_chosen(tiny: hookviz.Model) -> None:
    model = replace(tiny, categories=("crane", "owl", "crane", "kite", "wren"))
    names = _class_names(Subject(model, prepare_input(model, picture()), None))
    numbers = {number: name for name, (number, _) in names.items()}
    assert numbers == {0: "crane (0)", 1: "owl", 2: "crane (2)", 3: "kite", 4: "wren"}


def test_a_class_has_one_name_in_links_whatever_language_it_is_listed_in() -> None:
    model = hookviz.load_model("shapesnet")
    for known in (model, replace(model, categories=model.categories[:3])):
        subject = Subject(known, prepare_input(known, picture()), None)
        english = _class_names(subject)
        with speaking("zh_CN"):
            chinese = _class_names(subject)
        assert list(chinese) == list(english)
        assert chinese["circle"][1].startswith("圆形 · circle")
        assert english["circle"][1].startswith("circle")
    page = opened(model="ShapesNet", lens=GRAD_CAM, lang="zh-CN", **{"grad-cam-target": "star"})
    assert texts(page.markdown).startswith("**对于星形，")
    assert page.selectbox(key="target").value == "star"
